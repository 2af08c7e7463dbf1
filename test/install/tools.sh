#!/bin/sh
# Uses the programs in PATH on throwaway masters: a command under a lock, a lock over HTTP, and the
# benchmark. Prints TAP. Needs redis-server (or REDLOCK_SERVER) and curl.
# usage: tools.sh
set -eu
export LC_ALL=C.UTF-8

here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=test/tap.sh
. "$here/../tap.sh"

quietly() {
    "$@" >"$folder/said" 2>&1
}

# first_line FILE: waits up to 30 s for it, and prints it
first_line() {
    # The file's name is an argument of the inner shell.
    # shellcheck disable=SC2016
    timeout 30 sh -c 'tail -n +1 -f "$1" | head -n 1' - "$1"
}

running=
# stop PID: ends the process, and returns its exit code
stop() {
    kill -TERM "$1"
    wait "$1"
}
finish() {
    for pid in $running; do
        stop "$pid" 2>/dev/null || true
    done
    rm -rf "$folder"
}
trap finish EXIT

start_masters() {
    : >"$folder/masters"
    redlock dev 3 >"$folder/masters" &
    running="$! $running"
    eval "$(first_line "$folder/masters")"
    [ -n "$REDLOCK_NODES" ]
}

check_run() {
    # The lock's key is a variable of the inner shell.
    # shellcheck disable=SC2016
    [ "$(redlock run demo -- sh -c 'echo "$REDLOCK_KEY"')" = demo ]
}

check_inspect() {
    redlock run demo -- redlock inspect demo >"$folder/said"
    grep -q demo "$folder/said"
}

# A lock is granted, refused to another client while held, and released.
check_gateway() {
    : >"$folder/gateway"
    redlock-gateway --listen 127.0.0.1:0 >"$folder/gateway" 2>"$folder/log" &
    gateway=$!
    running="$gateway $running"
    url=$(first_line "$folder/gateway" | sed 's/^listening on //')
    locks=$url/v1/locks/orders
    curl -sS --fail -X POST -d '{"wait_ms": 20000}' -H 'Content-Type: application/json' \
        "$locks" >"$folder/said" || return 1
    id=$(sed 's/.*"id": *"\([^"]*\)".*/\1/' "$folder/said")
    status=$(curl -sS -o "$folder/said" -w '%{http_code}' -X POST -d '{}' \
        -H 'Content-Type: application/json' "$locks")
    [ "$status" = 409 ] || return 1
    curl -sS --fail -X DELETE "$locks/$id" >"$folder/said" || return 1
    running=${running#"$gateway "}
    stop "$gateway"
}

check_bench() {
    redlock-bench --nodes "$REDLOCK_NODES" --cycles 100 >"$folder/said" &&
        grep -Eq '^ *errors +0$' "$folder/said"
}

# The null masters are a separate program, which must be found.
check_null_masters() {
    redlock-bench --spawn 3 --null-masters --cycles 100 >"$folder/said" &&
        grep -Eq '^ *errors +0$' "$folder/said"
}

REDLOCK_NODES=
tap_check 'redlock dev' start_masters
export REDLOCK_NODES
tap_check 'redlock doctor' quietly redlock doctor
tap_check 'redlock run' check_run
tap_check 'redlock inspect' check_inspect
tap_check 'redlock-gateway' check_gateway
tap_check 'redlock-bench' check_bench
tap_check 'redlock-bench --null-masters' check_null_masters
tap_end
