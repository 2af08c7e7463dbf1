#!/bin/sh
# Runs three processes of examples/leader.cpp at once: each one leads for the requested number of
# terms, and no term has steps of two processes.
# usage: leader.sh PROGRAM, with URIs in REDLOCK_NODES
set -eu
export LC_ALL=C

program=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

pids=
for name in one two three; do
    # The nodes are a list of words.
    # shellcheck disable=SC2086
    "$program" orders 3 $REDLOCK_NODES >"$work/$name" 2>&1 &
    pids="$pids $!"
done
status=0
for pid in $pids; do
    wait "$pid" || status=1
done
for name in one two three; do
    [ "$(grep -cx "done" "$work/$name")" = 3 ] || status=1
    sed -n 's/.*fence //p' "$work/$name" | sort -u >"$work/$name.fences"
done
sort "$work"/*.fences | uniq -d >"$work/shared"
[ ! -s "$work/shared" ] || status=1
[ "$status" -eq 0 ] || tail -n 100 "$work"/*
exit "$status"
