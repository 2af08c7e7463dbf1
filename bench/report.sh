#!/bin/sh
# Runs the standard set of measurements, all kinds in turns, and writes a report with plots:
# report.md, and an SVG for each plot. The numbers are medians; the bars in plots show the spread.
#
#     sh bench/report.sh [--to FOLDER] [path of redlock-bench]
#
# FOLDER is build-report unless given. Without a path, redlock-bench is first built as a release
# (release.sh). The set takes about 8 minutes. RUNS, NODES, DURATION (s), IN_FLIGHT, RATE, HELD,
# HELD_TTL (ms), HELD_DURATION (s), WAITERS and WAITERS_DURATION (s) change it.
set -eu
export LC_ALL=C.UTF-8

runs=${RUNS:-5}
nodes=${NODES:-5}
duration=${DURATION:-1}
in_flight=${IN_FLIGHT:-1 16 64 256 1024}
rate=${RATE:-20000}
held=${HELD:-1000 10000 100000}
held_ttl=${HELD_TTL:-10000}
held_duration=${HELD_DURATION:-10}
waiters=${WAITERS:-2 16 128 1024}
waiters_duration=${WAITERS_DURATION:-2}

here=$(cd "$(dirname "$0")" && pwd)
folder=$here/../build-report
bench=

die() {
    echo "report.sh: $*" >&2
    exit 2
}

while [ $# -gt 0 ]; do
    case $1 in
    --to)
        [ $# -gt 1 ] || die "--to: no folder"
        folder=$2
        shift
        ;;
    -*) die "there is no $1" ;;
    *) bench=$1 ;;
    esac
    shift
done
[ -n "$bench" ] || bench=$(sh "$here/release.sh")
[ -x "$bench" ] || die "there is no $bench: build it first"
mkdir -p "$folder"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
: >"$work/results"

# ------------------------------------------------------------------------------------- measuring

# measure SET SERIES X OPTION...: runs once, and adds "SET SERIES X FIELD VALUE" for each field.
# Errors and losses are results: the report has them.
measure() {
    set_name=$1
    series=$2
    x=$3
    shift 3
    "$bench" --spawn "$nodes" --json "$@" >"$work/json" 2>"$work/log" || [ -s "$work/json" ] || {
        cat "$work/log" >&2
        die "failed: redlock-bench $*"
    }
    awk -f "$here/flatten.awk" "$work/json" |
        sed "s/^/$set_name $series $x /" >>"$work/results"
}

# in_turns COMMAND...: runs the command with each client
in_turns() {
    "$@" libredlock
    "$@" stock_floor --floor stock
    "$@" epoll_floor --floor epoll
}

# cycles SET NUMBER "OPTION..." SERIES OPTION...
cycles() {
    cycles_set=$1
    cycles_number=$2
    cycles_options=$3
    shift 3
    cycles_series=$1
    shift
    # A list of words.
    # shellcheck disable=SC2086
    measure "$cycles_set" "$cycles_series" "$cycles_number" --in-flight "$cycles_number" \
        --duration "$duration" $cycles_options "$@"
}

run_once() {
    for number in $in_flight; do
        in_turns cycles masters "$number" ''
        in_turns cycles null "$number" --null-masters
    done
    in_turns cycles rate 64 "--rate $rate"
    for number in $held; do
        measure held libredlock "$number" --held "$number" --ttl "$held_ttl" \
            --duration "$held_duration"
    done
    for number in $waiters; do
        measure contend in_line "$number" --contend --clients "$number" --processes 2 \
            --duration "$waiters_duration"
        measure contend polling "$number" --contend --clients "$number" --processes 2 --poll \
            --duration "$waiters_duration"
    done
}

# --------------------------------------------------------------------------------------- results

# medians: prints "SET SERIES X FIELD MEDIAN LEAST MOST" for all numbers, in the order of their
# first results
medians() {
    awk '
        { key = $1 " " $2 " " $3 " " $4 }
        $5 !~ /^-?[0-9]/ { next }
        !(key in count) { order[++keys] = key }
        { value[key, ++count[key]] = $5 }
        function sort_values(key,    n, i, j, held) {
            n = count[key]
            for (i = 2; i <= n; i++) {
                held = value[key, i]
                for (j = i - 1; j >= 1 && value[key, j] > held; j--)
                    value[key, j + 1] = value[key, j]
                value[key, j + 1] = held
            }
        }
        function median(key,    n) {
            n = count[key]
            return n % 2 ? value[key, (n + 1) / 2] : (value[key, n / 2] + value[key, n / 2 + 1]) / 2
        }
        END {
            for (i = 1; i <= keys; i++) {
                key = order[i]
                sort_values(key)
                print key, median(key), value[key, 1], value[key, count[key]]
            }
        }' "$work/results"
}

# points SET FIELD: prints "SERIES X MEDIAN LEAST MOST", ordered by X
points() {
    awk -v set_name="$1" -v field="$2" '$1 == set_name && $4 == field { print $2, $3, $5, $6, $7 }' \
        "$work/medians" | sort -s -n -k2,2
}

# plot NAME TITLE X-TITLE Y-TITLE OPTION...: draws the points of stdin, and adds the plot to the
# report
plot() {
    plot_name=$1
    plot_title=$2
    plot_x=$3
    plot_y=$4
    shift 4
    awk -v title="$plot_title" -v x_title="$plot_x" -v y_title="$plot_y" "$@" \
        -f "$here/plot.awk" >"$folder/$plot_name.svg"
    printf '![%s](%s.svg)\n\n' "$plot_title" "$plot_name"
}

# table X-TITLE SET FIELD FORMAT: prints a row for each X, and a column for each series
table() {
    points "$2" "$3" | awk -v x_title="$1" -v format="$4" '
        !($1 in is_known) { is_known[$1]; series[++columns] = $1 }
        !($2 in has_row) { has_row[$2]; row[++rows] = $2 }
        { value[$1, $2] = sprintf(format, $3) }
        END {
            head = "| " x_title " |"
            rule = "|---|"
            for (i = 1; i <= columns; i++) {
                name = series[i]
                gsub(/_/, " ", name)
                head = head " " name " |"
                rule = rule "---|"
            }
            print head
            print rule
            for (r = 1; r <= rows; r++) {
                text = "| " row[r] " |"
                for (i = 1; i <= columns; i++) text = text " " value[series[i], row[r]] " |"
                print text
            }
            print ""
        }'
}

# ratios SET: prints libredlock's numbers divided by those of the floors
ratios() {
    awk -v set_name="$1" '
        $1 == set_name { value[$2, $3, $4] = $5 }
        $1 == set_name && !($3 in has_row) { has_row[$3]; row[++rows] = $3 }
        function ratio(floor, x, field) {
            return sprintf("%.2f", value["libredlock", x, field] / value[floor, x, field])
        }
        END {
            print "| in flight | cycles/s by stock floor | CPU | p50 of acquisition |" \
                " cycles/s by epoll floor | CPU |"
            print "|---|---|---|---|---|---|"
            for (i = 1; i <= rows; i++)
                print "| " row[i], ratio("stock_floor", row[i], "cycles_per_s"),
                    ratio("stock_floor", row[i], "client_cpu_us_per_cycle"),
                    ratio("stock_floor", row[i], "acquire_us.p50"),
                    ratio("epoll_floor", row[i], "cycles_per_s"),
                    ratio("epoll_floor", row[i], "client_cpu_us_per_cycle") " |"
            print ""
        }' OFS=' | ' "$work/medians"
}

# quantiles SET: prints "SERIES 1/(1-QUANTILE) US LEAST MOST" for the acquisitions
quantiles() {
    awk -v set_name="$1" '
        BEGIN { split("p50 p90 p99 p999 p9999", names, " "); split("2 10 100 1000 10000", x, " ") }
        $1 == set_name {
            for (i = 1; i <= 5; i++) if ($4 == "acquire_us." names[i]) print $2, x[i], $5, $6, $7
        }' "$work/medians"
}

version_of() {
    pkg-config --modversion "$1" 2>/dev/null || echo unknown
}

# Prints the first line of a command's output, or "unknown".
first_line_of() {
    { "$@" 2>/dev/null || echo unknown; } | sed -n 1p
}

machine() {
    model=$(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | sed -n 1p)
    memory=$(awk '$1 == "MemTotal:" { printf "%.0f GB", $2 / 1e6 }' /proc/meminfo)
    cat <<END
| | |
|---|---|
| date | $(date -u '+%Y-%m-%d %H:%M UTC') |
| commit | $(first_line_of git -C "$here" describe --always --dirty) |
| processor | ${model:-unknown}, $(getconf _NPROCESSORS_ONLN) cores |
| memory | $memory |
| system | $(uname -sr) |
| load before, after | $load_before, $(cut -d ' ' -f 1 /proc/loadavg) |
| server | $(first_line_of "${REDLOCK_SERVER:-redis-server}" --version) |
| hiredis, libevent, libsodium | $(version_of hiredis), $(version_of libevent), $(version_of libsodium) |
| compiler | $(first_line_of "${CC:-cc}" --version) |

END
}

write_cycles() { # SET NAME
    points "$1" cycles_per_s | plot "$2-throughput" "Cycles per second" "in flight" "cycles/s" \
        -v x_log=1
    table 'in flight' "$1" cycles_per_s %.0f
    points "$1" client_cpu_us_per_cycle | plot "$2-cpu" "CPU time of the client" "in flight" \
        "us per cycle" -v x_log=1
    table 'in flight' "$1" client_cpu_us_per_cycle %.2f
    echo "CPU time of all masters together, us per cycle:"
    echo
    table 'in flight' "$1" masters_cpu_us_per_cycle %.2f
    ratios "$1"
}

write_held() {
    points held renewals_per_s | plot renewals 'Renewals of held locks' 'locks held' \
        'renewals/s' -v x_log=1 -v y_log=1
    table 'locks held' held renewals_per_s %.0f
    points held client_cores | plot held-cpu 'CPU time of the client with held locks' \
        'locks held' 'cores' -v x_log=1
    table 'locks held' held client_cores %.4f
    for field in lost rss_mb timer_late_ms.p99 timer_late_ms.max; do
        echo "\`$field\`:"
        echo
        table 'locks held' held "$field" %.1f
    done
}

write_contend() {
    points contend handoff_us | plot handover 'Handover of a lock' 'waiters' 'us, median' \
        -v x_log=1
    table waiters contend handoff_us %.0f
    points contend wait_us.p99 | plot waits 'Waits' 'waiters' 'us, 99th percentile' -v x_log=1 \
        -v y_log=1
    table waiters contend wait_us.p99 %.0f
    points contend acquisitions_per_s | plot handovers 'Acquisitions of one key' 'waiters' \
        'acquisitions/s' -v x_log=1
    table waiters contend acquisitions_per_s %.0f
}

write_report() {
    echo "# Report of redlock-bench"
    echo
    machine
    echo "Runs: $runs, of which the medians are shown, and in plots bars from the least to the greatest;"
    echo "masters: $nodes, on the same machine. Absolute numbers are this machine's; ratios hold"
    echo "elsewhere, too."
    printf '\n## Cycles on masters\n\n'
    write_cycles masters masters
    printf '## Cycles on null masters, which cost next to nothing\n\n'
    write_cycles null null
    printf '## Latency at %s cycles per second\n\n' "$rate"
    quantiles rate | plot latency "Acquisitions, from the instant when each was due" quantile us \
        -v x_log=1 -v y_log=1 -v x_marks='2=50% 10=90% 100=99% 1000=99.9% 10000=99.99%'
    for field in p50 p99 p9999 max; do
        echo "\`acquire_us\` \`$field\`:"
        echo
        table 'in flight, at the most' rate "acquire_us.$field" %.1f
    done
    printf '## Held locks, TTL %s ms\n\n' "$held_ttl"
    write_held
    printf '## Handover between two processes\n\n'
    write_contend
    errors=$(awk '$4 == "errors" { errors += $5 } END { print errors + 0 }' "$work/results")
    echo "Errors in all runs: $errors."
}

load_before=$(cut -d ' ' -f 1 /proc/loadavg)
run=0
while [ "$run" -lt "$runs" ]; do
    run=$((run + 1))
    echo "run $run of $runs" >&2
    run_once
done
medians >"$work/medians"
write_report >"$folder/report.md"
echo "$folder/report.md"
