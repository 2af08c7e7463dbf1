#!/bin/sh
# Writes scripts as C, each with its SHA-1: script_sources of wire/script.h.
#
#     sh embed.sh ROOT OUTPUT SCRIPT...
#
# ROOT is the project's folder; its headers define the texts that scripts and C share. A script's
# file is named after its enumerator: take.lua is SCRIPT_TAKE. OUTPUT compiles only if each
# enumerator has a file, and each file has an enumerator.
set -eu
export LC_ALL=C

root=$1
output=$2
shift 2
folder=$root/lib/wire/scripts
text=$output.text
table=$output.new
trap 'rm -f "$text" "$table"' EXIT

# embed FILE: prints the file's row of the table
embed() {
    awk -v folder="$folder" -f "$folder/assemble.awk" \
        "$root/lib/wire/script.h" "$root/include/redlock.h" "$1" >"$text"
    sum=$(sha1sum <"$text")
    echo "    [SCRIPT_$(basename "$1" .lua | tr '[:lower:]' '[:upper:]')] ="
    echo "        {"
    sed 's/[\\"]/\\&/g; s/^/            "/; s/$/\\n"/' "$text"
    echo "            , \"${sum%% *}\","
    echo "        },"
}

{
    echo '/* Made by lib/wire/scripts/embed.sh. */'
    echo '#include "wire/script.h"'
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
