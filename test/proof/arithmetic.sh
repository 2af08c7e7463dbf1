#!/bin/sh
# Checks the arithmetic that the proof relies on, for all arguments: times that saturate
# (lib/base/nanos.h), majorities (lib/core/quorum.h), ranges of fences (lib/wire/fence.h), and
# validity (lib/core/validity.c). Frama-C's WP proves the contracts of arithmetic.h about the
# library's own files, and that nothing overflows; z3 searches floats.smt2. Prints a line for each
# group of goals.
#
#     sh test/proof/arithmetic.sh [ROOT]     ROOT: the project's folder, or a changed copy of it
#
# Needs frama-c-base, z3 and cvc4 of Debian 12 (frama-c-base brings why3): 515 MB with all that
# they need. The versions are those with which the goals were proved: Frama-C 25, why3 1.5, z3 4.8,
# CVC4 1.8.
#
# What the tools do not show:
#  - WP takes the double of validity.c for a real number. By IEEE 754 a product is off by half of
#    its last place: 1/4 ns at most for a TTL of up to 2^53 ns (104 days), which itself is exact as
#    a double. So a drift may be 1/4 ns too small, and the 2 ms cover that.
#  - That a product of two doubles lies where floats.smt2 says, between the products with the
#    bounds of the drift: IEEE 754 again, z3 does not finish it.
#  - floats.smt2 is written by hand. This script only checks that the functions have not changed.
#  - __builtin_popcount counts bits: what WP gets is a number from 0 to 32, and 0 for no bits.
#  - That the callers keep what contracts require: drift is checked in lib/core/options.c; no more
#    votes against than nodes are counted in lib/core/round.c.
#  - The arithmetic of lib/core/trust.c: ages of memories, and bounds of nodes' clocks.
#  - That compilers and processors do what C says.
set -eu
export LC_ALL=C

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "${1:-$here/../..}" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' HUP INT TERM
export WHY3CONFIG="$folder/why3.conf"

passed=0
failed=0

# need COMMAND PACKAGE
need() {
    if ! command -v "$1" >/dev/null; then
        echo "arithmetic.sh: $1 is missing: apt-get install --no-install-recommends $2" >&2
        exit 1
    fi
}

# report NAME PROVED ALL LOG: prints the line of a group; if not all of it is proved, also the log
report() {
    passed=$((passed + $2))
    failed=$((failed + $3 - $2))
    if [ "$2" -eq "$3" ]; then
        echo "$1: $2 of $3 goals"
    else
        echo "$1: FAILED, $2 of $3 goals"
        sed 's/^/    /' "$4"
    fi
}

# prove NAME GOALS FUNCTIONS [OPTION]...: runs WP on these functions; no fewer goals are expected,
# because one that is not generated is not proved
prove() {
    name=$1
    least=$2
    functions=$3
    shift 3
    log=$folder/log
    (cd "$folder" && frama-c -cpp-extra-args="-I$root/lib" -wp -wp-rte "$@" \
        -warn-unsigned-overflow -warn-unsigned-downcast -wp-prover z3,cvc4 -wp-timeout 20 \
        -wp-par 2 -wp-fct "$functions" "$here/arithmetic.c") >"$log" 2>&1 || true
    counts=$(sed -n 's/^\[wp\] Proved goals: *\([0-9]*\) *\/ *\([0-9]*\)$/\1 \2/p' "$log")
    proved=${counts% *}
    all=${counts#* }
    if [ "${all:-0}" -lt "$least" ]; then
        all=$least
    fi
    grep -v ': Valid\|pedantic-assigns\|No .assigns. specification\|Callers assumptions' "$log" \
        >"$log.short" || true
    report "$name" "${proved:-0}" "$all" "$log.short"
}

# body_of FUNCTION: prints its definition in validity.c as floats.smt2 has it, without comments
body_of() {
    sed -n "/^uint64_t $1(/,/^}/{/^ *\/\*/d;s/^/; /p;}" "$root/lib/core/validity.c"
}

# search: runs z3 on floats.smt2
search() {
    log=$folder/log
    all=$(grep -c '^(echo' "$here/floats.smt2")
    if [ "$(sed -n '/^; uint64_t /,/^; }/p' "$here/floats.smt2")" != \
        "$(body_of validity_drift && body_of validity_ttl)" ]; then
        echo 'validity.c has other functions than floats.smt2: translate them' >"$log"
        report 'floating point' 0 "$all" "$log"
        return
    fi
    z3 -T:100 "$here/floats.smt2" >"$log" 2>&1 || true
    proved=$(awk '
        { sought = name ~ /^sat:/ ? "sat" : "unsat" }
        $0 == sought { proved++ }
        { name = $0 }
        END { print proved + 0 }' "$log")
    report 'floating point' "$proved" "$all" "$log"
}

need frama-c frama-c-base
need why3 why3
need z3 z3
need cvc4 cvc4

why3 config detect >"$folder/log" 2>&1 || true
prove 'times' 26 nanos_add,nanos_sub,nanos_min,nanos_max,nanos_from_ms,nanos_to_ms
prove 'majorities' 38 quorum_of,quorum_is_reached,quorum_is_blocked,quorum_is_met
prove 'ranges of fences' 13 fence_first,fence_from_clock
prove 'validity, by real numbers' 36 validity_drift,validity_end,validity_ttl -wp-model +real
search

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
