#!/bin/sh
# Prints what many clients cost a master, and what waiters cost the cycles of others, as the tables
# of bench/README.md.
#
#     sh bench/fleet.sh [path of redlock-bench]
#
# Without an argument, redlock-bench is first built as a release (release.sh). Exits with 1 if a run
# failed.
#
# CLIENTS, NODES, DURATION (of each state, in s), WAITERS="1 1000", IN_FLIGHT="64 256 1024" and
# MIXED_DURATION (of each kind of stretch, in s) change the runs.
set -eu
export LC_ALL=C.UTF-8

clients=${CLIENTS:-1000}
nodes=${NODES:-5}
duration=${DURATION:-10}
waiters=${WAITERS:-1 1000}
in_flight=${IN_FLIGHT:-64 256 1024}
mixed_duration=${MIXED_DURATION:-5}
here=$(cd "$(dirname "$0")" && pwd)

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

# run OPTION...: runs the benchmark once, and writes "NAME VALUE" lines to $work/result
run() {
    if ! "$bench" --spawn "$nodes" --json "$@" >"$work/json"; then
        echo "fleet.sh: failed: redlock-bench --spawn $nodes $*" >&2
        exit 1
    fi
    awk -f "$here/flatten.awk" "$work/json" >"$work/result"
}

# row TITLE FORMAT NAME...: prints a row of a table, with these fields of the last run
row() {
    title=$1
    format=$2
    shift 2
    awk -v title="$title" -v format="$format" -v names="$*" '
        { value[$1] = $2 }
        END {
            count = split(names, name, " ")
            split(format, formats, " ")
            printf "| %s |", title
            for (i = 1; i <= count; i++)
                printf " " formats[i] " |", value[name[i]]
            printf "\n"
        }' "$work/result"
}

# cost_row TITLE NAME BYSTANDER (none: nothing was measured, and the column stays empty)
cost_row() {
    row "$1" '%.2f %.1f %.0f %.0f %.0f %s' "$2.seconds" "$2.commands" "$2.bytes_in" "$2.bytes_out" \
        "$2.cpu_us" "$3.timeouts"
}

# state_row TITLE NAME
state_row() {
    row "$1" '%.1f %.0f %.0f %.0f %.0f %.0f' "$2.commands_per_s" "$2.bytes_in_per_s" \
        "$2.bytes_out_per_s" "$2.cpu_us_per_s" "$2.connections" "$2.connection_bytes"
}

print_fleet() {
    run --fleet "$clients" --duration "$duration"
    echo '| per client and second | commands | bytes in | bytes out | CPU in us | connections in all | bytes of a connection |'
    echo '|---|---|---|---|---|---|---|'
    state_row idle idle
    state_row 'a cycle a second' working
    state_row holding holding
    state_row waiting waiting
    state_row 'idle, after waiting' waited
    echo
    echo '| per client | s in all | commands | bytes in | bytes out | CPU in us | timeouts of another |'
    echo '|---|---|---|---|---|---|---|'
    cost_row 'all connect' connect none
    cost_row 'the master restarts, all wait' restart_waiting bystander_waiting
    cost_row 'the master restarts, all idle' restart bystander
}

print_mixed() {
    echo '| waiters | in flight | cycles/s before | waiting | after | ratio, waiting | after |'
    echo '|---|---|---|---|---|---|---|'
    for waiting in $waiters; do
        for number in $in_flight; do
            run --mixed "$waiting" --in-flight "$number" --duration "$mixed_duration"
            row "$waiting | $number" '%.0f %.0f %.0f %.2f %.2f' cycles_per_s.before \
                cycles_per_s.waiting cycles_per_s.after ratio.waiting ratio.after
        done
    done
}

if [ $# -gt 0 ]; then
    bench=$1
else
    bench=$(sh "$here/release.sh")
fi
if [ ! -x "$bench" ]; then
    echo "fleet.sh: there is no $bench: build it first, or name it as the argument" >&2
    exit 2
fi
print_fleet
echo
print_mixed
