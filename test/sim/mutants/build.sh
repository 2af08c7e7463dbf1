#!/bin/sh
# Builds the simulator with one deliberate bug: edits a copy of the library's sources (mutate.awk),
# embeds its scripts again if they change, compiles the changed files, and links them before all
# others. Nobody debugs a mutant, so debugging information is left out.
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
folder=$5
shift 5

rm -rf "$folder"
mkdir -p "$folder"
cp -R "$root/lib" "$root/include" "$folder"
# The sources are a list of words.
# shellcheck disable=SC2046
changed=$(cd "$folder" && awk -f "$here/mutate.awk" "$mutant" \
    $(find lib -name '*.[ch]' -o -name '*.lua' | sort))
# Scripts are assembled from files in Lua and from headers.
case $changed in
*.lua* | *.h*)
    scripts=lib/wire/script_texts.c
    sh "$folder/lib/wire/scripts/embed.sh" "$folder" "$folder/$scripts" \
        "$folder"/lib/wire/scripts/*.lua
    changed=$(echo "$changed" | sed "s|.*\.lua\$|$scripts|" | sort -u)
    ;;
esac
case $changed in
*.h*) # and all sources that include it, except those that the simulator replaces or does not have
    changed=$(cd "$folder" &&
        find lib -name '*.[ch]' ! -path 'lib/threads/*' \
            \( ! -path 'lib/io/*.c' -o -path lib/io/loop.c \) -exec \
            awk -v changed="$changed" -f "$here/includers.awk" {} +)
    ;;
esac

objects=
for source in $changed; do
    object=$folder/$(echo "$source" | tr / _).o
    # $cc may be a list of words.
    # shellcheck disable=SC2086
    $cc -std=gnu11 -D_GNU_SOURCE -O0 -w -I"$folder/lib" -I"$folder/include" \
        -c "$folder/$source" -o "$object"
    objects="$objects $object"
done
# shellcheck disable=SC2086
$cc -Wl,--strip-debug -o "$output" $objects "$@"
rm -rf "$folder"
