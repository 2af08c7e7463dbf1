#!/bin/sh
# Searches the models with spin, in each configuration of the table below, and compares the results
# with the expected ones. Prints TAP; exits with 0 only if all results are as expected.
#
#     sh test/model/check.sh FOLDER [NAME]...     the suite, or only these; creates FOLDER if needed
#     sh test/model/check.sh FOLDER part I/N      of every N lines of the suite the I-th
#     sh test/model/check.sh FOLDER large         the larger searches, minutes each
#     sh test/model/check.sh FOLDER trace NAME    a violation, step by step
#
# Each run works in FOLDER/NAME, and keeps its verifier, its report and its trail there.
set -euf
export LC_ALL=C

here=$(cd "$(dirname "$0")" && pwd)

# GROUP NAME EXPECTED SWITCHES...
#
# EXPECTED is "holds" (the search must then have been exhaustive), or the property that must be
# violated; for a probe, "unseen". With NAMED the search is breadth first, for the shortest trace,
# and nodes and clients keep their names. With FENCES the model is fences.pml, with IN_QUEUE
# waiting.pml, otherwise redlock.pml. SERVED searches for cycles on which a waiter waits forever.
table() {
    cat <<'END'
suite two_clients         holds       TTL=3 QUEUE=3 LOSSES RESTARTS AMNESIA_DELAYED
suite three_clients       holds       TTL=2 QUEUE=2 CLIENTS=3
suite late_tries          holds       TTL=2 QUEUE=2 TOKENS=2
suite extensions          holds       TTL=3 QUEUE=2 RENEWALS LOSSES
suite extensions_restarts holds       TTL=2 QUEUE=2 RENEWALS LOSSES RESTARTS AMNESIA_DELAYED
suite broken_connections  holds       TTL=2 QUEUE=2 STRANDING LOSSES NOT_CLEANED
suite raising             holds       TTL=3 QUEUE=3 FENCED
suite fences              holds       FENCES
suite queue               holds       IN_QUEUE TTL=3 RESERVATION=2 QUEUE=2 DEATHS
suite queue_reservations  holds       IN_QUEUE TTL=3 RESERVATION=3 QUEUE=2
suite queue_losses        holds       IN_QUEUE TTL=2 RESERVATION=2 QUEUE=2 CANCELS DEATHS LOSSES
suite queue_slow_node     holds       IN_QUEUE TTL=2 RESERVATION=2 QUEUE=2 FREE=2
suite served              holds       IN_QUEUE TTL=3 RESERVATION=3 QUEUE=3 LIVE SERVED
suite served_by_two       holds       IN_QUEUE TTL=3 RESERVATION=3 QUEUE=3 LIVE SERVED ONE_DOWN LOSSES DEATHS CHANNELS
suite queue_in_order      holds       IN_QUEUE TTL=3 RESERVATION=3 QUEUE=3 LIVE ONE_DOWN LOSSES DEATHS CHANNELS

suite probe_holder_1      unseen      TTL=3 QUEUE=2 CLIENTS=3 PROBE=HOLDER_1 NAMED
suite probe_holder_2      unseen      TTL=3 QUEUE=2 CLIENTS=3 PROBE=HOLDER_2 NAMED
suite probe_holder_3      unseen      TTL=3 QUEUE=2 CLIENTS=3 PROBE=HOLDER_3 NAMED
suite probe_split_in_2    unseen      TTL=3 QUEUE=2 PROBE=SPLIT_IN_2
suite probe_split_in_3    unseen      TTL=3 QUEUE=2 CLIENTS=3 PROBE=SPLIT_IN_3
suite probe_late_set      unseen      TTL=3 QUEUE=2 PROBE=LATE_SET
suite probe_two_tries     unseen      TTL=2 QUEUE=2 TOKENS=2 PROBE=TWO_TRIES
suite probe_expired       unseen      TTL=3 QUEUE=2 PROBE=EXPIRED
suite probe_next_holder   unseen      TTL=3 QUEUE=2 PROBE=NEXT_HOLDER
suite probe_extended      unseen      TTL=3 QUEUE=2 RENEWALS PROBE=EXTENDED
suite probe_top_up        unseen      TTL=3 QUEUE=2 RENEWALS PROBE=TOP_UP
suite probe_loss_reported unseen      TTL=3 QUEUE=2 RENEWALS AMNESIA PROBE=LOSS_REPORTED
suite probe_raised        unseen      TTL=3 QUEUE=3 FENCED PROBE=RAISED
suite probe_out           unseen      TTL=3 QUEUE=2 AMNESIA_DELAYED PROBE=OUT_WHILE_HELD
suite probe_out_twice     unseen      TTL=3 QUEUE=2 AMNESIA_DELAYED PROBE=OUT_TWICE

suite probe_fence_at_once      unseen FENCES ONCE PROBE=REPORTED_AT_ONCE
suite probe_fence_raised       unseen FENCES ONCE PROBE=RAISED
suite probe_fence_raised_again unseen FENCES ONCE PROBE=RAISED_AGAIN
suite probe_fence_of_the_next  unseen FENCES ONCE PROBE=NEXT_FENCE
suite probe_fence_of_both      unseen FENCES ONCE PROBE=TWO_HOLDERS
suite probe_fence_stale        unseen FENCES ONCE PROBE=STALE

suite probe_queue_holder_1       unseen IN_QUEUE QUEUE=2 PROBE=HOLDER_1
suite probe_queue_holder_2       unseen IN_QUEUE QUEUE=2 PROBE=HOLDER_2
suite probe_queue_next_holder    unseen IN_QUEUE QUEUE=2 PROBE=NEXT_HOLDER
suite probe_pushed_quorum        unseen IN_QUEUE QUEUE=2 PROBE=PUSHED_QUORUM
suite probe_pushed_while_held    unseen IN_QUEUE QUEUE=2 PROBE=PUSHED_WHILE_HELD
suite probe_requeued             unseen IN_QUEUE QUEUE=2 PROBE=REQUEUED
suite probe_handed_over          unseen IN_QUEUE QUEUE=3 LIVE ONE_DOWN PROBE=PUSHED_QUORUM
suite probe_split                unseen IN_QUEUE QUEUE=3 LIVE ONE_DOWN PROBE=SPLIT
suite probe_passed_to_old        unseen IN_QUEUE QUEUE=3 LIVE ONE_DOWN PROBE=PASSED_TO_OLD
suite probe_served_by_requeue    unseen IN_QUEUE QUEUE=3 LIVE ONE_DOWN PROBE=SERVED_BY_REQUEUE

suite mutant_quorum_of_one         exclusive   TTL=2 QUEUE=2 MUTANT_QUORUM_OF_ONE ONLY_EXCLUSIVE
suite mutant_no_drift              exclusive   TTL=2 QUEUE=2 MUTANT_NO_DRIFT ONLY_EXCLUSIVE
suite mutant_validity_from_reply   exclusive   TTL=2 QUEUE=2 MUTANT_VALIDITY_FROM_REPLY ONLY_EXCLUSIVE
suite mutant_no_fresh_clock        exclusive   TTL=2 QUEUE=2 MUTANT_NO_FRESH_CLOCK ONLY_EXCLUSIVE
suite mutant_set_without_nx        exclusive   TTL=2 QUEUE=2 MUTANT_SET_WITHOUT_NX ONLY_EXCLUSIVE
suite mutant_release_without_token exclusive   TTL=2 QUEUE=2 MUTANT_RELEASE_WITHOUT_TOKEN ONLY_EXCLUSIVE
suite mutant_same_token            exclusive   TTL=2 QUEUE=3 LOSSES MUTANT_SAME_TOKEN ONLY_EXCLUSIVE
suite mutant_undo_only_granted     cleaned     TTL=2 QUEUE=2 MUTANT_UNDO_ONLY_GRANTED
suite mutant_counts_missing        exclusive   TTL=3 QUEUE=2 RENEWALS MUTANT_RENEWAL_COUNTS_MISSING ONLY_EXCLUSIVE
suite mutant_old_answers_count     kept        TTL=3 QUEUE=3 RENEWALS MUTANT_OLD_ANSWERS_COUNT
suite mutant_late_renewal          not_revived TTL=3 QUEUE=2 RENEWALS MUTANT_LATE_RENEWAL
suite mutant_raise_counts_missing  exclusive   TTL=3 QUEUE=2 FENCED MUTANT_RENEWAL_COUNTS_MISSING ONLY_EXCLUSIVE

suite mutant_no_raise       fences_grow   FENCES MUTANT_NO_RAISE
suite mutant_not_largest    fences_grow   FENCES MUTANT_NOT_LARGEST
suite mutant_raise_anywhere fences_differ FENCES ONCE MUTANT_RAISE_ANYWHERE
suite mutant_raise_lowers   fences_differ FENCES ONCE MUTANT_RAISE_LOWERS
suite mutant_clock_alone     fences_differ FENCES ONCE MUTANT_CLOCK_ALONE
suite mutant_further_counts fences_differ FENCES ONCE MUTANT_FURTHER_COUNTS

suite mutant_queue_same_token   exclusive IN_QUEUE TTL=2 QUEUE=2 MUTANT_SAME_TOKEN ONLY_EXCLUSIVE
suite mutant_stale_push_counts  exclusive IN_QUEUE TTL=2 QUEUE=2 MUTANT_STALE_PUSH_COUNTS ONLY_EXCLUSIVE
suite mutant_reservation_from_receipt exclusive IN_QUEUE TTL=2 QUEUE=2 MUTANT_RESERVATION_FROM_RECEIPT ONLY_EXCLUSIVE
suite mutant_lower_bound        exclusive IN_QUEUE TTL=2 QUEUE=2 MUTANT_LOWER_BOUND ONLY_EXCLUSIVE
suite mutant_longest_grant      exclusive IN_QUEUE TTL=3 QUEUE=2 MUTANT_LONGEST_GRANT ONLY_EXCLUSIVE
suite mutant_no_requeue         served    IN_QUEUE TTL=3 RESERVATION=3 QUEUE=3 LIVE SERVED ONE_DOWN MUTANT_NO_REQUEUE
suite mutant_late_requeue       served    IN_QUEUE TTL=2 RESERVATION=2 QUEUE=3 LIVE SERVED ONE_DOWN
suite mutant_no_poll            served    IN_QUEUE TTL=3 RESERVATION=3 QUEUE=3 LIVE SERVED ONE_DOWN LOSSES MUTANT_NO_POLL

suite pause               exclusive   TTL=2 QUEUE=2 PAUSES NAMED
suite amnesia             exclusive   TTL=2 QUEUE=2 AMNESIA ONLY_EXCLUSIVE NAMED
suite clock_jump          exclusive   TTL=2 QUEUE=2 CLOCK_JUMPS ONLY_EXCLUSIVE NAMED
suite late_on_a_broken_connection cleaned TTL=2 QUEUE=2 STRANDING NAMED

large extensions_deep     holds       TTL=3 QUEUE=3 RENEWALS LOSSES
large extensions_all      holds       TTL=3 QUEUE=2 RENEWALS LOSSES RESTARTS AMNESIA_DELAYED
large late_tries_deep     holds       TTL=3 QUEUE=3 TOKENS=2 LOSSES
large three_clients_deep  holds       TTL=3 QUEUE=2 CLIENTS=3 LOSSES
large raising_deep        holds       TTL=3 QUEUE=3 FENCED LOSSES
large stale_push          exclusive   IN_QUEUE TTL=2 QUEUE=2 MUTANT_SAME_TOKEN ONLY_EXCLUSIVE NAMED
large served_by_three     holds       IN_QUEUE TTL=3 RESERVATION=3 QUEUE=3 LIVE SERVED DEATHS
large further_counts      fences_differ FENCES ONCE MUTANT_FURTHER_COUNTS NAMED
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

# model_of SWITCH...: prints the name of the model's file
model_of() {
    case " $* " in
    *' FENCES '*) echo fences.pml ;;
    *' IN_QUEUE '*) echo waiting.pml ;;
    *) echo redlock.pml ;;
    esac
}

# search EXPECTED SWITCH...: makes a verifier in this folder, and runs it
search() {
    expected=$1
    shift
    # Lists of words.
    # shellcheck disable=SC2046
    spin -a $(as_options "$@") "$here/$(model_of "$@")" >spin.log 2>&1 || return 1
    # A search that finds something is shorter than an optimized compilation.
    how=-O0
    [ "$expected" != holds ] || how=-O1
    depth=-m3000000
    kind=-DSAFETY
    case " $* " in
    *' NAMED '*)
        how="$how -DBFS"
        depth=
        ;;
    *' SERVED '*)
        depth="$depth -a"
        kind=
        ;;
    esac
    # shellcheck disable=SC2086
    ${CC:-cc} -w $kind -DNOREDUCE -DNOBOUNDCHECK -DMEMLIM=6000 $how -o pan pan.c \
        >cc.log 2>&1 || return 1
    # shellcheck disable=SC2086
    ./pan -w24 $depth >report 2>&1
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
    printf '# | %-28s | %-13s | %9s | %7s | %6s |\n' "$name" "$result" "${states:--}" \
        "${depth:--}" "${seconds:--}"
    cd "$here"
}

# run_all: runs the lines of the table on its input
run_all() {
    printf '# | %-28s | %-13s | %9s | %7s | %6s |\n' configuration found states depth seconds
    while read -r _ name expected switches; do
        # shellcheck disable=SC2086
        run "$name" "$expected" $switches
    done
}

trace() {
    line=$(table | awk -v name="$1" '$2 == name')
    if [ -z "$line" ]; then
        usage
    fi
    # shellcheck disable=SC2086
    set -- $line
    name=$2
    expected=$3
    shift 3
    # shellcheck disable=SC2086
    run "$name" "$expected" "$@" >&2
    cd "$folder/$name"
    model=$(model_of "$@")
    if [ ! -f "$model.trail" ]; then
        echo "$name: there is no trace" >&2
        exit 1
    fi
    # shellcheck disable=SC2046
    spin -t -T -k "$model.trail" $(as_options "$@") "$here/$model" >replay
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
large) lines=$(table | awk '$1 == "large"') ;;
'') lines=$(table | awk '$1 == "suite"') ;;
part)
    [ $# -eq 2 ] || usage
    lines=$(table | awk -v part="${2%/*}" -v parts="${2#*/}" \
        '$1 == "suite" && count++ % parts == part - 1')
    ;;
*) lines=$(table | awk -v names=" $* " 'index(names, " " $2 " ")') ;;
esac
count=$(echo "$lines" | grep -c .) || usage

echo "1..$count"
run_all <<END
$lines
END
[ "$failures" -eq 0 ]
