#!/bin/sh
# Runs the long forms of the tests, one after the other, and writes one report, in Markdown:
#
#     sh test/nightly.sh [REPORT]
#
# REPORT is build-nightly/report.md unless given. Each step has a time limit. A step that fails does
# not stop the others; the report ends with the last lines of each failed step. A step that this
# machine cannot run (another system or network needs root) is reported as not checked. Exits with 0
# only if no step failed.
#
# SCALE=100 divides seconds, seeds and runs by 100, to test this script. The unit tests then replace
# all tests, and one other system replaces all systems.
set -eu
export LC_ALL=C.UTF-8

cd "$(dirname "$0")/.."

build='build-nightly'
sim=$build/test/sim/redlock-sim
chaos=$build/test/chaos/redlock-chaos
cores=$(nproc)
scale=${SCALE:-1}
case $scale in
'' | 0* | *[!0-9]*)
    echo "nightly.sh: SCALE is a number from 1" >&2
    exit 2
    ;;
esac
case ${1:-} in
-*)
    sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac
mkdir -p "$build"
report=${1:-$build/report.md}

work=$(mktemp -d)
: >"$work/failures"
running=
# `timeout` has its own process group, which it ends when it is ended itself.
finish() {
    if [ -n "$running" ]; then
        kill "$running" 2>/dev/null || true
        wait "$running" || true
    fi
    cat "$work/failures" >>"$report"
    rm -rf "$work"
}
trap finish EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

# scaled NUMBER [LEAST]
scaled() {
    number=$(($1 / scale))
    [ "$number" -ge "${2:-1}" ] || number=${2:-1}
    echo "$number"
}

failed=0
# step NAME MINUTES COMMAND...: runs a step with a limit of MINUTES
step() {
    name=$1
    minutes=$2
    shift 2
    echo "=== $name"
    begun=$(date +%s)
    status=0
    timeout -k 60 "${minutes}m" "$@" >"$work/log" 2>&1 &
    running=$!
    wait "$running" || status=$?
    running=
    took=$(($(date +%s) - begun))
    case $status in
    0) result=good ;;
    77) result='not checked' ;;
    124 | 137) result="failed: not done after $minutes minutes" ;;
    *) result='failed' ;;
    esac
    said=$(tail -n 1 "$work/log" | tr -d '|`' | cut -c 1-120)
    printf '| %s | %s | %d:%02d:%02d | %s |\n' "$name" "$result" \
        $((took / 3600)) $((took / 60 % 60)) $((took % 60)) "$said" >>"$report"
    echo "=== $name: $result, $took s"
    case $result in
    failed*)
        failed=$((failed + 1))
        {
            printf '\n## %s\n\nended with %d:\n\n    %s\n\n' "$name" "$status" "$*"
            printf 'Its last lines:\n\n'
            tail -n 60 "$work/log" | sed 's/^/    /'
        } >>"$work/failures"
        ;;
    esac
}

# ranges PROFILE SEEDS: prints the seeds 1 to SEEDS in four pieces for each core
ranges() {
    seeds=$(scaled "$2" $((cores * 4)))
    piece=$(((seeds + cores * 4 - 1) / (cores * 4)))
    first=1
    while [ "$first" -le "$seeds" ]; do
        last=$((first + piece - 1))
        [ "$last" -le "$seeds" ] || last=$seeds
        echo "$1 $first..$last"
        first=$((last + 1))
    done
}

suites=
themes='--suite integration'
checked='--suite unit --suite integration --suite sim --suite fuzz --suite chaos --suite examples'
rows=
packages=
if [ "$scale" -gt 1 ]; then
    suites='--suite unit'
    themes='--suite unit'
    checked='--suite unit'
    rows='trixie-redis -- --suite unit'
    packages=bookworm
fi

cat >"$report" <<END
# Nightly run

$(git rev-parse --short HEAD 2>/dev/null || echo 'no commit') on $(uname -srm) with $cores cores,
begun at $(date -u '+%Y-%m-%d %H:%M') UTC; lengths divided by $scale.

| step | result | time | last line |
|---|---|---|---|
END

# $suites, $themes, $checked, $packages and $rows are lists of words.
# shellcheck disable=SC2086
{
    step 'all tests' 60 env TEST_ARGS='--no-suite worlds --no-suite mutants' \
        sh test/run.sh --all --build "$build" --werror $suites
    step 'on the pollable loop' 60 env REDLOCK_TEST_LOOP=pollable \
        sh test/run.sh --build "$build" --werror $themes
    step 'mutants' 60 sh test/run.sh --build "$build" --werror --suite mutants
    {
        ranges kept 400000
        ranges broken 200000
        ranges guarded 200000
        ranges moving 170000
        ranges distance 20000
        ranges load 10000
    } >"$work/ranges"
    # The simulator's name and a range are the arguments of the inner script.
    # shellcheck disable=SC2016
    step 'a million seeds' 600 xargs -a "$work/ranges" -P "$cores" -L 1 \
        sh -c '"$0" --profile "$1" --seeds "$2" --json' "$sim"
    step 'chaos' 60 "$chaos" --seconds "$(scaled 1800 10)"
    # shellcheck disable=SC2016
    step 'chaos on hosts of their own' 60 sh -c 'unshare --net true || exit 77; exec "$@"' - \
        "$chaos" --seconds "$(scaled 900 10)" --hosts
    step 'fuzz' 120 sh test/fuzz/run.sh "$(scaled 1800 5)" "$build-fuzz"
    step 'sanitizers' 120 sh test/run.sh --all --build "$build-sanitize" --werror --sanitize $suites
    step 'valgrind' 240 env TEST_ARGS='--no-suite worlds' \
        sh test/run.sh --build "$build" --werror --valgrind $checked
    step 'busy machine' 360 sh test/busy.sh --build "$build" --runs "$(scaled 5)" $suites
    # shellcheck disable=SC2016
    step 'Debian packages' 120 sh -c '[ "$(id -u)" -eq 0 ] || exit 77; exec sh test/debian.sh "$@"' - \
        $packages
    # shellcheck disable=SC2016
    step 'other systems' 600 sh -c '[ "$(id -u)" -eq 0 ] || exit 77; exec sh test/matrix.sh "$@"' - \
        $rows
}

if [ "$failed" -eq 0 ]; then
    printf '\nNo step failed.\n' >>"$report"
else
    printf '\n%d steps failed.\n' "$failed" >>"$report"
fi
echo "the report: $report"
[ "$failed" -eq 0 ]
