#!/bin/sh
# Runs a job under a lock of a gateway: cron.sh KEY COMMAND [ARGUMENT]...
# Exits as the job does; with 75 if others hold the lock, with 69 if the gateway gives no answer.
# REDLOCK_GATEWAY is the gateway's URL; REDLOCK_GATEWAY_TOKEN_FILE is a file of tokens.
set -eu
fail() { echo "cron.sh: $2" >&2 && exit "$1"; }
token=
if [ -n "${REDLOCK_GATEWAY_TOKEN_FILE-}" ]; then
    token=$(grep -v '^#' "$REDLOCK_GATEWAY_TOKEN_FILE" | grep -m 1 .) || fail 69 "there is no token"
fi
ask() { # not with the token on a command line, where others could read it
    printf '%s\n' "${token:+Authorization: Bearer $token}" | curl -sS -H @- "$@"
}
now() { # seconds since the machine was started: clock steps do not change them
    read -r now _ </proc/uptime && now=${now%%.*}
}
url=${REDLOCK_GATEWAY:-http://127.0.0.1:8520}/v1/locks/
url=$url$(printf %s "$1" | od -An -v -tx1 | tr -d ' \n' | sed 's/../%&/g') && shift
now && begun=$now # the lock's time counts from before the request
lock=$(ask --max-time 8 -w '\n%{http_code}' --json '{"ttl_ms": 30000, "owner": "cron"}' "$url") ||
    fail 69 "the gateway does not answer"
case $lock in
*'"id":"'*201) ;;
*409) fail 75 "$lock" ;;
*) fail 69 "$lock" ;;
esac
url=$url/$(echo "$lock" | sed -n 's/.*"id":"\([0-9a-f]*\)".*/\1/p')
validity=$(($(echo "$lock" | sed -n 's/.*"validity_ms":\([0-9]*\).*/\1/p') / 1000))

setsid "$@" & job=$! # its own session: a signal reaches all processes of a pipeline or a loop
signal() { kill -s "$1" -- "-$job" || kill -s "$1" "$job" || :; } 2>/dev/null
trap 'signal TERM' HUP INT TERM

keep() { # renews 3 times per TTL, until the lock is lost or has 5 s left, or $$ was killed
    trap '' HUP INT TERM
    end=$((begun + validity)) next=$((begun + validity / 3))
    while now && [ "$now" -lt $((end - 5)) ] && kill -0 $$; do
        [ "$now" -ge "$next" ] || { sleep 1 && continue; }
        next=$((now + 1)) renewed=$now
        answer=$(ask --max-time 2 -w '\n%{http_code}' -X POST "$url/renew") || answer=none
        case $answer in
        *200) end=$((renewed + validity)) next=$((renewed + validity / 3)) ;;
        *'"lost"'* | *'"no-such-lock"'*) break ;;
        esac
    done
    [ "$end" -le $((now + 5)) ] || end=$((now + 5))
    signal TERM # and KILL after 3 s, or 2 s before the lock ends
    while now && [ "$now" -lt $((end - 2)) ]; do sleep 1; done
    signal KILL
}
keep >/dev/null 2>&1 & renewals=$!

code=0 && wait $job || code=$?
while kill -0 $job 2>/dev/null; do # a signal has ended `wait`, but the job still runs
    code=0 && wait $job || code=$?
done
kill -s KILL $renewals || :
signal KILL # processes that the job left running
ask -f --max-time 8 -o /dev/null -X DELETE "$url" || echo "cron.sh: the lock was lost, or ends with its TTL" >&2
exit $code
