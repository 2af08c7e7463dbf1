#!/bin/sh
# Runs libFuzzer to search for inputs that break a promise:
#
#     sh test/fuzz/run.sh SECONDS BUILD_FOLDER [TARGET]...
#
# If the folder does not exist, it is created with CC=clang and -Dfuzz=true. Each target (uri,
# replies, calls; the default is all) runs for SECONDS, all at the same time, on a copy of its
# corpus, so that the checkout does not change. An input that breaks a promise is stored in
# BUILD_FOLDER/fuzz-findings, to be added to the corpus under a name that says what it found;
# `BUILD_FOLDER/test/fuzz/fuzz-TARGET FILE` runs it again, with the log if REDLOCK_FUZZ_LOG is set.
#
# The last line is "N passed, N failed", for the targets; exits with 0 only if none failed.
set -eu
export LC_ALL=C.UTF-8

cd "$(dirname "$0")/../.."

if [ $# -lt 2 ]; then
    sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
seconds=$1
build=$2
shift 2
if [ $# -eq 0 ]; then
    set -- replies calls uri
fi

sh test/install.sh build test check
if [ ! -f "$build/meson-private/coredata.dat" ]; then
    CC=clang meson setup "$build" -Dfuzz=true -Dtests=enabled -Dbench=disabled \
        -Dexamples=disabled --werror
fi
for target in "$@"; do
    meson compile -C "$build" "fuzz-$target"
done

findings=$build/fuzz-findings
mkdir -p "$findings"
corpora=$(mktemp -d)
trap 'rm -rf "$corpora"' EXIT
trap 'exit 130' INT TERM HUP

export ASAN_OPTIONS=detect_leaks=1
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1

fuzz() { # TARGET
    cp -r "test/fuzz/corpus/$1" "$corpora/$1"
    "$build/test/fuzz/fuzz-$1" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 \
        -max_len=600 -print_final_stats=1 -artifact_prefix="$findings/$1-" "$corpora/$1" \
        >"$findings/$1.log" 2>&1
}

passed=0
failed=0
judge() { # TARGET PROCESS
    if wait "$2"; then
        passed=$((passed + 1))
        echo "fuzz-$1: $(grep -a 'DONE  ' "$findings/$1.log" | tr '\t' ' ')"
    else
        failed=$((failed + 1))
        echo "fuzz-$1: failed; the end of $findings/$1.log:"
        grep -av '^#[0-9]' "$findings/$1.log" | tail -n 60
    fi
}

started=
for target in "$@"; do
    fuzz "$target" &
    started="$started $target=$!"
done
for target in $started; do
    judge "${target%=*}" "${target#*=}"
done

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
