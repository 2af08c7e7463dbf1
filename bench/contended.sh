#!/bin/sh
# Prints how often a second one contended lock is handed over: without a fence, with a fence, and
# by PostgreSQL's advisory locks, which wait in a queue as fairly. All three run in turns, so that a
# busy machine slows down all of them, and the medians are printed.
#
#     sh bench/contended.sh [path of redlock-bench]
#
# Without an argument, redlock-bench is first built as a release (release.sh). PostgreSQL's server
# and pgbench must be installed. Its server runs in a temporary folder and listens on no address;
# run by root, it runs as the user postgres.
#
# RUNS, NODES, DURATION (seconds), HOLD_US and SHAPES="1x16 4x4" (processes x contenders of each)
# change the runs.
set -eu
export LC_ALL=C.UTF-8

runs=${RUNS:-5}
nodes=${NODES:-5}
duration=${DURATION:-5}
hold_us=${HOLD_US:-1000}
shapes=${SHAPES:-1x16 4x4}
here=$(cd "$(dirname "$0")" && pwd)

if [ $# -gt 0 ]; then
    bench=$1
else
    bench=$(sh "$here/release.sh")
fi
if [ ! -x "$bench" ]; then
    echo "contended.sh: there is no $bench: build it first, or name it as the argument" >&2
    exit 2
fi
for folder in /usr/lib/postgresql/*/bin; do
    PATH=$PATH:$folder
done
for program in initdb pg_ctl pgbench; do
    if ! command -v "$program" >/dev/null; then
        echo "contended.sh: there is no $program: install PostgreSQL's server" >&2
        exit 2
    fi
done

work=$(mktemp -d)
chmod 755 "$work"
mkdir "$work/data"

# server COMMAND...: runs a command of PostgreSQL's server, which refuses to run as root
if [ "$(id -u)" -eq 0 ]; then
    chown postgres "$work/data"
    server() { setpriv --reuid=postgres --regid=postgres --clear-groups "$@"; }
else
    server() { "$@"; }
fi

stop() {
    server pg_ctl stop -D "$work/data" -m immediate >/dev/null 2>&1 || :
    rm -rf "$work"
}
trap stop EXIT
trap 'exit 130' INT TERM

server initdb -D "$work/data" -A trust -U lock >/dev/null
server pg_ctl start -w -D "$work/data" -l "$work/data/log" \
    -o "-c listen_addresses= -c unix_socket_directories=$work/data" >/dev/null
cat >"$work/turn.sql" <<END
SELECT pg_advisory_lock(1);
\\sleep $hold_us us
SELECT pg_advisory_unlock(1);
END

# measure KIND PROCESSES CONTENDERS: prints the acquisitions per second
measure() {
    case $1 in
    postgresql)
        pgbench -n -h "$work/data" -U lock -f "$work/turn.sql" -j "$2" -c $(($2 * $3)) \
            -T "$duration" postgres 2>/dev/null |
            awk '/^tps/ { print $3 }'
        ;;
    *)
        fenced=
        if [ "$1" = fenced ]; then
            fenced=--fenced
        fi
        "$bench" --spawn "$nodes" --contend --processes "$2" --clients $(($2 * $3)) \
            --hold-us "$hold_us" --duration "$duration" $fenced --json |
            awk -f "$here/flatten.awk" |
            awk '{ value[$1] = $2 }
                 END { if (value["errors"] == 0) print value["acquisitions_per_s"] }'
        ;;
    esac
}

run=0
while [ "$run" -lt "$runs" ]; do
    for shape in $shapes; do
        for kind in unfenced fenced postgresql; do
            result=$(measure "$kind" "${shape%x*}" "${shape#*x}")
            if [ -z "$result" ]; then
                echo "contended.sh: a run failed: $kind, $shape" >&2
                exit 1
            fi
            echo "$result" >>"$work/$shape.$kind"
        done
    done
    run=$((run + 1))
done

# median FILE: prints the median of its lines
median() {
    sort -n "$1" | awk '{ line[NR] = $1 } END { print line[int((NR + 1) / 2)] }'
}

echo "| processes x contenders | without a fence | fenced | PostgreSQL |"
echo "|---|---:|---:|---:|"
for shape in $shapes; do
    printf '| %s | %.0f | %.0f | %.0f |\n' "${shape%x*} x ${shape#*x}" \
        "$(median "$work/$shape.unfenced")" "$(median "$work/$shape.fenced")" \
        "$(median "$work/$shape.postgresql")"
done
