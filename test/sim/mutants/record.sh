#!/bin/sh
# Runs all mutants, and writes the world in which each was caught into its file: worlds change with
# the library, and for a mutant that its world no longer catches a new world must be found.
#
#     sh test/sim/mutants/record.sh BUILD
set -eu
export LC_ALL=C

here=$(cd "$(dirname "$0")" && pwd)
found=$(mktemp)
text=$(mktemp)
trap 'rm -f "$found" "$text"' EXIT

"$1/test/sim/redlock-sim" --mutants --seeds 1..20000 | tee "$found" >&2
# The lines are "caught   NAME PROFILE seed SEED: ..."; a mutant that hangs or crashes has no seed.
awk '$1 == "caught" && $5 ~ /^[0-9]+:$/ { print $2, $3, $5 + 0 }' "$found" |
    while read -r name profile seed; do
        awk -v world="World: $profile $seed" '
            /^World: / { next }
            /^$/ && !is_written { print world; is_written = 1 }
            { print }' "$here/$name.mutant" >"$text"
        cmp -s "$text" "$here/$name.mutant" || cat "$text" >"$here/$name.mutant"
    done
