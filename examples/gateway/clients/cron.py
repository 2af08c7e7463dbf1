#!/usr/bin/env python3
"""Runs a job under a lock of a gateway: cron.py KEY COMMAND [ARGUMENT]...
Exits as the job does; with 75 if others hold the lock, with 69 if the gateway gives no answer.
REDLOCK_GATEWAY is the gateway's URL; REDLOCK_GATEWAY_TOKEN_FILE is a file of tokens."""
import json, os, signal, subprocess, sys, threading, time
from urllib import error, parse, request

url = os.environ.get("REDLOCK_GATEWAY", "http://127.0.0.1:8520")
url += "/v1/locks/" + parse.quote(sys.argv[1], safe="")
headers = {"Content-Type": "application/json"}

def now():  # clock steps do not change it, and it goes on while the machine sleeps
    return time.clock_gettime(time.CLOCK_BOOTTIME)

def say(*words, code=0):
    print("cron.py:", *words, file=sys.stderr)
    return code

def ask(method, path="", body=None, within=8):
    """Returns status and fields of the answer; 0 and the reason if there is no complete answer."""
    result = [(0, {"detail": "no answer in time"})]

    def run():
        try:
            try:
                question = request.Request(url + path, body, headers, method=method)
                answer = request.urlopen(question, timeout=within)
            except error.HTTPError as refusal:
                answer = refusal
            with answer:
                result[0] = answer.code, dict(json.loads(answer.read() or "{}"))
        except Exception as problem:  # of any kind: the job must not outlive its lock
            result[0] = 0, {"detail": str(problem) or type(problem).__name__}

    thread = threading.Thread(target=run, daemon=True)  # its timeout applies to each byte only
    thread.start()
    thread.join(within)
    return result[0]

def send(number):
    try:
        os.killpg(job.pid, number)
    except OSError:
        pass  # no process of the job is left, or it has changed its user

signals = []
for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
    signal.signal(number, lambda number, _: signals.append(number))
try:
    path = os.environ.get("REDLOCK_GATEWAY_TOKEN_FILE")
    lines = open(path, encoding="ascii").read().splitlines() if path else []
    tokens = [line for line in lines if line and not line.startswith("#")]
    if path:
        headers["Authorization"] = "Bearer " + tokens[0]
except (OSError, ValueError, IndexError) as problem:
    sys.exit(say(f"there is no token in {path}: {problem}", code=69))

begun = now()  # the lock's time counts from before the request
status, fields = ask("POST", body=b'{"ttl_ms": 30000, "owner": "cron"}')
try:
    validity = fields["validity_ms"] / 1000
    url += "/" + fields["id"]
except (KeyError, TypeError):
    sys.exit(say(status, fields, code=75 if status == 409 else 69))
job = watch = None
try:
    if signals:
        code = 128 + signals[0]
    else:  # its own session: a signal reaches all processes of a pipeline or a loop
        job = subprocess.Popen(sys.argv[2:], start_new_session=True)
        words = ["sh", "-c", 'read -r _ || kill -s KILL -- "-$0"', str(job.pid)]  # if this is killed
        watch = subprocess.Popen(words, stdin=subprocess.PIPE, start_new_session=True)
except OSError as problem:
    code = say(problem, code=127)
until, next_at, kill_at = begun + validity, begun + validity / 3, None
while job and job.poll() is None:
    if signals:
        signals.clear()
        send(signal.SIGTERM)
    if kill_at is None and next_at <= now() < until - 5:  # renew 3 times per TTL
        asked = now()
        status, fields = ask("POST", "/renew", within=2)
        until = asked + validity if status == 200 else until
        next_at = asked + (validity / 3 if status == 200 else 1)
    is_lost = fields.get("code") in ("lost", "no-such-lock")
    if kill_at is None and (is_lost or now() >= until - 5):
        kill_at = min(now() + 3, until - 2)
        send(signal.SIGTERM)
    if kill_at is not None and now() >= kill_at:
        send(signal.SIGKILL)
    try:
        job.wait(0.2)
    except subprocess.TimeoutExpired:
        pass
if job:
    code = job.returncode if job.returncode >= 0 else 128 - job.returncode
    send(signal.SIGKILL)  # processes that the job left running
if watch:
    watch.communicate(b"\n")
status, fields = ask("DELETE")
if status != 204:
    say("the lock was lost, or ends with its TTL:", status, fields)
sys.exit(code)
