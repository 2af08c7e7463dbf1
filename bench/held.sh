#!/bin/sh
# Measures many held locks that renew themselves, in four cases:
#
#   share  no incident: 1,000 locks take at most 15 script calls a second at a master, renewals and
#          heartbeats (worst run)
#   busy   the application keeps the loop busy for 4 s: no run loses a lock
#   quiet  no incident: a 10 ms timer of the application is late by at most 20 ms (median of the
#          worst of each run)
#   stop   three of five masters stop: the client's CPU time is less than twice its CPU time before
#          (median of the ratios)
#
#     sh bench/held.sh [path of redlock-bench]
#
# Without an argument, builds redlock-bench first if needed. Exits with 1 if a bar is missed or a
# run failed. RUNS, NODES, LOCKS, TTL, SHARE_LOCKS, SHARE_TTL, SHARE_DURATION, BUSY, BUSY_DURATION,
# QUIET_DURATION, STOP, STOP_LOCKS, STOP_TTL and STOP_DURATION change the runs (times of locks in ms,
# durations in s), and ONLY="busy stop" selects them.
set -eu
export LC_ALL=C.UTF-8

runs=${RUNS:-5}
nodes=${NODES:-5}
locks=${LOCKS:-100000}
ttl=${TTL:-9000}
share_locks=${SHARE_LOCKS:-1000}
share_ttl=${SHARE_TTL:-10000}
share_duration=${SHARE_DURATION:-10}
busy=${BUSY:-4000}
busy_duration=${BUSY_DURATION:-25} # so that it begins when the renewals are about to
quiet_duration=${QUIET_DURATION:-20}
stop=${STOP:-3}
stop_locks=${STOP_LOCKS:-10000}
stop_ttl=${STOP_TTL:-10000}
stop_duration=${STOP_DURATION:-30} # a third of it is one TTL
only=${ONLY:-share busy quiet stop}

log=$(mktemp)
results=$(mktemp)
trap 'rm -f "$log" "$results"' EXIT
trap 'exit 130' INT TERM

if [ $# -gt 0 ]; then
    bench=$1
else
    cd "$(dirname "$0")/.."
    build=build
    bench=$build/bench/redlock-bench
    if ! { [ -f $build/meson-private/coredata.dat ] || meson setup $build; } >"$log" 2>&1 ||
        ! meson compile -C $build redlock-bench >"$log" 2>&1; then
        cat "$log" >&2
        exit 1
    fi
fi
if [ ! -x "$bench" ]; then
    echo "held.sh: there is no $bench: build it first, or name it as the argument" >&2
    exit 2
fi

# hold LOCKS TTL DURATION [OPTION]...: runs once, and writes the result to $log; exits on failure
hold() {
    held=$1
    held_ttl=$2
    held_duration=$3
    shift 3
    if ! "$bench" --spawn "$nodes" --held "$held" --ttl "$held_ttl" --duration "$held_duration" \
        --json "$@" >"$log"; then
        echo "held.sh: a run failed" >&2
        exit 1
    fi
}

# field NAME: prints the value of a field of the last run
field() {
    sed -n "s/.*\"$1\": \([0-9.e+-]*\).*/\1/p" "$log"
}

# record KIND VALUE: records a value for the summary, and prints the run
record() {
    echo "$1 $2" >>"$results"
    printf '%-6s %10s   held %s, lost %s, %.0f renewals/s, %.3f cores, %.0f MB, left %s; load %s\n' \
        "$1" "$2" "$(field held)" "$(field lost)" "$(field renewals_per_s)" \
        "$(field client_cores)" "$(field rss_mb)" "$(field left)" "$(cut -d ' ' -f 1 /proc/loadavg)"
}

run_share() {
    hold "$share_locks" "$share_ttl" "$share_duration"
    record share "$(field script_calls_per_s | awk '{ printf "%.1f", $1 }')"
    echo "key $(awk -v us="$(field script_us_per_s)" -v renewals="$(field renewals_per_s)" \
        'BEGIN { printf "%.1f", us / renewals }')" >>"$results"
}

run_busy() {
    hold "$locks" "$ttl" "$busy_duration" --busy "$busy"
    record busy "$(field lost)"
}

# latest: prints the maximum lateness of the last run
latest() {
    field max | awk '{ printf "%.1f", $1 }'
}

# run_quiet: runs with one lock first, to show how punctual the machine is at present
run_quiet() {
    hold 1 "$ttl" 5
    record alone "$(latest)"
    hold "$locks" "$ttl" "$quiet_duration"
    record quiet "$(latest)"
    echo "work $(field timer_late_work_ms | awk '{ printf "%.1f", $1 }')" >>"$results"
}

run_stop() {
    hold "$stop_locks" "$stop_ttl" "$stop_duration" --stop "$stop"
    record stop "$(awk -v stopped="$(field client_cores_stopped)" \
        -v before="$(field client_cores_before)" 'BEGIN { printf "%.2f", stopped / before }')"
}

echo 'share: script calls/s; busy: locks lost; alone, quiet: ms late; stop: CPU ratio'
run=0
while [ "$run" -lt "$runs" ]; do
    for kind in $only; do
        case $kind in
        share) run_share ;;
        busy) run_busy ;;
        quiet) run_quiet ;;
        stop) run_stop ;;
        *)
            echo "held.sh: ONLY: there is no \"$kind\"" >&2
            exit 2
            ;;
        esac
    done
    run=$((run + 1))
done

# values_of KIND: prints the recorded values of a kind, in order
values_of() {
    awk -v kind="$1" '$1 == kind { print $2 }' "$results" | sort -g
}

median() {
    values_of "$1" | awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'
}

worst() {
    values_of "$1" | tail -n 1
}

status=0

# judge VALUE BAR TEXT: prints the verdict on one kind, and records a miss
judge() {
    if awk -v value="$1" -v bar="$2" 'BEGIN { exit !(value <= bar) }'; then
        verdict=met
    else
        verdict=missed
        status=1
    fi
    printf '%s: %s, bar %s: %s\n' "$3" "$1" "$2" "$verdict"
}

echo
for kind in $only; do
    case $kind in
    share) judge "$(worst share)" 15 "share  $share_locks locks, TTL $share_ttl ms: script calls a second at a master, worst of $runs ($(median key) us a key)" ;;
    busy) judge "$(worst busy)" 0 "busy   $locks locks, TTL $ttl ms, loop busy for $busy ms: lost, worst of $runs" ;;
    quiet) judge "$(median quiet)" 20 "quiet  $locks locks, TTL $ttl ms: worst lateness of a 10 ms timer in ms, median of $runs (the client worked for $(median work) of them; $(median alone) with one lock)" ;;
    stop) judge "$(median stop)" 2.0 "stop   $stop_locks locks, TTL $stop_ttl ms, $stop of $nodes masters stop: CPU ratio, median of $runs" ;;
    esac
done
exit "$status"
