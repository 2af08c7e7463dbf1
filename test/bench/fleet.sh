#!/bin/sh
# Checks with short runs that the tables of bench/fleet.sh have all rows and numbers.
#
#     sh test/bench/fleet.sh PATH-OF-redlock-bench
set -eu
export LC_ALL=C.UTF-8

here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=test/bench/tables.sh
. "$here/tables.sh"

tables=$(CLIENTS=4 NODES=3 DURATION=0.2 WAITERS='1 3' IN_FLIGHT='2 4' MIXED_DURATION=0.5 \
    REDLOCK_BENCH=$1 sh "$here/../../bench/fleet.sh" "$here/patient.sh")
printf '%s\n' "$tables"

count '^\| [a-z, ]+( \| [0-9.]+){6} \|$' 7
count '^\| the master restarts, [a-z ]+( \| [0-9.]+){5} \| [0-9]+ \|$' 2
count '^\| all connect( \| [0-9.]+){5} \|  \|$' 1
count '\| timeouts of another \|$' 1
count '^\| [13] \| [24]( \| [0-9.]+){5} \|$' 4
count '^\|---' 3
