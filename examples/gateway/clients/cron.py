#!/usr/bin/env python3
"""Runs a job under a lock of a gateway: cron.py KEY COMMAND [ARGUMENT]... (75: others hold it)"""
import json, os, subprocess, sys
from urllib import parse, request

def ask(method, url, body=None):
    headers = {"Content-Type": "application/json"}
    return request.urlopen(request.Request(url, body, headers, method=method), timeout=8).read()

url = os.environ.get("REDLOCK_GATEWAY", "http://127.0.0.1:8520")
url += "/v1/locks/" + parse.quote(sys.argv[1], safe="")
try:
    url += "/" + json.loads(ask("POST", url, b'{"ttl_ms": 30000, "owner": "cron"}'))["id"]
except OSError as error:
    sys.exit(print(error, file=sys.stderr) or 75)
job = subprocess.Popen(sys.argv[2:])
while job.poll() is None:
    try:
        job.wait(10)  # renew three times in a TTL, and end the job when that fails
    except subprocess.TimeoutExpired:
        try:
            ask("POST", url + "/renew")
        except OSError:
            job.terminate()
ask("DELETE", url)
sys.exit(job.returncode if job.returncode >= 0 else 128 - job.returncode)
