#!/bin/sh
# Checks that each file of the library uses only its own floor and those below:
#
#     lib/base < lib/core, lib/wire < lib/io < lib/node < lib/round < lib/lock < lib
#         < lib/threads
#
# that no files include each other in a circle (a .c file and its header count as one), and that only
# lib/io uses outside libraries. base, core and wire are pure: the standard headers that they may
# include give no access to clocks, files or sockets.
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

# Prints problems, and writes the pairs of modules of which one includes the other to the file
# `pairs`.
check_sources() {
    # shellcheck disable=SC2016
    find lib -name '*.[ch]' | sort | xargs awk -v pairs="$pairs" '
        function floor_of(file, parts) {
            if (split(file, parts, "/") > 2) {
                return parts[2]
            }
            return file ~ /^lib\// ? "face" : "nothing"
        }
        function is_in(word, list) {
            return index(" " list " ", " " word " ") > 0
        }
        BEGIN {
            below["base"] = "base"
            below["core"] = below["wire"] = "base core wire"
            below["io"] = below["core"] " io"
            below["node"] = below["io"] " node"
            below["round"] = below["node"] " round"
            below["lock"] = below["round"] " lock"
            below["face"] = below["lock"] " face"
            below["threads"] = below["face"] " threads"
            pure = "assert ctype errno float inttypes limits math stdarg stdbool stddef stdint " \
                "stdio stdlib string strings sys/queue redlock"
            for (i = 1; i < ARGC; i++) {
                exists[ARGV[i]] = 1
            }
        }
        FNR == 1 {
            floor = floor_of(FILENAME)
            folder = module = FILENAME
            sub(/\/[^\/]*$/, "", folder)
            sub(/\.[ch]$/, "", module)
        }
        # Searched by name, because a private declaration would need no header.
        floor in below && floor != "io" && $0 !~ /^[ \t]*(\/?\*|\/\/)/ &&
            /(^|[^A-Za-z0-9_])(clock_gettime|clock_gettime64|gettimeofday|time)[ \t]*\(/ {
            print FILENAME ": only lib/io reads a clock: " FNR ": " $0
        }
        !/^[ \t]*#[ \t]*include[ \t]*["<]/ {
            next
        }
        {
            header = $0
            sub(/^[ \t]*#[ \t]*include[ \t]*/, "", header)
            mark = substr(header, 1, 1)
            header = substr(header, 2)
            sub(/[">].*/, "", header)
        }
        mark == "\"" {
            path = folder "/" header
            path = path in exists ? path : "lib/" header
            if (!is_in(floor_of(path in exists ? path : ""), below[floor])) {
                print FILENAME ": " floor " must not include \"" header "\""
            }
            if (("lib/" header) in exists) {
                sub(/\.[ch]$/, "", header)
                print module, "lib/" header >pairs
            }
            next
        }
        floor == "base" || floor == "core" || floor == "wire" {
            name = header
            sub(/\.h$/, "", name)
            if (!is_in(name, pure)) {
                print FILENAME ": " floor " is pure and must not include <" header ">"
            }
            next
        }
        floor != "io" && floor in below &&
            header ~ /^(event.*|ev[^\/]*\.h|hiredis\/.*|openssl\/.*|sodium.*|sys\/sdt\.h)$/ {
            print FILENAME ": only lib/io may include <" header ">"
        }'
}

pairs=$problems.pairs
: >"$pairs"
check_sources >"$problems"
# tsort(1) prints the modules of a circle on its error output.
tsort "$pairs" 2>&1 >/dev/null | sed -n 's/^tsort: \(lib\/.*\)/\1: part of a circle/p' >>"$problems"
rm -f "$pairs"

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
