#!/bin/sh
# Compares the library with the floor: its commands through plain hiredis. Both run in turns, so
# that a busy machine slows down both, and the medians are compared. Ends with 1 when the library
# misses a bar.
#
#     sh bench/compare.sh [path of redlock-bench]
#
# RUNS, NODES, IN_FLIGHT and DURATION change the runs; FANOUT=quorum has the library ask a quorum of
# the masters first, while the floor asks all.
set -eu

bench=${1:-build/bench/redlock-bench}
runs=${RUNS:-5}
nodes=${NODES:-5}
in_flight=${IN_FLIGHT:-64}
duration=${DURATION:-3}
fanout=${FANOUT:-all}

if [ ! -x "$bench" ]; then
    echo "compare.sh: there is no $bench: build it first, or name it as the argument" >&2
    exit 2
fi

results=$(mktemp)
trap 'rm -f "$results"' EXIT
trap 'exit 130' INT TERM

# measure OPTION...: prints one line "kind cycles_per_s client_cpu_us_per_cycle", none after errors
measure() {
    "$bench" --spawn "$nodes" --in-flight "$in_flight" --duration "$duration" --json "$@" |
        sed 's/[{}",:]/ /g' |
        awk '{
            for (i = 1; i < NF; i++) value[$i] = $(i + 1)
            if (value["errors"] == 0)
                print value["kind"], value["cycles_per_s"], value["client_cpu_us_per_cycle"]
        }'
}

printf '%-10s %12s %16s\n' kind cycles/s 'CPU us/cycle'
run=0
while [ "$run" -lt "$runs" ]; do
    for kind in "--fanout $fanout" --floor; do
        # shellcheck disable=SC2086 # an option and its value
        line=$(measure $kind)
        if [ -z "$line" ]; then
            echo "compare.sh: a run failed" >&2
            exit 1
        fi
        echo "$line" >>"$results"
        echo "$line" | awk '{ printf "%-10s %12.0f %16.2f\n", $1, $2, $3 }'
    done
    run=$((run + 1))
done

# median KIND COLUMN: prints the median of a column over the runs
median() {
    awk -v kind="$1" -v column="$2" '$1 == kind { print $column }' "$results" | sort -n |
        awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'
}

awk -v cycles="$(median redlock 2)" -v floor_cycles="$(median floor 2)" \
    -v cpu="$(median redlock 3)" -v floor_cpu="$(median floor 3)" 'BEGIN {
        format = "%-22s %10.2f redlock %10.2f floor   ratio %5.2f, bar %s %.1f: %s\n"
        speed = cycles / floor_cycles
        cost = cpu / floor_cpu
        printf "\nmedians\n"
        printf format, "cycles/s", cycles, floor_cycles, speed, ">=", 1.1,
            (speed >= 1.1) ? "met" : "missed"
        printf format, "client CPU us/cycle", cpu, floor_cpu, cost, "<=", 0.8,
            (cost <= 0.8) ? "met" : "missed"
        exit !(speed >= 1.1 && cost <= 0.8)
    }'
