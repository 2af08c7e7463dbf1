#!/bin/sh
# Runs the worlds of found.txt and, for each profile, a range of seeds that depends on the commit,
# so that each commit tests others. Exits with 0 only if no world violates an invariant; a range in
# which one does is also reported as "failed: ".
#
#     sh test/sim/worlds.sh REDLOCK_SIM [JOBS [DIVISOR]]
#
# DIVISOR divides the lengths of the ranges.
set -eu

sim=$1
jobs=${2:-1}
divisor=${3:-1}
here=$(dirname "$0")

# Without a repository (a release's archive) the ranges begin at 1.
commit=$(git -C "$here" rev-parse --short=7 HEAD 2>/dev/null || echo 0)
draw=$((0x$commit % 100))

# range PROFILE COUNT: prints the range in four pieces
range() {
    piece=$(($2 / divisor / 4))
    for i in 0 1 2 3; do
        first=$((draw * piece * 4 + i * piece + 1))
        echo "$1 $first..$((first + piece - 1))"
    done
}

{
    range kept 2000
    range guarded 1000
    range moving 1000
    range broken 1000
    range load 40
    range distance 200
    grep -v '^#' "$here/found.txt"
} | xargs -P "$jobs" -L 1 sh -c '
    status=0
    out=$("$0" --profile "$1" --seeds "$2" --json 2>&1) || status=1
    printf "%s\n" "$out"
    [ "$status" -eq 0 ] || echo "failed: $1 $2, $(echo "$out" | head -n 1)"
    exit "$status"' "$sim"
