#!/bin/sh
# Checks the Lua scripts (lib/wire/scripts) in the form that is sent to servers: Lua 5.1 accepts
# them (`luac -p`), and luacheck finds nothing. If a tool is not installed, its check is skipped,
# and the output says so.
set -eu
export LC_ALL=C.UTF-8

cd "$(dirname "$0")/.."

folder=lib/wire/scripts
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

for script in "$folder"/*.lua; do
    awk -v folder="$folder" -f "$folder/assemble.awk" \
        lib/wire/script.h include/redlock.h "$script" >"$work/$(basename "$script")"
done

status=0
if command -v luac5.1 >/dev/null; then
    for script in "$work"/*.lua; do
        luac5.1 -p "$script" || status=1
    done
else
    echo "not checked: luac5.1 is not installed"
fi
if command -v luacheck >/dev/null; then
    luacheck --no-color --config .luacheckrc "$work"/*.lua || status=1
else
    echo "not checked: luacheck is not installed"
fi
exit "$status"
