#!/bin/sh
# Compiles the proof from nothing, and prints each theorem of the table below with what it assumes.
# Prints "N passed, N failed" as the last line; exits with 0 only if all theorems are proved, assume
# nothing, and are in the table.
#
#     sh test/proof/check.sh
set -eu
export LC_ALL=C

here=$(cd "$(dirname "$0")" && pwd)

# The files in the order of their dependencies.
order='Common Model Invariant Exclusion Majorities Reports Facts Handover Needed Trace Fences'

# FILE THEOREM
table() {
    cat <<'END'
Exclusion exclusion
Majorities quorums_meet
Majorities redlock
Majorities joint_change
Reports reported_while_valid
Reports one_interval
Facts age_is_known
Facts clock_is_known
Handover one_lock
Needed without_comparing
Needed without_early_start
Needed without_fresh_tokens
Needed without_drift
Needed without_clocks_in_step
Needed without_ages
Needed with_renewals_of_young_nodes
Needed without_upper_bound
Needed without_short_reservations
Needed without_looks
Needed without_unbroken
Needed two_stages_apart
Needed without_majorities
Needed can_hold
Needed can_hold_by_pushes
Trace accepted
Trace accepted_excludes
Fences ranges_are_disjoint
Fences fences_grow
Fences fences_differ
Fences fences_of_holders
Fences lists_in_order
Fences carried_over
Fences counters_cover
Fences without_steps_by_range
Fences without_steps_past_others
Fences without_comparing
Fences without_keeping_larger
Fences without_agreement
Fences without_next_range
Fences without_own_turn
Fences without_a_bound_on_holders
Fences without_counters_kept
Fences without_counters_kept_but_clocks
Fences without_a_list_in_common
Fences handed_on_late_is_smaller
Fences begun_before_may_be_smaller
Fences can_be_held
END
}

passed=0
failed=0

finish() {
    echo "$passed passed, $failed failed"
    [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
    exit
}

# fail SENTENCE
fail() {
    echo "not ok: $1"
    failed=$((failed + 1))
}

if ! command -v coqc >/dev/null; then
    fail 'coqc is missing: apt-get install --no-install-recommends coq ocaml-nox'
    finish
fi

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' HUP INT TERM
cp "$here"/*.v "$folder"
cd "$folder"

# Every file is compiled, and every theorem is in the table.
for path in *.v; do
    case " $order " in
    *" ${path%.v} "*) ;;
    *) fail "$path is not among the files to compile" ;;
    esac
    if grep -nE '\<(Axioms?|Admitted|admit|Parameters?|Conjecture|Abort|bypass_check|Unset +Guard)\>' "$path"; then
        fail "$path assumes something, or leaves a proof open, at the lines above"
    fi
    sed -n 's/^ *Theorem \([a-z_A-Z0-9]*\).*/\1/p' "$path" >theorems
    while read -r theorem; do
        if ! table | grep -qx "${path%.v} $theorem"; then
            fail "$path: the theorem $theorem is not in the table"
        fi
    done <theorems
done

for file in $order; do
    if ! coqc -q "$file.v" >log 2>&1; then
        cat log
        fail "$file.v does not compile"
        finish
    fi
done

# All theorems in one run, because each run of Coq loads its library again.
table | sort >theorems
{
    for file in $order; do
        echo "Require $file."
    done
    awk '{ printf "Print Assumptions %s.%s.\n", $1, $2 }' theorems
} >Ask.v
coqc -q Ask.v >answers 2>&1 || cat answers
while read -r file theorem; do
    if read -r answer <&3 && [ "$answer" = 'Closed under the global context' ]; then
        echo "ok: $file.$theorem: $answer"
        passed=$((passed + 1))
    else
        fail "$file.$theorem is missing, or rests on: $answer"
    fi
done <theorems 3<answers
finish
