#!/bin/sh
# Checks the pages of the Debian package libredlock-dev: each file of lib/doc or examples that a
# page names must be in the package too. Exceptions are links to other folders, which need the
# sources, manuals, which man finds elsewhere, and the demos, which need the tests.
#
#     pages.sh [FOLDER]      /usr/share/doc/libredlock-dev, unless named
set -eu
export LC_ALL=C.UTF-8

cd "${1:-/usr/share/doc/libredlock-dev}"

# links_of PAGE: prints the files that it names, one per line; code has no links
links_of() {
    awk '
        /^```/ { is_code = !is_code }
        !is_code { text = text " " $0 }
        END {
            gsub(/`[^`]*`/, "", text)
            while (match(text, /\]\([^)#]*/)) {
                print substr(text, RSTART + 2, RLENGTH - 2)
                text = substr(text, RSTART + RLENGTH)
            }
        }' "$1"
}

# list_missing: prints each page with a missing file that it names
list_missing() {
    find . -name '*.md' | sort | while read -r page; do
        links_of "$page" | while read -r link; do
            file=$(realpath -m --relative-to=. "$(dirname "$page")/$link")
            case $link:$file in
            *://* | :* | *.[1-9] | *:examples/demo*) ;;
            *:lib/doc/* | *:examples/*) [ -e "$file" ] || echo "$page: there is no $file" ;;
            esac
        done
    done
}

[ "$(find . -name '*.md' | wc -l)" -gt 30 ] || {
    echo "there are few pages in $PWD" >&2
    exit 1
}
missing=$(list_missing)
if [ -n "$missing" ]; then
    echo "$missing" >&2
    exit 1
fi
