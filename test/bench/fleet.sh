#!/bin/sh
# Checks with short runs that the tables of bench/fleet.sh have all rows and numbers.
#
#     sh test/bench/fleet.sh PATH-OF-redlock-bench
set -eu
export LC_ALL=C.UTF-8

tables=$(CLIENTS=4 NODES=3 DURATION=0.2 WAITERS='1 3' IN_FLIGHT='2 4' MIXED_DURATION=0.5 \
    sh "$(dirname "$0")/../../bench/fleet.sh" "$1")
printf '%s\n' "$tables"

# count PATTERN NUMBER: checks how many lines match
count() {
    if [ "$(printf '%s\n' "$tables" | grep -Ec "$1")" -ne "$2" ]; then
        echo "failed: not $2 lines match $1"
        exit 1
    fi
}

count '^\| [a-z, ]+( \| [0-9.]+){6} \|$' 5
count '^\| [a-z, ]+( \| [0-9.]+){5} \|$' 3
count '^\| [13] \| [24]( \| [0-9.]+){5} \|$' 4
count '^\|---' 3
