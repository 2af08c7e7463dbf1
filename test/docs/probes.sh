#!/bin/sh
# Checks the probes (USDT) of the shared library, and prints TAP. Needs masters (with_masters):
#
#     probes.sh BUILD_FOLDER
#
#   notes       a probe with six arguments and a semaphore for each event of lib/core/event.h
#   one-liners  each bpftrace command of lib/doc/tracing.md reports a lock that is then acquired
#
# Without readelf, or if the system permits no tracing, a test is skipped.
set -eu
export LC_ALL=C.UTF-8

build=$(cd "$1" && pwd)
cd "$(dirname "$0")/../.."
page=lib/doc/tracing.md
work=$(mktemp -d)
tracer=

finish() {
    if [ -n "$tracer" ]; then
        kill -INT "$tracer" 2>/dev/null || true
        status=0
        wait "$tracer" || status=$?
        case $status in
        124 | 137) echo "bpftrace hangs" >>"$work/problems" ;;
        esac
        tracer=
    fi
}
trap 'finish; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

# result NAME: prints `not ok`, and $work/problems, if that file has a line
count=0
failed=0
result() {
    count=$((count + 1))
    if [ -s "$work/problems" ]; then
        failed=1
        echo "not ok $count - $1"
        sed 's/^/# /' "$work/problems"
    else
        echo "ok $count - $1"
    fi
    : >"$work/problems"
}

skip() { # NAME WHY
    count=$((count + 1))
    echo "ok $count - $1 # SKIP $2"
}

: >"$work/problems"
echo 1..3

# ------------------------------------------------------------------------------------------- notes

if command -v readelf >/dev/null; then
    sed -n 's/^ *EVENT(\([a-z_]*\),.*/\1 6/p' lib/core/event.h | sort >"$work/events"
    readelf -n "$build/lib/libredlock.so" | awk '
        /Provider:/ { provider = $2 }
        /Name:/ { name = $2 }
        /Semaphore:/ { has_semaphore = !/Semaphore: 0x0*$/ }
        /Arguments:/ && provider == "redlock" && has_semaphore { print name, NF - 1 }
    ' | sort >"$work/probes"
    diff "$work/events" "$work/probes" >"$work/problems" || true
    result 'a probe for each event'
else
    skip 'a probe for each event' 'no readelf'
fi

# -------------------------------------------------------------------------------------- one-liners

# Prints the program of the n-th bpftrace command of the page.
program_of() {
    awk -v wanted="$1" -v quote="'" '
        index($0, "bpftrace -e " quote) == 1 {
            count++
            is_inside = 1
            sub("^bpftrace -e " quote, "")
        }
        is_inside && count == wanted {
            is_last = sub(quote "$", "")
            print
            if (is_last) { exit }
        }
    ' "$page" | sed "s|build/lib/|$build/lib/|"
}

# run_traced RUNS: runs bpftrace and meanwhile, RUNS times, a program that holds a lock for 1 s. One
# that hangs is ended, which is a problem.
run_traced() {
    # A shell's background jobs ignore SIGINT: until bpftrace has attached, it would not end by it.
    env --default-signal=INT timeout --kill-after 10 --signal INT 120 \
        bpftrace "$work/program.bt" >"$work/told" 2>&1 &
    tracer=$!
    for _ in $(seq "$1"); do
        # The URIs are a list of words.
        # shellcheck disable=SC2086
        timeout 120 "$build/examples/trace" orders:42 $REDLOCK_NODES >"$work/out" ||
            echo "examples/trace ends with $?, after: $(cat "$work/out")" >>"$work/problems"
    done
    finish
}

# traces N TEXT: the n-th command must print the text; the time that it needs to attach is unknown
traces() {
    program_of "$1" >"$work/program.bt"
    for runs in 2 4 8 16; do
        run_traced $runs
        if grep -q "$2" "$work/told"; then
            return
        fi
    done
    cat "$work/program.bt" "$work/told" >>"$work/problems"
}

if bpftrace -e 'BEGIN { exit() }' >/dev/null 2>&1 &&
    [ -e /sys/bus/event_source/devices/uprobe ]; then
    traces 1 '@us\[REDLOCK_OK\]'
    result 'the times of acquisitions'
    traces 2 '@votes\[127.0.0.1:[0-9]*, queue, granted\]'
    result 'the votes of nodes'
else
    skip 'the times of acquisitions' 'nobody may trace here with bpftrace'
    skip 'the votes of nodes' 'nobody may trace here with bpftrace'
fi
exit $failed
