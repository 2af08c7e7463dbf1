#!/bin/sh
# Writes scripts as C, each with its SHA-1 and its arguments: script_sources of wire/script.h.
#
#     sh embed.sh ROOT OUTPUT SCRIPT...
#
# ROOT is the project's folder; its headers define the texts that scripts and C share. A script's
# file is named after its enumerator: take.lua is SCRIPT_TAKE. Its contract has a line
# "-- arguments: NAME, ..." with the fields of struct lock_arguments that it takes for each lock,
# after "channel;" if it takes the client's channel. OUTPUT compiles only if each enumerator has a
# file, each file has an enumerator, and each name is a field.
set -eu
export LC_ALL=C

root=$1
output=$2
shift 2
folder=$root/lib/wire/scripts
text=$output.text
table=$output.new
trap 'rm -f "$text" "$table"' EXIT

# arguments FILE: prints the part of the row that lists the script's arguments
arguments() {
    sed -n 's/^-- arguments: *//p' "$1" | awk '
        {
            gsub(/\([^)]*\)/, "")
            if (sub(/^channel; */, "")) {
                print "            .has_channel = true,"
            }
            count = split($0, names, /[ ,]+/)
            for (i = 1; i <= count; i++) {
                fields = fields (names[i] != "" ? "ARGUMENT(" names[i] "), " : "")
            }
            print "            .arguments = {" fields "0},"
        }'
}

# embed FILE: prints the file's row of the table
embed() {
    awk -v folder="$folder" -f "$folder/assemble.awk" \
        "$root/lib/wire/script.h" "$root/include/redlock.h" "$1" >"$text"
    sum=$(sha1sum <"$text")
    echo "    [SCRIPT_$(basename "$1" .lua | tr '[:lower:]' '[:upper:]')] ="
    echo "        {"
    echo '            .text ='
    sed 's/[\\"]/\\&/g; s/^/            "/; s/$/\\n"/' "$text"
    echo "            , .sha = \"${sum%% *}\","
    arguments "$1"
    echo "        },"
}

{
    echo '/* Made by lib/wire/scripts/embed.sh. */'
    echo '#include "wire/command.h"'
    echo
    echo '#define ARGUMENT(field) offsetof(struct lock_arguments, field)'
    echo
    echo '/* C11 asks for 4095 bytes at least; compilers take more. */'
    echo '#pragma GCC diagnostic ignored "-Woverlength-strings"'
    echo
    echo 'const struct script_source script_sources[SCRIPT_COUNT] = {'
    for script in "$@"; do
        embed "$script"
    done
    echo '};'
    echo "_Static_assert(SCRIPT_COUNT == $#, \"each script has its file\");"
} >"$table"
mv "$table" "$output"
