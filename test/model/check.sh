#!/bin/sh
# Searches the model with spin, in each configuration of the table below, and compares the results
# with the expected ones. Prints TAP; exits with 0 only if all results are as expected.
#
#     sh test/model/check.sh FOLDER [NAME]...     all, or only these; creates FOLDER if needed
#     sh test/model/check.sh FOLDER part I/N      of every N lines of the table the I-th
#     sh test/model/check.sh FOLDER trace NAME    a violation, step by step
#
# Each run works in FOLDER/NAME, and keeps its verifier, its report and its trail there.
set -euf
export LC_ALL=C

here=$(cd "$(dirname "$0")" && pwd)
model=$here/waiting.pml

# NAME EXPECTED SWITCHES...
#
# EXPECTED is "holds" (the search must then have been exhaustive), or the property that must be
# violated; for a probe, "unseen". SERVED searches for cycles on which a waiter waits forever.
# A trace is searched with NAMED: nodes keep their names.
table() {
    cat <<'END'
served                  holds   SERVED
served_by_two           holds   SERVED ONE_DOWN LOSSES DEATHS CHANNELS
served_by_three         holds   SERVED DEATHS
no_deadlock             holds   ONE_DOWN LOSSES DEATHS CHANNELS
probe_handed_over       unseen  ONE_DOWN PROBE=HANDED_OVER
probe_split             unseen  ONE_DOWN PROBE=SPLIT
probe_passed_to_old     unseen  ONE_DOWN PROBE=PASSED_TO_OLD
probe_served_by_requeue unseen  ONE_DOWN PROBE=SERVED_BY_REQUEUE
mutant_no_requeue       served  SERVED ONE_DOWN MUTANT_NO_REQUEUE
mutant_late_requeue     served  SERVED ONE_DOWN TTL=2 RESERVATION=2
mutant_no_poll          served  SERVED ONE_DOWN LOSSES MUTANT_NO_POLL
END
}

usage() {
    sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
    exit 2
}

# field REPORT PATTERN: prints the first number of the line that has PATTERN
field() {
    sed -n "s/^$2.*/\1/p" "$1" | head -n 1
}

# as_options SWITCH...: prints the switches as options of spin
as_options() {
    printf ' -D%s' "$@"
}

# search EXPECTED SWITCH...: makes a verifier in this folder, and runs it
search() {
    expected=$1
    shift
    # Lists of words.
    # shellcheck disable=SC2046
    spin -a $(as_options "$@") "$model" >spin.log 2>&1 || return 1
    # A search that finds something is shorter than an optimized compilation.
    how=-O0
    [ "$expected" != holds ] || how=-O1
    kind=-DSAFETY
    cycles=
    case " $* " in
    *' SERVED '*)
        kind=
        cycles=-a
        ;;
    esac
    # shellcheck disable=SC2086
    ${CC:-cc} -w $kind -DNOREDUCE -DNOBOUNDCHECK -DMEMLIM=6000 $how -o pan pan.c \
        >cc.log 2>&1 || return 1
    # shellcheck disable=SC2086
    ./pan -w24 -m300000 $cycles >report 2>&1
}

# found: prints the result of the search in this folder: "holds", the property's name, or why there
# is no result
found() {
    if [ ! -f report ]; then
        echo 'not built'
    elif grep -q 'max search depth too small' report; then
        echo 'truncated'
    elif grep -q 'assertion violated' report; then
        sed -n 's/.*assertion violated (*\([a-z_]*\).*/\1/p' report | head -n 1
    elif grep -q 'acceptance cycle' report; then
        echo 'served'
    elif grep -q 'errors: [1-9]' report; then
        echo 'another error'
    elif grep -q 'Search not completed\|out of memory\|memory limit' report; then
        echo 'not exhaustive'
    elif grep -q 'errors: 0$' report; then
        echo 'holds'
    else
        echo 'nothing'
    fi
}

number=0
failures=0

# run NAME EXPECTED SWITCH...
run() {
    name=$1
    expected=$2
    shift 2
    rm -rf "${folder:?}/$name"
    mkdir -p "$folder/$name"
    cd "$folder/$name"
    search "$expected" "$@" || true
    result=$(found)
    number=$((number + 1))
    verdict=ok
    if [ "$result" != "$expected" ]; then
        verdict='not ok'
        failures=$((failures + 1))
    fi
    states=$(field report ' *\([0-9.e+]*\) states, stored' 2>/dev/null) || true
    depth=$(field report '.*depth reached \([0-9]*\)' 2>/dev/null) || true
    seconds=$(field report '.*elapsed time \([0-9.]*\)' 2>/dev/null) || true
    echo "$verdict $number - $name: $result"
    if [ "$verdict" != ok ]; then
        echo "# expected: $expected; see $folder/$name"
    fi
    printf '# | %-24s | %-9s | %9s | %7s | %6s |\n' "$name" "$result" "${states:--}" \
        "${depth:--}" "${seconds:--}"
    cd "$here"
}

# run_all: runs the lines of the table on its input
run_all() {
    printf '# | %-24s | %-9s | %9s | %7s | %6s |\n' configuration found states depth seconds
    while read -r name expected switches; do
        # shellcheck disable=SC2086
        run "$name" "$expected" $switches
    done
}

trace() {
    line=$(table | awk -v name="$1" '$1 == name')
    if [ -z "$line" ]; then
        usage
    fi
    # shellcheck disable=SC2086
    set -- $line NAMED
    name=$1
    expected=$2
    shift 2
    run "$name" "$expected" "$@" >&2
    cd "$folder/$name"
    if [ ! -f waiting.pml.trail ]; then
        echo "$name: there is no trace" >&2
        exit 1
    fi
    # shellcheck disable=SC2046
    spin -t -T -k waiting.pml.trail $(as_options "$@") "$model" >replay
    grep -E '^ *(client|node|the |a |A |<<<)' replay | awk '!/^ *A / { printf "%2d. ", ++step } { print }'
}

if [ $# -lt 1 ]; then
    usage
fi
mkdir -p "$1"
folder=$(cd "$1" && pwd)
shift

case ${1:-} in
trace)
    [ $# -eq 2 ] || usage
    trace "$2"
    exit 0
    ;;
'') lines=$(table) ;;
part)
    [ $# -eq 2 ] || usage
    lines=$(table | awk -v part="${2%/*}" -v parts="${2#*/}" \
        'NR % parts == part % parts')
    ;;
*) lines=$(table | awk -v names=" $* " 'index(names, " " $1 " ")') ;;
esac
count=$(echo "$lines" | grep -c .) || usage

echo "1..$count"
run_all <<END
$lines
END
[ "$failures" -eq 0 ]
