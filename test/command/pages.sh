#!/bin/sh
# Checks that the manual and the completions of `redlock` have each command and option of its help,
# and that the completion for bash works. Prints TAP.
# usage: pages.sh COMMAND FOLDER-OF-ITS-SOURCES
set -eu
export LC_ALL=C

command=$1
folder=$2
count=0
failed=0

# report NAME PROBLEMS: prints `not ok` if there are problems
report() {
    count=$((count + 1))
    if [ -n "$2" ]; then
        failed=$((failed + 1))
        printf 'not ok %d - %s\n# missing: %s\n' "$count" "$1" "$2"
    else
        printf 'ok %d - %s\n' "$count" "$1"
    fi
}

# missing PATTERN-BEFORE FILE WORD...: prints the words that the file lacks
missing() {
    before=$1
    file=$2
    shift 2
    for word in "$@"; do
        grep -qe "$before$word" "$file" || printf '%s ' "$word"
    done
}

options=$("$command" --help | grep -o -e '--[a-z][a-z-]*' | sort -u)
commands=$("$command" --help | sed -n 's/^  \([a-z][a-z]*\) .*/\1/p')
[ "$(echo "$commands" | wc -w)" -ge 7 ] || commands="$commands (too few)"

# These are lists of words.
# shellcheck disable=SC2086
for page in redlock.bash _redlock; do
    report "options in $page" "$(missing '' "$folder/$page" $options)"
    report "commands in $page" "$(missing '' "$folder/$page" $commands)"
done
# shellcheck disable=SC2046
report 'options in the manual' "$(missing 'Fl -' "$folder/redlock.1" $(echo "$options" | cut -c 3-))"
# shellcheck disable=SC2086
report 'commands in the manual' "$(missing 'Cm ' "$folder/redlock.1" $commands)"

# complete_words WORD...: prints the completions of the last word
complete_words() {
    bash -c '. "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _redlock; echo "${COMPREPLY[*]}"' \
        "$folder/redlock.bash" "$@"
}

# completes EXPECTED WORD...: checks the completions of the last word
completes() {
    expected=$1
    shift
    got=$(complete_words "$@")
    [ "$got" = "$expected" ] || got="$expected (but: $got)"
    [ "$got" = "$expected" ] && got=
    report "completion: $*" "$got"
}

completes 'run' redlock ru
completes '--on-lost' redlock run --on
completes 'term kill warn' redlock run --on-lost ''
completes '--wait' redlock run --ttl 1s --wai
completes 'new' redlock nodes ne

echo "1..$count"
[ "$failed" -eq 0 ]
