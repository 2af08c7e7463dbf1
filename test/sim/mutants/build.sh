#!/bin/sh
# Builds the simulator with one deliberate bug: applies a patch to a copy of the library's sources,
# compiles the files that it changes, and links them in front of all others.
#
#     build.sh CC ROOT PATCH OUTPUT FOLDER OBJECTS-AND-LIBRARIES...
#
# A patch that does not apply exactly is an error: the mutant is to be drawn anew.
set -eu

cc=$1
root=$2
patch=$3
output=$4
folder=$5
shift 5

rm -rf "$folder"
mkdir -p "$folder"
cp -R "$root/lib" "$root/include" "$folder"
patch --directory="$folder" --strip=1 --fuzz=0 --batch --silent <"$patch"

changed=$(sed -n 's|^+++ b/\([^[:space:]]*\).*|\1|p' "$patch")
case $changed in
*.h*) # whoever includes it: all but the outside, which the simulator replaces
    changed=$(cd "$folder" && find lib -name '*.c' ! -path 'lib/io/*')
    ;;
esac

objects=
for source in $changed; do
    object=$folder/$(echo "$source" | tr / _).o
    # $cc may be a list of words.
    # shellcheck disable=SC2086
    $cc -std=gnu11 -D_GNU_SOURCE -O1 -g -w -I"$folder/lib" -I"$folder/include" \
        -c "$folder/$source" -o "$object"
    objects="$objects $object"
done
# shellcheck disable=SC2086
$cc -o "$output" $objects "$@"
rm -rf "$folder"
