#!/bin/sh
# Runs the tests that use real time several times in a row on a busy machine, to show that they
# depend on the order of events and not on the machine's speed. Exits with 0 only if no test failed;
# prints each failed test and its run.
#
#     sh test/busy.sh [--runs N] [--loops N] [--build FOLDER] [--suite NAME]...
#
#     --runs N        number of runs (default: 5)
#     --loops N       number of busy loops for each core (default: 4)
#     --build FOLDER  a folder in which everything is already built (default: build)
#     --suite NAME    this suite instead of integration, torture, chaos and examples
#
# TEST_ARGS is passed to `meson test`: for instance the names of the tests to run.
set -eu
export LC_ALL=C.UTF-8

cd "$(dirname "$0")/.."

usage() {
    sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
    exit 2
}

number() {
    case $1 in
    '' | 0 | *[!0-9]*) usage ;;
    esac
    echo "$1"
}

runs=5
loops=4
build=build
suites=
while [ $# -gt 0 ]; do
    [ $# -gt 1 ] || usage
    case $1 in
    --runs) runs=$(number "$2") ;;
    --loops) loops=$(number "$2") ;;
    --build) build=$2 ;;
    --suite) suites="$suites --suite $2" ;;
    *) usage ;;
    esac
    shift 2
done
suites=${suites:---suite integration --suite torture --suite chaos --suite examples}

[ -f "$build/build.ninja" ] || {
    echo "busy.sh: nothing is built in $build: sh test/run.sh builds it" >&2
    exit 2
}
meson compile -C "$build" >/dev/null

# Ends by itself when this script has ended, even after SIGKILL.
keep_busy() {
    while kill -0 "$1" 2>/dev/null; do
        turns=100000
        while [ "$turns" -gt 0 ]; do
            turns=$((turns - 1))
        done
    done
}

# The shell handles signals while it waits for a background job, but not for a foreground job.
busy=
tests=
end_all() {
    [ -z "$tests" ] || kill -TERM "$tests" 2>/dev/null || true
    for pid in $busy; do
        kill "$pid" 2>/dev/null || true
    done
    wait
}
trap end_all EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

count=$(($(nproc) * loops))
echo "$runs runs beside $count busy loops on $(nproc) cores"
while [ "$count" -gt 0 ]; do
    keep_busy $$ &
    busy="$busy $!"
    count=$((count - 1))
done

failed=
run=1
while [ "$run" -le "$runs" ]; do
    rm -f "$build"/meson-logs/testlog.txt
    begun=$(date +%s)
    # $suites and TEST_ARGS are lists of words.
    # shellcheck disable=SC2086
    meson test -C "$build" --no-rebuild --timeout-multiplier 10 $suites ${TEST_ARGS:-} \
        >"$build/busy.log" 2>&1 &
    tests=$!
    if wait "$tests"; then
        verdict=good
    else
        verdict=failed
        failed="$failed $run"
    fi
    tests=
    echo "run $run of $runs: $verdict, after $(($(date +%s) - begun)) s"
    if [ "$verdict" = failed ]; then
        if [ -f "$build/meson-logs/testlog.txt" ]; then
            sh test/failures.sh "$build" | sed "s/^/run $run: /"
        else
            cat "$build/busy.log"
        fi
    fi
    run=$((run + 1))
done

if [ -n "$failed" ]; then
    echo "failed in run$failed of $runs"
    exit 1
fi
echo "$runs runs without a failure"
