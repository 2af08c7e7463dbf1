#!/bin/sh
# Prints mutants.txt: for each mutant of the library, in its recorded world, the invariant by which
# the simulator catches it, and whether the model refuses its actions, but not those of the library
# itself. A mutant that breaks exclusion, and is not refused there, is looked for in the first
# worlds of the same profile.
#
#     sh test/proof/mutants.sh build/test/sim/redlock-sim [WORLDS] >test/proof/mutants.txt
set -eu
export LC_ALL=C

here=$(cd "$(dirname "$0")" && pwd)
sim=$1
worlds=${2:-40}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' HUP INT TERM

sh "$here/checker.sh" "$folder"

# run PROFILE SEEDS [OPTIONS]: writes $folder/out and $folder/log. A mutant may hang, or crash.
run() {
    "$sim" --profile "$1" --seeds "$2" --limit 100 --actions ${3+--mutant "$3"} \
        2>"$folder/log" | "$folder/traces" >"$folder/out" || true
}

# rule: prints the first refusal, without its line.
rule() {
    sed -n 's/.* refused: \(.*\): ".*/\1/p' "$folder/out" | head -n 1
}

# judge MUTANT PROFILE SEED: sets `by`, `kind` and `verdict`.
judge() {
    run "$2" "$3" "$1"
    by=$(sed -n 's/^seed [0-9]*: \(invariant [^:]*\):.*/\1/p' "$folder/log" | head -n 1)
    verdict=$(rule)
    kind=refused
    if [ -n "$verdict" ]; then
        run "$2" "$3"
        [ -n "$(rule)" ] || return 0
        kind=accepted
        verdict='the library itself is refused there'
        return 0
    fi
    kind=accepted
    verdict=$(sed -n 's/.*left out: /left out: /p' "$folder/out" | head -n 1)
    if ! [ -s "$folder/out" ]; then
        verdict='no actions: another application, or a crash'
    fi
    case $2,$by in
    load,* | broken,*) return 0 ;; # without actions, and without the model's assumptions
    *exclusion* | *quorum* | *revival* | *tokens* | *stay* | *permits*) ;;
    *) return 0 ;;
    esac
    run "$2" "1..$worlds" "$1"
    if [ -n "$(rule)" ]; then
        kind=elsewhere
        verdict="$(rule) ($(sed -n 's/ (.*refused: .*//p' "$folder/out" | head -n 1))"
    fi
}

for path in "$here"/../sim/mutants/*.mutant; do
    mutant=$(basename "$path" .mutant)
    world=$(sed -n 's/^World: //p' "$path")
    judge "$mutant" "${world% *}" "${world#* }"
    echo "$kind|$mutant|$world|${by:-none}|$verdict"
done >"$folder/table"

# section KIND TITLE
section() {
    echo
    echo "$2: $(grep -c "^$1|" "$folder/table")"
    echo
    awk -F'|' -v kind="$1" '$1 == kind {
        line = sprintf("  %-28s %-14s %-23s %s", $2, $3, $4, $5)
        sub(/ +$/, "", line)
        print line
    }' "$folder/table"
}

cat <<'END_OF_FILE'
Written by mutants.sh. The mutants of test/sim/mutants: name, recorded world, the invariant by which
the simulator catches it there, and the rule by which the model refuses the actions of that world.

The model is about exclusion. What breaks another invariant alone, it mostly accepts: order in the
queue, liveness, bounds, fences, and the like are out of it, and so are readers.

Of the invariants 1 and 2, the simulator asks more than the model. The model has no minimum of the
validity (min-validity-forgotten, no-fresh-clock) and no replicas that confirm (wait-ignored). Of a
node that counts it asks how old its memory is, not how the client knows (guard-never-ages,
stale-from-the-wrong-end), nor whether it is a replica (guard-replica-counts).
END_OF_FILE
section refused 'Refused in the recorded world'
section elsewhere "Refused in another of the first $worlds worlds of the profile"
section accepted 'Not refused'
