#!/bin/sh
# Checks that mutate.awk refuses edits that would make no mutant or an unintended one, and that the
# example in CONTRIBUTING.md is a mutant.
set -eu
export LC_ALL=C

here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=test/tap.sh
. "$here/../../tap.sh"

# check NAME EXPECTED: applies $folder/mutant to two sources; the output must contain EXPECTED
check() {
    printf 'one\ntwo\ntwo\nthree\n' >"$folder/a.c"
    printf 'four\n  one\nfive\n' >"$folder/b.c"
    awk -f "$here/mutate.awk" "$folder/mutant" "$folder/a.c" "$folder/b.c" >"$folder/said" 2>&1 ||
        true
    tap_check "$1" grep -qF "$2" "$folder/said"
}

printf 'A bug.\n\n@@\n-four\n+for\n' >"$folder/mutant"
check 'one place' "$folder/b.c"
printf 'A bug.\n\n@@\n-one\n+won\n' >"$folder/mutant"
check 'lines are compared from their beginning' "$folder/a.c"
printf 'A bug.\n\n@@\n one\n two\n+between\n two\n' >"$folder/mutant"
check 'several lines' "$folder/a.c"
printf 'A bug.\n\n@@\n-six\n+sicks\n' >"$folder/mutant"
check 'no place' 'stands in 0 places'
printf 'A bug.\n\n@@\n-two\n+too\n' >"$folder/mutant"
check 'two places' 'stands in 2 places'
printf 'A bug.\n\n@@\n one\n' >"$folder/mutant"
check 'no change' 'edit 1 changes nothing'
printf 'A bug.\n' >"$folder/mutant"
check 'no edit' 'it has no edit'
printf 'A bug.\n\n@@\n-four\n+for\n\n@@\n-six\n+sicks\n' >"$folder/mutant"
check 'the second of two edits' 'edit 2: its old text stands in 0 places'
printf 'A bug.\n\n@@\nfour\n' >"$folder/mutant"
check 'a line without a mark' 'line 4: an edit'

root=$here/../../..
sed -n '/^```mutant/,/^```$/{/^```/d;p}' "$root/CONTRIBUTING.md" >"$folder/mutant"
cp -R "$root/lib" "$folder"
find "$folder/lib" -name '*.[ch]' -exec awk -f "$here/mutate.awk" "$folder/mutant" {} + \
    >"$folder/said" 2>&1 || true
tap_check 'the example of CONTRIBUTING.md' grep -qx "$folder/lib/core/survey.c" "$folder/said"
tap_end
