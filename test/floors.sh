#!/bin/sh
# Checks that each file of the library uses only its own floor and those below:
#
#     lib/base < lib/core, lib/wire < lib/io < lib/node < lib/round < lib/lock < lib
#
# that no files include each other in a circle (a .c file and its header count as one), and that only
# lib/io names an outside library. base, core and wire are pure: the standard headers that they may
# include have no clock, no file and no socket in them.
#
#     floors.sh [--root FOLDER] [path of the shared library]
#
# With the path of the shared library, checks that it exports nothing but redlock_*. FOLDER (default:
# the repository) contains lib/.
set -eu
export LC_ALL=C

root=$(dirname "$0")/..
if [ "${1:-}" = --root ]; then
    root=$2
    shift 2
fi
cd "$root"

problems=$(mktemp)
trap 'rm -f "$problems"' EXIT
trap 'exit 130' INT TERM

# floor_of FILE
floor_of() {
    case $1 in
    lib/*/*) echo "$1" | cut -d / -f 2 ;;
    lib/*) echo face ;;
    *) echo nothing ;;
    esac
}

# floors_for FLOOR: those whose headers it may include
floors_for() {
    case $1 in
    base) echo base ;;
    core | wire) echo base core wire ;;
    io) echo base core wire io ;;
    node) echo base core wire io node ;;
    round) echo base core wire io node round ;;
    lock) echo base core wire io node round lock ;;
    face) echo base core wire io node round lock face ;;
    esac
}

pure_headers='assert ctype errno float inttypes limits math stdarg stdbool stddef stdint stdio
stdlib string strings sys/queue redlock'

contains() { # WORD LIST...
    word=$1
    shift
    for other in "$@"; do
        if [ "$word" = "$other" ]; then
            return 0
        fi
    done
    return 1
}

# check_own FILE HEADER: an #include "HEADER"
check_own() {
    floor=$(floor_of "$1")
    header=
    for folder in "$(dirname "$1")" lib; do
        if [ -f "$folder/$2" ]; then
            header=$folder/$2
            break
        fi
    done
    # A list of words.
    # shellcheck disable=SC2046
    if ! contains "$(floor_of "$header")" $(floors_for "$floor"); then
        echo "$1: $floor must not include \"$2\""
    fi
}

# check_outside FILE HEADER: an #include <HEADER>
check_outside() {
    floor=$(floor_of "$1")
    case $floor in
    base | core | wire)
        # shellcheck disable=SC2086
        if ! contains "${2%.h}" $pure_headers; then
            echo "$1: $floor is pure and must not include <$2>"
        fi
        ;;
    node | round | lock | face)
        case $2 in
        event* | ev*.h | hiredis/* | openssl/* | sodium* | sys/sdt.h)
            echo "$1: only lib/io may include <$2>"
            ;;
        esac
        ;;
    esac
}

# includes_of FILE: a line "MARK HEADER" for each
includes_of() {
    grep -E '^[[:space:]]*#[[:space:]]*include' "$1" |
        sed -n 's/.*include[[:space:]]*\(["<]\)\([^">]*\).*/\1 \2/p'
}

# Prints the modules that include each other in a circle: tsort(1) names them on its error output.
check_circles() {
    find lib -name '*.[ch]' | sort | while read -r file; do
        includes_of "$file" | while read -r mark header; do
            if [ "$mark" = '"' ] && [ -f "lib/$header" ]; then
                echo "${file%.[ch]} lib/${header%.[ch]}"
            fi
        done
    done | tsort 2>&1 >/dev/null | sed -n 's/^tsort: \(lib\/.*\)/\1: part of a circle/p'
}

for file in $(find lib -name '*.[ch]' | sort); do
    includes_of "$file" |
        while read -r mark header; do
            case $mark in
            '"') check_own "$file" "$header" ;;
            '<') check_outside "$file" "$header" ;;
            esac
        done
    case $(floor_of "$file") in
    base | core | wire | node | round | lock | face)
        # Searched by name, because a declaration of one's own would need no header.
        grep -nE '\<(clock_gettime|clock_gettime64|gettimeofday|time)[[:space:]]*\(' "$file" |
            grep -vE '^[0-9]+:[[:space:]]*(/?\*|//)' | sed "s|^|$file: only lib/io reads a clock: |" ||
            true
        ;;
    esac
done >"$problems"
check_circles >>"$problems"

if [ $# -gt 0 ]; then
    if ! nm -D --defined-only "$1" >"$problems.nm"; then
        echo "$1: cannot list its symbols" >>"$problems"
    fi
    awk -v library="$1" '$NF !~ /^redlock_/ { print library ": exports " $NF }' "$problems.nm" \
        >>"$problems"
    rm -f "$problems.nm"
fi

cat "$problems"
[ ! -s "$problems" ]
