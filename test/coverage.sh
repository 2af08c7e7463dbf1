#!/bin/sh
# Prints how many lines and branches of lib/ the tests reach, by floor and file, and those of
# lib/core that they do not reach:
#
#     sh test/coverage.sh [BUILD_FOLDER] [ARGUMENTS-OF-meson-test...]
#     sh test/coverage.sh --of BUILD_FOLDER
#
# Builds in BUILD_FOLDER (default: build-coverage) with gcc and runs all suites, or those that the
# arguments select. With --of it runs nothing, and prints what the last `sh test/run.sh --coverage`
# in that folder reached. Exits with 0 only if the goals are met: lib/core 100 % of lines and
# branches, all of lib/ 95 % of lines and 90 % of branches.
#
# Only branches of an assert do not count, because a failed assertion ends the process. Each test
# program that was built with the library counts, also the corpora of test/fuzz, but not torture and
# the simulator's worlds, which such a build does not have.
set -eu
export LC_ALL=C.UTF-8

cd "$(dirname "$0")/.."

sh test/install.sh build "${REDLOCK_SERVER:-redis-server}" test coverage

build_and_test() { # ARGUMENTS-OF-meson-test...
    if [ ! -f "$build/meson-private/coredata.dat" ]; then
        CC=gcc meson setup "$build" -Db_coverage=true -Dtests=enabled -Dbench=disabled \
            -Dexamples=disabled --buildtype=debug
    fi
    meson compile -C "$build"
    find "$build" -name '*.gcda' -delete
    # A failed test is reported, and its coverage is still measured.
    meson test -C "$build" --no-rebuild "$@" || tests=1
}

tests=0
goals=0
if [ "${1:-}" = --of ]; then
    build=$2
else
    build=${1:-build-coverage}
    [ $# -eq 0 ] || shift
    build_and_test "$@"
fi

report=$build/coverage.xml
gcovr --root . --filter 'lib/' --exclude-branches-by-pattern '.*\bassert\(' \
    --sonarqube "$report" "$build" >/dev/null

# Each line of the report is a line of source; floors are the folders of lib/.
echo
sed 's/</\n</g' "$report" | awk -F '"' '
    function percent(part, all) {
        return all == 0 ? 100 : 100 * part / all
    }
    function row(name) {
        printf "%-24s %5d of %5d %6.1f %%   %5d of %5d %6.1f %%\n", name,
            hit[name], lines[name], percent(hit[name], lines[name]),
            taken[name], branches[name], percent(taken[name], branches[name])
    }
    function count(name, is_hit, all, some) {
        lines[name]++
        hit[name] += is_hit
        branches[name] += all
        taken[name] += some
    }
    /^<file / {
        file = $2
        floor = file
        sub(/\/[^\/]*$/, "", floor)
        files[++file_count] = file
        floor_of[file] = floor
        if (!(floor in seen)) {
            seen[floor] = 1
            floors[++floor_count] = floor
        }
    }
    /^<lineToCover / {
        is_hit = $4 == "true"
        all = some = 0
        if ($0 ~ /branchesToCover/) {
            all = $6
            some = $8
        }
        count(file, is_hit, all, some)
        count(floor, is_hit, all, some)
        count("all of lib", is_hit, all, some)
        if (floor == "lib/core" && (!is_hit || some < all)) {
            missing = missing file ":" $2 ": " \
                (is_hit ? (all - some) " of " all " branches not taken" : "not reached") "\n"
        }
    }
    END {
        printf "%-24s %14s %8s   %14s %8s\n", "", "lines", "", "branches", ""
        for (i = 1; i <= floor_count; i++) {
            for (j = 1; j <= file_count; j++) {
                if (floor_of[files[j]] == floors[i]) {
                    row(files[j])
                }
            }
            row(floors[i])
            print ""
        }
        row("all of lib")
        print ""
        printf "%s", missing
        good = lines["lib/core"] > 0 && hit["lib/core"] == lines["lib/core"] &&
            taken["lib/core"] == branches["lib/core"] &&
            percent(hit["all of lib"], lines["all of lib"]) >= 95 &&
            percent(taken["all of lib"], branches["all of lib"]) >= 90
        print good ? "The goals are met." : "The goals are not met."
        exit !good
    }' || goals=1
[ "$tests" -eq 0 ] || sh test/failures.sh "$build"
[ "$tests$goals" = 00 ]
