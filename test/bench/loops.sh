#!/bin/sh
# Checks with short runs that the table of bench/loops.sh has all rows, and both bars. A busy machine
# may miss them.
#
#     sh test/bench/loops.sh PATH-OF-redlock-bench
set -eu
export LC_ALL=C.UTF-8

table=$(RUNS=1 NODES=3 DURATION=0.2 LOOPS=epoll \
    sh "$(dirname "$0")/../../bench/loops.sh" "$1") || [ "$?" -eq 1 ]
printf '%s\n' "$table"

# count PATTERN NUMBER: checks how many lines match
count() {
    if [ "$(printf '%s\n' "$table" | grep -Ec "$1")" -ne "$2" ]; then
        echo "failed: not $2 lines match $1"
        exit 1
    fi
}

count '^\| (libevent|epoll|mt) \| [0-9]+ us \| [0-9.]+ \| [0-9]+ \| [0-9.]+ \| [0-9.]+ us \| [0-9.]+ \|$' 3
count ', bar [0-9.]+: (met|missed)$' 2
