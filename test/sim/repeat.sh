#!/bin/sh
# Checks that a seed always gives the same trace, byte for byte, regardless of the runs before.
set -eu

sim=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

echo 1..12
n=0
for profile in kept broken guarded moving load distance; do
    "$sim" --seeds 7 --profile "$profile" --trace >"$folder/once"
    "$sim" --seeds 7 --profile "$profile" --trace >"$folder/again"
    "$sim" --seeds 6..7 --profile "$profile" --trace >"$folder/both"
    for file in again both; do
        n=$((n + 1))
        # The summary is left out, because it contains the duration of the run.
        grep -E '^[0-9]+\.[0-9]{6} ' "$folder/once" >"$folder/expected"
        grep -E '^[0-9]+\.[0-9]{6} ' "$folder/$file" | sed -n '/ seed 7: /,$p' >"$folder/seen"
        if [ -s "$folder/expected" ] && cmp -s "$folder/expected" "$folder/seen"; then
            echo "ok $n - $profile: $file"
        else
            echo "not ok $n - $profile: $file"
        fi
    done
done
