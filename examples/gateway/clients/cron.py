#!/usr/bin/env python3
"""Runs a job under a lock of a gateway: cron.py KEY COMMAND [ARGUMENT]...
Exits as the job does; with 75 if others hold the lock, with 69 if the gateway cannot tell."""
import json, os, signal, subprocess, sys
from urllib import error, parse, request

def ask(method, url, body=None):
    headers = {"Content-Type": "application/json"}
    return request.urlopen(request.Request(url, body, headers, method=method), timeout=8).read()

def end(*_):  # a signal; without a job the lock ends with its TTL
    job.terminate() if job else sys.exit(143)

def say(*words, code=0):
    print("cron.py:", *words, file=sys.stderr)
    return code

url = os.environ.get("REDLOCK_GATEWAY", "http://127.0.0.1:8520")
url += "/v1/locks/" + parse.quote(sys.argv[1], safe="")
job = None
for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
    signal.signal(number, end)
try:
    url += "/" + json.loads(ask("POST", url, b'{"ttl_ms": 30000, "owner": "cron"}'))["id"]
except OSError as problem:
    is_held = isinstance(problem, error.HTTPError) and problem.code == 409
    sys.exit(say(problem, code=75 if is_held else 69))
try:
    job = subprocess.Popen(sys.argv[2:])
except OSError as problem:
    code = say(problem, code=127)
while job and job.poll() is None:
    try:
        job.wait(10)  # renew three times in a TTL, and end the job when that fails
    except subprocess.TimeoutExpired:
        try:
            ask("POST", url + "/renew")
        except OSError:
            job.terminate()
if job:
    code = job.returncode if job.returncode >= 0 else 128 - job.returncode
try:
    ask("DELETE", url)
except OSError as problem:
    say("the lock was lost, or ends with its TTL:", problem)
sys.exit(code)
