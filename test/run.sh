#!/bin/sh
# Builds everything and runs all tests. The last line is "N passed, N failed"; exits with 0 only if
# none failed and at least one passed.
#
#     sh test/run.sh [--build FOLDER] [--werror] [--sanitize] [--coverage] [--valgrind]
#                    [--suite NAME]...
#
#     --build FOLDER  where to build (default: build); one folder for each kind of build
#     --werror        treat warnings as errors
#     --sanitize      use AddressSanitizer and UndefinedBehaviorSanitizer
#     --coverage      with gcc: measure coverage; `sh test/coverage.sh --of FOLDER` prints it
#     --valgrind      run each test under valgrind
#     --suite NAME    run only this suite: unit, install, integration, memcheck and cpp (of
#                     integration), sim, worlds (of sim), mutants, model, torture, fuzz, chaos,
#                     command, gateway, examples, cases (of examples), docs
#
# CC and CXX name the compilers for a new folder. TEST_ARGS is passed to `meson test`.
# REDLOCK_SERVER is the server to test with: redis-server (default) or valkey-server.
set -eu
export LC_ALL=C.UTF-8

cd "$(dirname "$0")/.."

build=build
setup='-Dtests=enabled -Dbench=enabled -Dexamples=enabled -Dcpp=enabled -Dgateway=enabled
    -Dsqlite=enabled -Dmutants=true'
run=${TEST_ARGS:-}
sanitize=no
coverage=no
valgrind='valgrind --quiet --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite'
wrapper=

while [ $# -gt 0 ]; do
    case $1 in
    --build)
        build=$2
        shift
        ;;
    --werror) setup="$setup --werror" ;;
    --sanitize)
        sanitize=yes
        setup="$setup -Db_sanitize=address,undefined -Db_lundef=false"
        export ASAN_OPTIONS=detect_leaks=1:abort_on_error=0
        export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
        ;;
    --coverage)
        coverage=yes
        setup="$setup -Db_coverage=true --buildtype=debug"
        ;;
    --valgrind)
        wrapper=$valgrind
        run="$run --timeout-multiplier 10 --no-suite torture" # it has AddressSanitizer built in
        run="$run --no-suite cases" # the cases are in Python
        ;;
    --suite)
        run="$run --suite $2"
        shift
        ;;
    *)
        sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
        exit 2
        ;;
    esac
    shift
done

# Only these checks of UndefinedBehaviorSanitizer are branches to gcov, and no test can take both
# sides of them.
if [ "$sanitize$coverage" = yesyes ]; then
    unmeasured=bool,builtin,float-cast-overflow,integer-divide-by-zero,nonnull-attribute,shift
    setup="$setup -Dc_args=-fno-sanitize=$unmeasured"
fi

sh test/install.sh build "${REDLOCK_SERVER:-redis-server}" test

# Building them takes a while.
case " $run " in
*' --suite mutants '*) ;;
*' --suite '* | *' --no-suite mutants '*) setup="$setup -Dmutants=false" ;;
esac

compile() {
    if [ -f "$build/meson-private/coredata.dat" ]; then
        # $setup and $run are lists of words.
        # shellcheck disable=SC2086
        meson setup --reconfigure "$build" $setup
    else
        # shellcheck disable=SC2086
        meson setup "$build" $setup
    fi && meson compile -C "$build"
}

if ! compile; then
    echo
    echo "It does not build."
    echo "0 passed, 1 failed"
    exit 1
fi

rm -f "$build"/meson-logs/testlog*.json
find "$build" -name '*.gcda' -delete
status=0
if [ -n "$wrapper" ]; then
    # shellcheck disable=SC2086
    meson test -C "$build" --no-rebuild $run --wrapper "$wrapper" || status=$?
else
    # shellcheck disable=SC2086
    meson test -C "$build" --no-rebuild $run || status=$?
fi

echo
echo 'The slowest tests, in seconds:'
sed -nE 's/.*"name": "([^"]*)".*"duration": ([0-9.]+).*/\2 \1/p' \
    "$build"/meson-logs/testlog*.json 2>/dev/null | sort -rn | head -n 12 | sed 's/^/  /'

# Each line of the log is a test program. Most programs print the TAP of several cases, which are
# counted; any other program is one case. A program that fails without a failed case is one failure.
counts=$(cat "$build"/meson-logs/testlog*.json 2>/dev/null | awk '
    {
        match($0, /"result": "[A-Z]+"/)
        result = substr($0, RSTART + 11, RLENGTH - 12)
        bad = gsub(/(\\n|"stdout": ")not ok [0-9]/, "")
        good = gsub(/(\\n|"stdout": ")ok [0-9]/, "")
        if (result == "SKIP") {
            good = 0
        } else if (result == "OK" || result == "EXPECTEDFAIL") {
            good += (good == 0)
        } else {
            bad += (bad == 0)
        }
        passed += good
        failed += bad
    }
    END { print passed + 0, failed + 0 }')
passed=${counts% *}
failed=${counts#* }
if [ "$status" -ne 0 ] && [ "$failed" -eq 0 ]; then
    failed=1
fi
if [ "$failed" -ne 0 ] && [ -f "$build/meson-logs/testlog.txt" ]; then
    sh test/failures.sh "$build"
fi

echo
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
