#!/bin/sh
# Compares the loops that the library can run on with libevent, and a client that threads share
# (redlock/mt.h) with one that belongs to the loop's thread. All run in turns, so that a busy machine
# slows down each of them, and the medians are compared. Exits with 1 if a shared client misses a
# bar.
#
#     sh bench/loops.sh [path of redlock-bench]
#
# RUNS, NODES, DURATION (seconds) and LOOPS (without libevent and mt, which always run) change the
# runs.
set -eu
export LC_ALL=C.UTF-8

here=$(cd "$(dirname "$0")" && pwd)
bench=${1:-build/bench/redlock-bench}
runs=${RUNS:-5}
nodes=${NODES:-5}
duration=${DURATION:-2}
loops=${LOOPS:-uv ev glib sd epoll}

fields='cycles_per_s acquire_us.p50 client_cpu_us_per_cycle'
# shellcheck source=bench/turns.sh
. "$here/turns.sh"

# options_of LOOP IN_FLIGHT
options_of() {
    case $1,$2 in
    libevent,*) echo "--in-flight $2" ;;
    mt,1) echo "--mt 1" ;;
    mt,*) echo "--mt 0 --in-flight $2" ;;
    *) echo "--loop $1 --in-flight $2" ;;
    esac
}

run=0
while [ "$run" -lt "$runs" ]; do
    run=$((run + 1))
    echo "run $run of $runs" >&2
    for many in 1 64; do
        for loop in libevent $loops mt; do
            # shellcheck disable=SC2046 # several options
            record "$loop" "$many" $(options_of "$loop" "$many")
        done
    done
done

awk -v order="libevent $loops mt" "$(cat "$here/median.awk")"'
    function ratio(loop, many, index_of) {
        return middle(loop, many, index_of) / middle("libevent", many, index_of)
    }

    function check(what, number, bar, is_met) {
        printf "%s: %.2f, bar %.2f: %s\n", what, number, bar, is_met ? "met" : "missed"
        missed += !is_met
    }

    END {
        print "| loop | p50 of an acquisition, 1 in flight | by libevent |" \
            " cycles/s, 64 in flight | by libevent | CPU of the client | by libevent |"
        print "|---|---|---|---|---|---|---|"
        last = split(order, loops, " ")
        for (k = 1; k <= last; k++) {
            loop = loops[k]
            printf "| %s | %.0f us | %.2f | %.0f | %.2f | %.2f us | %.2f |\n", loop, \
                middle(loop, 1, 2), ratio(loop, 1, 2), middle(loop, 64, 1), ratio(loop, 64, 1), \
                middle(loop, 64, 3), ratio(loop, 64, 3)
        }
        print ""
        missed = 0
        blocking = ratio("mt", 1, 2)
        callbacks = ratio("mt", 64, 1)
        check("one thread that blocks, p50 by libevent", blocking, 1.3, blocking <= 1.3)
        check("64 callbacks, cycles/s by libevent", callbacks, 0.5, callbacks >= 0.5)
        exit missed > 0
    }' "$results"
