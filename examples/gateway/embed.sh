#!/bin/sh
# Writes files as arrays of bytes in C, each named after its file: page.html is page_html.
#
#     sh embed.sh OUTPUT FILE...
set -eu
export LC_ALL=C

output=$1
shift
{
    echo '/* Made by examples/gateway/embed.sh. */'
    for file in "$@"; do
        echo "static const unsigned char $(basename "$file" | tr '.-' '__')[] = {"
        od -An -v -tu1 "$file" | sed 's/ *\([0-9][0-9]*\)/\1,/g'
        echo '};'
    done
} >"$output.new"
mv "$output.new" "$output"
