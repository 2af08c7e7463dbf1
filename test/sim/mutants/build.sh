#!/bin/sh
# Builds the simulator with one deliberate bug: writes the changed sources of the library to FOLDER
# (mutate.awk), embeds its scripts again if they change, compiles what is changed or includes it, and
# links that before all others. Nobody debugs a mutant, so debugging information is left out.
#
#     build.sh CC ROOT MUTANT OUTPUT FOLDER OBJECTS-AND-LIBRARIES...
#
# If the old text of an edit is missing or occurs twice, it is an error: the mutant must be adapted.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
cc=$1
root=$2
mutant=$3
output=$4
build=$PWD
folder=$build/$5
shift 5

rm -rf "$folder"
(cd "$root" && find lib -type d) | (mkdir -p "$folder" && cd "$folder" && xargs mkdir -p)
cd "$root"
# The sources are a list of words.
# shellcheck disable=SC2046
changed=$(awk -v folder="$folder" -f "$here/mutate.awk" "$mutant" \
    $(find lib -name '*.[ch]' -o -name '*.lua' | sort))
# Scripts are assembled from files in Lua and from headers.
case $changed in
*.lua* | *.h*)
    scripts=lib/wire/script_texts.c
    whole=$folder/whole
    mkdir -p "$whole/lib"
    cp -R include "$whole"
    cp -R lib/wire "$whole/lib"
    cp -R "$folder/lib/wire" "$whole/lib"
    sh "$whole/lib/wire/scripts/embed.sh" "$whole" "$folder/$scripts" \
        "$whole"/lib/wire/scripts/*.lua
    changed=$(echo "$changed" | sed "s|.*\.lua\$|$scripts|" | sort -u)
    ;;
esac
case $changed in
*.h*) # and all sources that include it, except those that the simulator replaces or does not have
    includers=$(find lib -name '*.[ch]' ! -path 'lib/threads/*' \
        \( ! -path 'lib/io/*.c' -o -path lib/io/loop.c \) -exec \
        awk -v changed="$changed" -f "$here/includers.awk" {} +)
    changed="$scripts $includers"
    ;;
esac

objects=
for source in $changed; do
    object=$folder/$(echo "$source" | tr / _).o
    [ ! -f "$folder/$source" ] || source=$folder/$source
    # Changed headers come first. $cc may be a list of words.
    # shellcheck disable=SC2086
    $cc -std=gnu11 -D_GNU_SOURCE -O0 -w -I"$folder/lib" -Ilib -Iinclude -c "$source" -o "$object"
    objects="$objects $object"
done
cd "$build"
# shellcheck disable=SC2086
$cc -Wl,--strip-debug -o "$output" $objects "$@"
rm -rf "$folder"
