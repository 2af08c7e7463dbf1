#!/bin/sh
# Compares the library with the floor: the same commands through plain hiredis. Both run in turns,
# so that a busy machine slows down both, and the medians are compared. Exits with 1 if the library
# misses a bar.
#
#     sh bench/compare.sh [path of redlock-bench]
#
# RUNS, NODES, DURATION (seconds) and IN_FLIGHT (one number or several) change the runs.
set -eu
export LC_ALL=C.UTF-8

here=$(cd "$(dirname "$0")" && pwd)
bench=${1:-build/bench/redlock-bench}
runs=${RUNS:-5}
nodes=${NODES:-5}
in_flight=${IN_FLIGHT:-64 256 1024}
duration=${DURATION:-3}

fields='cycles_per_s client_cpu_us_per_cycle'
# shellcheck source=bench/turns.sh
. "$here/turns.sh"

printf '%-8s %9s %10s %13s\n' kind 'in flight' cycles/s 'CPU us/cycle'
run=0
while [ "$run" -lt "$runs" ]; do
    for many in $in_flight; do
        for kind in redlock floor; do
            floor=
            [ "$kind" = redlock ] || floor=--floor
            record "$kind" "$many" --in-flight "$many" $floor
            tail -n 1 "$results" | awk '{ printf "%-8s %9d %10.0f %13.2f\n", $1, $2, $3, $4 }'
        done
    done
    run=$((run + 1))
done

# A bar applies from its number in flight up to the next bar's.
printf '\nmedians  %9s %10s %10s %6s %6s   %8s %6s %6s %6s\n' \
    'in flight' cycles/s floor ratio bar 'CPU us' floor ratio bar
awk -v order="$in_flight" "$(cat "$here/median.awk")"'
    function speed_bar(many) {
        return many >= 1024 ? 1.85 : many >= 256 ? 1.9 : many >= 64 ? 1.7 : 1
    }

    function cost_bar(many) {
        return many >= 256 ? 0.38 : many >= 64 ? 0.4 : 0.9
    }

    END {
        missed = 0
        last = split(order, many, " ")
        for (k = 1; k <= last; k++) {
            n = many[k]
            cycles = middle("redlock", n, 1)
            floor_cycles = middle("floor", n, 1)
            cpu = middle("redlock", n, 2)
            floor_cpu = middle("floor", n, 2)
            speed = cycles / floor_cycles
            cost = cpu / floor_cpu
            met = speed >= speed_bar(n) && cost <= cost_bar(n)
            missed += !met
            printf "%-8s %9d %10.0f %10.0f %6.2f %6.2f   %8.2f %6.2f %6.2f %6.2f  %s\n", "", n, \
                cycles, floor_cycles, speed, speed_bar(n), cpu, floor_cpu, cost, cost_bar(n), \
                met ? "met" : "missed"
        }
        exit missed > 0
    }' "$results"
