#!/bin/sh
# Compiles the proof from nothing, and prints each theorem of the table below with what it assumes.
# Prints "N passed, N failed" as the last line; exits with 0 only if all theorems are proved, assume
# nothing, and are in the table.
#
#     sh test/proof/check.sh
set -eu
export LC_ALL=C

here=$(cd "$(dirname "$0")" && pwd)

# The files in the order of their dependencies; Fences.v is optional.
order='Model Invariant Exclusion Majorities Reports Handover Needed'
if [ -f "$here/Fences.v" ]; then
    order="$order Fences"
fi

# FILE THEOREM
table() {
    cat <<'END'
Exclusion exclusion
Majorities quorums_meet
Majorities redlock
Majorities joint_change
Reports told_while_valid
Reports one_interval
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
END
    if [ -f "$here/Fences.v" ]; then
        sed -n 's/^ *Theorem \([a-z_A-Z0-9]*\).*/Fences \1/p' "$here/Fences.v"
    fi
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

while read -r file theorem; do
    printf 'Require %s.\nPrint Assumptions %s.%s.\n' "$file" "$file" "$theorem" >Ask.v
    if coqc -q Ask.v >log 2>&1 && [ "$(cat log)" = 'Closed under the global context' ]; then
        echo "ok: $file.$theorem: $(cat log)"
        passed=$((passed + 1))
    else
        cat log
        fail "$file.$theorem is missing, or rests on an axiom"
    fi
done <<END
$(table)
END
finish
