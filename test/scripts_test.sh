#!/bin/sh
# Checks how scripts are assembled from their parts (lib/wire/scripts/assemble.awk), with parts that
# are made for this test.
set -eu
export LC_ALL=C

here=$(cd "$(dirname "$0")" && pwd)
scripts=$here/../lib/wire/scripts
# shellcheck source=test/tap.sh
. "$here/tap.sh"

mkdir "$folder/parts"
echo '#define SUFFIX "::s"' >"$folder/texts.h"

# part NAME LINE...: writes a part
part() {
    name=$1
    shift
    printf '%s\n' "$@" >"$folder/parts/$name.lua"
}

# makes EXPECTED: checks that the script in $folder/a.lua is assembled as expected
makes() {
    printf '%s\n' "$1" >"$folder/expected"
    awk -v folder="$folder" -f "$scripts/assemble.awk" "$folder/texts.h" "$folder/a.lua" \
        >"$folder/made" 2>"$folder/said" || return 1
    diff "$folder/expected" "$folder/made" >"$folder/said"
}

# fails MESSAGE: checks that the script is refused, with one message, which contains the text
fails() {
    if awk -v folder="$folder" -f "$scripts/assemble.awk" "$folder/texts.h" "$folder/a.lua" \
        >"$folder/made" 2>"$folder/said"; then
        return 1
    fi
    [ "$(wc -l <"$folder/said")" -eq 1 ] && grep -qF "$1" "$folder/said"
}

# script LINE...: writes the script
script() {
    printf '%s\n' "$@" >"$folder/a.lua"
}

part base '-- Defines base.' '' '-- Returns 1.' 'local function base() return 1 end' \
    'local function other()' '  return base()' 'end'
part left '--@needs base' 'local function left() return base() end' \
    'local unused, unused_too = 1, 2'
part right '--@needs base' "local suffix = '@SUFFIX@'" 'local function right()' \
    '  return base() .. suffix' 'end'
part late 'local function late()' '  --@needs right base' '  return right()' 'end'

script '-- keys:      key' '-- arguments: value' 'return ARGV[1]'
tap_check 'a call without keys does nothing' makes "if #KEYS == 0 then return '' end
return ARGV[1]"
script '-- keys:      none' 'return 1'
tap_check 'but for scripts without keys' makes 'return 1'

script '-- A script.' '--@needs left right' '' '-- The end.' 'return left() + right()'
tap_check 'each part once, behind those it needs, and only what is used' makes \
    "local function base() return 1 end
local function left() return base() end
local suffix = '::s'
local function right()
  return base() .. suffix
end
return left() + right()"

script 'if KEYS[1] then return end' '--@needs left' 'return left()'
tap_check 'a part stands where it is needed' makes \
    'if KEYS[1] then return end
local function base() return 1 end
local function left() return base() end
return left()'

script '--@needs base late' 'return late() + base()'
tap_check 'in a function stand the parts that are not there before' makes \
    "local function base() return 1 end
local function late()
local suffix = '::s'
local function right()
  return base() .. suffix
end
  return right()
end
return late() + base()"

script 'local function one()' '  --@needs base' '  return base()' 'end' \
    'local function two()' '  --@needs base' '  return base()' 'end' 'return one() + two()'
tap_check 'functions have parts of their own' makes \
    'local function one()
local function base() return 1 end
  return base()
end
local function two()
local function base() return 1 end
  return base()
end
return one() + two()'

script '--@needs late base' 'return late() + base()'
tap_check 'a part behind a function that has it' fails \
    "$folder/a.lua: needs $folder/parts/base.lua, which stands in a function before"

script '--@needs missing' 'return missing()'
tap_check 'a part that is missing' fails "$folder/a.lua: cannot read $folder/parts/missing.lua"

part round '--@needs about' 'local function round() end'
part about '--@needs back' 'local function about() end'
part back 'local function back()' '  --@needs round' 'end'
script '--@needs round' 'return round()'
tap_check 'a circle' fails "$folder/parts/back.lua: $folder/parts/round.lua needs itself"

part twice 'local function base() return 2 end'
script '--@needs base twice' 'return base()'
tap_check 'a name that two parts define' fails \
    "$folder/parts/twice.lua: defines base, as does $folder/parts/base.lua"

part global '-- Sets a number.' 'number = 1'
script '--@needs global' 'return number'
tap_check 'a part with more than definitions' fails \
    "$folder/parts/global.lua:2: a part has local definitions alone"

script 'return 1 -- Returns 1.'
tap_check 'a comment behind code' fails "$folder/a.lua: a comment behind code: return 1 -- Returns 1."

script "return '@NOTHING@'"
tap_check 'a text that no header has' fails "$folder/a.lua: no header defines NOTHING"

# embeds STATUS: checks whether the library's scripts are embedded
embeds() {
    status=0
    sh "$folder/lib/wire/scripts/embed.sh" "$folder" "$folder/texts.c" \
        "$folder"/lib/wire/scripts/*.lua >"$folder/said" 2>&1 || status=$?
    [ "$status" -eq "$1" ]
}

cp -R "$here/../lib" "$here/../include" "$folder"
tap_check 'the scripts as they are' embeds 0
rm "$folder/texts.c" "$folder/lib/wire/scripts/parts/queue.lua"
tap_check 'a part that is missing ends the build' embeds 1
tap_check 'and leaves no file' test ! -e "$folder/texts.c"
tap_end
