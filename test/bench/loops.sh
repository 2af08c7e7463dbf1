#!/bin/sh
# Checks with short runs that the table of bench/loops.sh has all rows, and both bars. A busy machine
# may miss them.
#
#     sh test/bench/loops.sh PATH-OF-redlock-bench
set -eu
export LC_ALL=C.UTF-8

here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=test/bench/tables.sh
. "$here/tables.sh"

tables=$(RUNS=1 NODES=3 DURATION=0.2 LOOPS=epoll \
    REDLOCK_BENCH=$1 sh "$here/../../bench/loops.sh" "$here/patient.sh") || [ "$?" -eq 1 ]
printf '%s\n' "$tables"

count '^\| (libevent|epoll|mt) \| [0-9]+ us \| [0-9.]+ \| [0-9]+ \| [0-9.]+ \| [0-9.]+ us \| [0-9.]+ \|$' 3
count ', bar [0-9.]+: (met|missed)$' 2
