#!/bin/sh
# Runs worlds of the simulator, and runs of redlock-chaos on real masters, through the proof's model:
# all must be accepted. Mutants of the library must be refused, and masters that lose their memory.
# Prints "N passed, N failed" as the last line.
#
#     sh test/proof/traces.sh SIM [LAST-SEED [CHAOS]]
#
# SIM: build/test/sim/redlock-sim. CHAOS: build/test/chaos/redlock-chaos; without it, no real masters.
set -eu
export LC_ALL=C

here=$(cd "$(dirname "$0")" && pwd)
sim=$1
last=${2:-40}
chaos=${3:-}
passed=0
failed=0
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' HUP INT TERM

sh "$here/checker.sh" "$folder"

# In the profile `broken` the model's assumptions do not hold; `load` has another application.
for profile in kept guarded moving distance; do
    case $profile in # worlds with a fault that only the model showed
    kept) found='1144 7806' ;;
    guarded) found='1440 1747 1940 1978' ;;
    moving) found=1740 ;;
    *) found= ;;
    esac
    for seeds in "1..$last" $found; do
        "$sim" --seeds "$seeds" --profile "$profile" --actions
    done | "$folder/traces" >"$folder/out"
    sed "s/^/# /" "$folder/out"
    if grep -q accepted "$folder/out" && ! grep -Eq 'refused|cut off' "$folder/out"; then
        echo "ok: the worlds of $profile are runs of the model"
        passed=$((passed + 1))
    else
        echo "not ok: a world of $profile is no run of the model, or all are left out"
        failed=$((failed + 1))
    fi
done

# Some mutants, each in its recorded world.
for mutant in quorum-half drift-forgotten extension-from-reply extension-shortens \
    release-without-compare renewal-recreates set-without-nx guard-ignored joint-either \
    top-up-over-another token-reused; do
    if ! [ -x "$(dirname "$sim")/mutants/$mutant" ]; then
        echo "# not built: $mutant"
        continue
    fi
    world=$(sed -n 's/^World: //p' "$here/../sim/mutants/$mutant.mutant")
    "$sim" --mutant "$mutant" --profile "${world% *}" --seeds "${world#* }" --actions \
        2>"$folder/log" | "$folder/traces" >"$folder/out"
    if grep -q ' refused: ' "$folder/out"; then
        echo "ok: $mutant: $(sed -n 's/.* refused: //p' "$folder/out")"
        passed=$((passed + 1))
    else
        echo "not ok: $mutant is not refused"
        failed=$((failed + 1))
    fi
done

# observe WANTED NAME TTL ARGUMENT...: the checker must say so of a run on real masters. TTL is the
# model's longest one, in ns; '&' is that of the run.
observe() {
    wanted=$1
    name=$2
    ttl=$3
    shift 3
    if "$chaos" --json --actions "$folder/actions" "$@" >"$folder/log"; then
        sed "1s/[0-9]*$/$ttl/" "$folder/actions" | "$folder/traces" >"$folder/out"
    else
        cp "$folder/log" "$folder/out"
    fi
    sed 's/^/# /' "$folder/out"
    if grep -q "$wanted" "$folder/out"; then
        echo "ok: $name: $wanted"
        passed=$((passed + 1))
    else
        echo "not ok: $name: not $wanted"
        failed=$((failed + 1))
    fi
}

if [ -n "$chaos" ]; then
    observe 'chaos, faults: accepted' 'real masters under faults' '&' --seconds 10
    # An hour's TTL makes memory too young for the whole run: then also a slow machine's clients
    # count such a master.
    observe "refused: the node's memory is too young" 'real masters that lose their memory' \
        3600000000000 --seconds 5 --nemesis amnesia
fi

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
