# shellcheck shell=sh disable=SC2154 # the script sets them
# Checks the tables that a script prints, in $tables. The script of a test sources this file.

# count PATTERN NUMBER: checks how many lines match
count() {
    if [ "$(printf '%s\n' "$tables" | grep -Ec "$1")" -ne "$2" ]; then
        echo "failed: not $2 lines match $1"
        exit 1
    fi
}
