#!/bin/sh
# Runs a job under a lock of a gateway: cron.sh KEY COMMAND [ARGUMENT]... (exit 75: others hold it)
set -eu
url=${REDLOCK_GATEWAY:-http://127.0.0.1:8520}/v1/locks/$1 && shift
lock=$(curl -fsS --max-time 20 --json '{"ttl_ms": 30000, "owner": "cron"}' "$url") || exit 75
url=$url/$(echo "$lock" | sed 's/.*"id":"\([0-9a-f]*\)".*/\1/')
"$@" & job=$!
# Renew three times in a TTL, and end the job when that fails.
while sleep 10; do
    curl -fs --max-time 5 --retry 1 -X POST "$url/renew" || kill $job
done >/dev/null 2>&1 & renewals=$!
trap 'kill $job' TERM INT
trap 'kill $renewals; curl -fsS --max-time 20 -X DELETE "$url"' EXIT
wait $job
