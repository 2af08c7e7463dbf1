#!/bin/sh
# Builds everything and runs the tests that a change needs: unit, integration and docs, and a twelfth
# of the mutants and of torture and a range of worlds, which the commit draws. The last line is
# "N passed, N failed"; exits with 0 only if none failed and at least one passed.
#
#     sh test/run.sh [--all] [--build FOLDER] [--werror] [--sanitize] [--coverage] [--valgrind]
#                    [--suite NAME]...
#
#     --all           run all tests
#     --build FOLDER  where to build (default: build); one folder for each kind of build
#     --werror        treat warnings as errors
#     --sanitize      use AddressSanitizer and UndefinedBehaviorSanitizer
#     --coverage      with gcc: measure coverage; `sh test/coverage.sh --of FOLDER` prints it
#     --valgrind      run each test under valgrind
#     --suite NAME    run only this suite: unit, headers (of unit), install, integration, memcheck,
#                     loops and cpp (of integration), sim, worlds (of sim), mutants, model, proof,
#                     torture, fuzz, chaos, command, gateway, examples, cases (of examples), docs,
#                     drawn (worlds), optimized (of integration and command: little is gained with
#                     sanitizers). Builds only what the chosen suites need
#
# CC and CXX name the compilers for a new folder. TEST_ARGS is passed to `meson test`.
# REDLOCK_SERVER is the server to test with: redis-server (default) or valkey-server.
set -eu
export LC_ALL=C.UTF-8

cd "$(dirname "$0")/.."

build=build
setup='-Dtests=enabled -Dbench=enabled -Dexamples=enabled -Dcpp=enabled -Dgateway=enabled
    -Dsqlite=enabled'
run=${TEST_ARGS:-}
all=no
sanitize=no
coverage=no
valgrind='valgrind --quiet --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite'
wrapper=

while [ $# -gt 0 ]; do
    case $1 in
    --all) all=yes ;;
    --build)
        build=$2
        shift
        ;;
    --werror)
        setup="$setup --werror"
        ;;
    --sanitize) # finds as much if it is not optimized, and then builds in half of the time
        sanitize=yes
        setup="$setup -Db_sanitize=address,undefined -Db_lundef=false --buildtype=debug"
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
        run="$run --no-suite cases --no-suite headers" # the cases are in Python; headers only build
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

sh test/install.sh build "${REDLOCK_SERVER:-redis-server}" test loops
# Provers are large: only all tests, or those of the proof, install them.
case $all,$sanitize," $run " in
yes,no,* | *' --suite proof '*)
    sh test/install.sh proof
    sh test/install.sh arithmetic || echo "The arithmetic of the proof is not checked." >&2
    ;;
esac

# Building mutants takes a while.
targets=all
case $all," $run " in
*' --suite mutants '*) setup="$setup -Dmutants=true" ;;
*' --suite '* | *' --no-suite mutants '*) setup="$setup -Dmutants=false" ;;
yes,*) setup="$setup -Dmutants=true" ;;
*)
    # Without a repository (a release's archive) the first part is drawn.
    commit=$(git rev-parse --short=7 HEAD 2>/dev/null || echo 0)
    part=$((0x$commit % 12 + 1))
    setup="$setup -Dmutants=false"
    [ "$sanitize$coverage" != nono ] || targets="all,mutants-$part"
    run="$run --suite unit --suite integration --suite docs --suite drawn --suite part$part"
    echo "drawn by the commit: part $part of mutants and torture"
    ;;
esac
only_needed=no
case " $run " in
*' --suite '* | *' --no-suite '*) [ "$targets" != all ] || only_needed=yes ;;
esac
# Many tests wait more than they work, so more of them run at once than there are cores.
export MESON_TESTTHREADS="${MESON_TESTTHREADS:-$(($(nproc) * 3))}"
export NINJA_STATUS='[%f/%t, %e s] '

# list_needed: prints the files that the tests of the chosen suites need, and those to install.
# Pages name any program, so with suite docs it prints all that is not for tests of other suites
# alone.
list_needed() {
    # $run is a list of words.
    # shellcheck disable=SC2086
    meson introspect "$build" --tests --targets | python3 -c '
import json, os, sys

build, words = os.path.realpath(sys.argv[1]), sys.argv[2:]
options = list(zip(words, words[1:]))
suites = {name for option, name in options if option == "--suite"}
left_out = {name for option, name in options if option == "--no-suite"}
known = json.load(sys.stdin)
needed, tested = set(), set()
for test in known["tests"]:
    names = {suite.split(":")[-1] for suite in test["suite"]}
    tested.update(test["depends"])
    if (not suites or suites & names) and not left_out & names:
        needed.update(test["depends"])
for target in known["targets"]:
    is_program = target["build_by_default"] and target["type"] != "static library"
    is_named = "docs" in suites and is_program and target["id"] not in tested
    if target["id"] in needed or target["installed"] or is_named:
        print(os.path.relpath(target["filename"][0], build))' "$build" $run
}

compile() {
    if [ -f "$build/meson-private/coredata.dat" ]; then
        # $setup and $run are lists of words.
        # shellcheck disable=SC2086
        meson setup --reconfigure "$build" $setup
    else
        # shellcheck disable=SC2086
        meson setup "$build" $setup
    fi || return
    if [ "$only_needed" = yes ]; then
        targets=$(list_needed | paste -sd , -)
    fi
    meson compile -C "$build" --ninja-args="$targets"
}

# report_progress LINE: reports once in half a minute how many tests have ended, if LINE says so
report_progress() {
    numbers=${1%%[!0-9/ ]*}
    case $numbers in
    *[0-9]/[0-9]*' ') ;;
    *) return 0 ;;
    esac
    ended=$((${numbers%/*}))
    all_tests=${numbers#*/}
    all_tests=${all_tests%% *}
    now=$(date +%s)
    if [ $((now - reported)) -ge 30 ]; then
        reported=$now
        left=
        # The longest tests start first, so a quarter of the tests takes most of the time.
        if [ $((ended * 4)) -ge "$all_tests" ]; then
            left=", less than $(((now - begun) * (all_tests - ended) / ended)) s left"
        fi
        echo "=== $ended of $all_tests tests in $((now - begun)) s$left"
    fi
}

# run_tests ARGUMENT...: runs `meson test`, and reports its progress
run_tests() {
    begun=$(date +%s)
    reported=$begun
    {
        passes=0
        # The limits in the meson.build files are those of an idle machine.
        PYTHONUNBUFFERED=1 meson test -C "$build" --no-rebuild --timeout-multiplier 3 "$@" 2>&1 ||
            passes=$?
        echo "status $passes"
    } | while IFS= read -r line; do
        case $line in
        'status '*) exit "${line#status }" ;;
        esac
        printf '%s\n' "$line"
        report_progress "$line"
    done
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
    run_tests $run --wrapper "$wrapper" || status=$?
else
    # shellcheck disable=SC2086
    run_tests $run || status=$?
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
