#!/bin/sh
# Checks that programs that were built with the last release can use the shared library: compared
# with lib/packages/redlock.abi no function is missing, and no function or type in the header has
# changed. Also checks the list of symbols in Debian's packages.
#
#     sh test/abi.sh [--reference FILE] [--symbols FILE] [--exact] LIBRARY
#     sh test/abi.sh --record LIBRARY     # with a release: writes the record, and the list
#
# lib/packages/redlock.abignore lists permitted changes. With --exact nothing may differ, not even
# by an addition: the record must be that of LIBRARY. LIBRARY needs debug information. Needs
# abidiff; exits with 77 without it, and on other machines than that of the record.
set -eu
export LC_ALL=C.UTF-8

root=$(cd "$(dirname "$0")/.." && pwd)
packages=$root/lib/packages
reference=$packages/redlock.abi
symbols=$packages/debian/libredlock0.symbols
version=$(sed -n "s/^ *version: '\(.*\)',/\1/p" "$root/meson.build")
record=no
exact=no
while [ $# -gt 1 ]; do
    case $1 in
    --reference)
        reference=$2
        shift
        ;;
    --symbols)
        symbols=$2
        shift
        ;;
    --exact) exact=yes ;;
    --record) record=yes ;;
    *) break ;;
    esac
    shift
done
if [ $# -ne 1 ] || [ ! -e "$1" ]; then
    sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
library=$1
machine=x86_64

if ! command -v abidiff >/dev/null; then
    echo "not checked: abidiff (package abigail-tools) is not installed"
    exit 77
fi
if [ "$(uname -m)" != "$machine" ]; then
    echo "not checked: the record is that of $machine"
    exit 77
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
nm -D --defined-only "$library" | awk '{ print $NF }' | sort >"$work/exported"

# Symbols keep the version in which they were introduced.
write_symbols() {
    sed -n '/^[^ ]/p' "$symbols"
    while read -r name; do
        grep "^ $name@" "$symbols" || echo " $name@Base $version"
    done <"$work/exported"
}

if [ "$record" = yes ]; then
    if ! readelf -S "$library" | grep -q '\.debug_info'; then
        echo "abi.sh: $library has no debug information, so the record would have no types" >&2
        exit 2
    fi
    abidw --headers-dir "$root/include" --drop-private-types --exported-interfaces-only \
        --no-corpus-path --no-comp-dir-path --short-locs --no-elf-needed --no-parameter-names \
        --type-id-style hash --out-file "$reference" "$library"
    write_symbols >"$work/symbols"
    cp "$work/symbols" "$symbols"
    exit 0
fi

status=0
if [ "$exact" = no ]; then
    set -- --no-added-syms --suppressions "$packages/redlock.abignore"
else
    set --
fi
abidiff --drop-private-types --headers-dir2 "$root/include" "$@" "$reference" "$library" || status=1
sed -n 's/^ \(.*\)@.*/\1/p' "$symbols" | sort >"$work/listed"
if ! cmp -s "$work/listed" "$work/exported"; then
    comm -23 "$work/listed" "$work/exported" | sed 's/$/: not in the library, but in the list/'
    comm -13 "$work/listed" "$work/exported" | sed 's/$/: in the library, but not in the list/'
    status=1
fi
exit "$status"
