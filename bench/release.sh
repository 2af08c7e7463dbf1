#!/bin/sh
# Builds redlock-bench and the library as a release, with optimization across files, in the folder
# build-bench, and prints the path of the program.
#
#     sh bench/release.sh
set -eu
export LC_ALL=C.UTF-8

cd "$(dirname "$0")/.."
folder=$PWD/build-bench
log=$(mktemp)
trap 'rm -f "$log"' EXIT
trap 'exit 130' INT TERM

attempt() {
    "$@" >"$log" 2>&1 || {
        cat "$log" >&2
        exit 1
    }
}

if [ ! -f "$folder/meson-private/coredata.dat" ]; then
    attempt meson setup "$folder" --buildtype=release -Db_lto=true -Dbench=enabled \
        -Dtests=disabled -Dexamples=disabled
fi
attempt meson compile -C "$folder" redlock-bench redlock-null-masters
echo "$folder/bench/redlock-bench"
