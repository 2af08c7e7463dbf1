#!/bin/sh
# Runs a job under a lock of a gateway: cron.sh KEY COMMAND [ARGUMENT]...
# Exits as the job does; with 75 if others hold the lock, with 69 if the gateway cannot tell.
set -eu
url=${REDLOCK_GATEWAY:-http://127.0.0.1:8520}/v1/locks/
url=$url$(printf %s "$1" | od -An -v -tx1 | tr -d ' \n' | sed 's/../%&/g') && shift
lock=$(curl -sS --max-time 20 -w '\n%{http_code}' --json '{"ttl_ms": 30000, "owner": "cron"}' "$url") ||
    exit 69
case $lock in
*201) ;;
*) echo "$lock" >&2 && case $lock in *409) exit 75 ;; *) exit 69 ;; esac ;;
esac
url=$url/$(echo "$lock" | sed -n 's/.*"id":"\([0-9a-f]*\)".*/\1/p')
"$@" & job=$!
trap 'kill $job' HUP INT TERM
# Renew three times in a TTL, and end the job when that fails.
while sleep 10; do
    curl -fs --max-time 5 --retry 1 -X POST "$url/renew" || kill $job
done >/dev/null 2>&1 & renewals=$!
code=0 && wait $job || code=$?
while kill -0 $job 2>/dev/null; do # a signal has ended `wait`, and not yet the job
    code=0 && wait $job || code=$?
done
kill $renewals
curl -fsS --max-time 20 -X DELETE "$url" || echo "$0: the lock was lost, or ends with its TTL" >&2
exit $code
