#!/bin/sh
# Makes the static library that is installed: one object in which only the public functions are
# global, so that a program's own conn_open or timer_set does not clash with the library's.
# usage: localize.sh INPUT.a OUTPUT.a PRIVATE_DIR
set -eu
mkdir -p "$3"
${LD:-ld} -r --whole-archive "$1" -o "$3/redlock.o"
${OBJCOPY:-objcopy} --localize-hidden "$3/redlock.o"
rm -f "$2"
${AR:-ar} rcs "$2" "$3/redlock.o"
