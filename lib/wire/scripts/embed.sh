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

# embed SCRIPT: prints the script's row of the table. Mutants of a script make all rows again.
embed() {
    awk -v folder="$folder" -f "$folder/assemble.awk" \
        "$root/lib/wire/script.h" "$root/include/redlock.h" "$1" >"$text"
    sum=$(sha1sum <"$text")
    awk -v sum="${sum%% *}" '
        FNR == 1 && ++files == 1 {
            name = FILENAME
            gsub(/.*\/|\.lua$/, "", name)
            print "    [SCRIPT_" toupper(name) "] ="
            print "        {"
            print "            .text ="
        }
        files == 1 && sub(/^-- arguments: */, "") {
            gsub(/\([^)]*\)/, "")
            has_channel = sub(/^channel; */, "")
            count = split($0, names, /[ ,]+/)
            for (i = 1; i <= count; i++) {
                fields = fields (names[i] != "" ? "ARGUMENT(" names[i] "), " : "")
            }
        }
        files == 2 {
            gsub(/[\\"]/, "\\\\&")
            print "            \"" $0 "\\n\""
        }
        END {
            print "            , .sha = \"" sum "\","
            if (has_channel) {
                print "            .has_channel = true,"
            }
            print "            .arguments = {" fields "0},"
            print "        },"
        }' "$1" "$text"
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
