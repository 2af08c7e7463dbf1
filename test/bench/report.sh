#!/bin/sh
# Checks with short runs that the report of bench/report.sh has numbers and plots.
#
#     sh test/bench/report.sh PATH-OF-redlock-bench
set -eu
export LC_ALL=C.UTF-8

here=$(cd "$(dirname "$0")" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 130' INT TERM

die() {
    cat "$folder/report.md"
    echo "failed: $*"
    exit 1
}

RUNS=2 NODES=3 DURATION=0.1 IN_FLIGHT='1 8' RATE=500 HELD=100 HELD_TTL=1500 HELD_DURATION=1 \
    WAITERS=2 WAITERS_DURATION=0.3 REDLOCK_BENCH=$1 \
    sh "$here/../../bench/report.sh" --to "$folder" "$here/patient.sh"

plots=0
for plot in "$folder"/*.svg; do
    grep -q '<polyline' "$plot" || die "$plot has no curve"
    [ "$(tail -n 1 "$plot")" = '</svg>' ] || die "$plot has no end"
    # The longest mark of the y axis ends at the axis, and leaves room for the title.
    awk -F '"' '/text-anchor="end"/ {
        mark = $9; gsub(/^>|<.*/, "", mark)
        if ($2 - 7.5 * length(mark) < 26) exit 1
    }' "$plot" || die "$plot has a mark that runs through a title"
    grep -q '<line x1="\([0-9.]*\)" y1="[0-9.]*" x2="\1".*stroke="#' "$plot" ||
        die "$plot has no spread"
    ! grep -Eiq '[">, (-](nan|inf)' "$plot" || die "$plot has a number that is none"
    grep -qF "($(basename "$plot"))" "$folder/report.md" || die "$plot is not shown"
    plots=$((plots + 1))
done
[ "$plots" -eq 10 ] || die "there are $plots plots"
[ "$(grep -c '^| 8 | [0-9]' "$folder/report.md")" -eq 8 ] || die 'rows of 8 in flight are missing'
! grep -Eiq '[| ]-?(nan|inf)' "$folder/report.md" || die 'a number is none'
grep -qx 'Errors in all runs: 0.' "$folder/report.md" || die 'there were errors'
