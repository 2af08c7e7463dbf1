#!/bin/sh
# Prints the cost of one cycle of acquire and release in numbers that hardly depend on the machine's
# speed and load: instructions and allocations of the client's process, by library (callgrind,
# without the kernel), and system calls (strace).
#
#     sh bench/counts.sh [--check] [path of redlock-bench]
#
# Each number is the difference of two runs with different numbers of cycles, per cycle.
# Without a path, redlock-bench is first built as a release (release.sh).
# With --check, only instructions at 64 in flight are counted, and the script exits with 1 if they
# exceed the number in bench/README.md by more than 5 %.
#
# IN_FLIGHT="64 1024", CYCLES, NODES and LOOP (see redlock-bench --loop) change the runs.
set -eu
export LC_ALL=C.UTF-8

in_flight=${IN_FLIGHT:-64 1024}
cycles=${CYCLES:-10000}
nodes=${NODES:-5}
tolerance=5 # percent
here=$(cd "$(dirname "$0")" && pwd)
check=no

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

die() {
    echo "counts.sh: $*" >&2
    exit 2
}

# attempt COMMAND...: shows the output of a command that fails, and exits
attempt() {
    "$@" >"$work/log" 2>&1 || {
        cat "$work/log" >&2
        die "failed: $*"
    }
}

# run CYCLES IN_FLIGHT TOOL...: runs the benchmark under a tool
run() {
    run_cycles=$1
    run_in_flight=$2
    shift 2
    # shellcheck disable=SC2086 # no option without LOOP
    attempt "$@" "$bench" ${LOOP:+--loop "$LOOP"} --spawn "$nodes" --in-flight "$run_in_flight" \
        --cycles "$run_cycles" --json
}

# profile CYCLES IN_FLIGHT FILE
profile() {
    run "$1" "$2" valgrind --quiet --tool=callgrind --callgrind-out-file="$work/profile"
    awk -f "$here/counts.awk" "$work/profile" >"$3"
}

# trace CYCLES IN_FLIGHT FILE
trace() {
    run "$1" "$2" strace -c -o "$work/trace"
    awk '$4 ~ /^[0-9]+$/ { print "calls", $NF == "total" ? "all" : $NF, $4 }' "$work/trace" >"$3"
}

# compare MEASURE CYCLES IN_FLIGHT: prints "KIND NAME NUMBER-PER-CYCLE"
compare() {
    "$1" "$2" "$3" "$work/short"
    "$1" $((2 * $2)) "$3" "$work/long"
    awk -v cycles="$2" '
        NR == FNR { short[$1, $2] = $3; next }
        { printf "%s %s %.4f\n", $1, $2, ($3 - short[$1, $2]) / cycles }
        ' "$work/short" "$work/long"
}

# table KIND FORMAT LEAST: prints the sum, then its parts, the largest first, without those below
# LEAST
table() {
    awk -v kind="$1" '$1 == kind { print $3, $2 }' "$work/counts" | sort -rn |
        awk -v kind="$1" -v format="$2" -v least="$3" '
            $2 == "all" { printf "%-24s " format "\n", kind, $1 }
            { number[NR] = $1; name[NR] = $2 }
            END {
                for (i = 1; i <= NR; i++) {
                    if (name[i] != "all" && number[i] >= least)
                        printf "  %-22s " format "\n", name[i], number[i]
                }
            }'
}

print_counts() { # IN_FLIGHT
    compare profile "$cycles" "$1" >"$work/counts"
    compare trace $((10 * cycles)) "$1" >>"$work/counts" # a turn makes few calls, in any number
    printf 'per cycle, %s nodes, %s in flight\n' "$nodes" "$1"
    table instructions %10.0f 1
    table allocations %10.3f 0.001
    table calls %10.3f 0.001
    echo
}

# recorded: prints the number in README.md
recorded() {
    sed -n 's/^| instructions per cycle, 64 in flight | \([0-9,]*\) |$/\1/p' "$here/README.md" |
        tr -d ,
}

check_counts() {
    bound=$(recorded)
    [ -n "$bound" ] || die "bench/README.md records no number of instructions"
    compare profile "$cycles" 64 >"$work/counts"
    awk -v recorded="$bound" -v tolerance="$tolerance" '
        $1 == "instructions" && $2 == "all" {
            is_met = $3 <= recorded * (1 + tolerance / 100)
            printf "%.0f instructions per cycle, %.0f recorded: %s\n", $3, recorded,
                is_met ? "within " tolerance " %" : "more by over " tolerance " %"
        }
        END { exit !is_met }' "$work/counts"
}

for argument in "$@"; do
    case $argument in
    --check) check=yes ;;
    -*) die "there is no $argument" ;;
    *) bench=$argument ;;
    esac
done
[ -n "${bench:-}" ] || bench=$(sh "$here/release.sh")
[ -x "$bench" ] || die "there is no $bench: build it first"

if [ "$check" = yes ]; then
    check_counts
    exit
fi
for number in $in_flight; do
    print_counts "$number"
done
