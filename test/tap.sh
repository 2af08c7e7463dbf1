# shellcheck shell=sh
# Prints the results of a shell script's checks as TAP. The script sources this file:
#
#     . "$here/tap.sh"
#     tap_check 'what must hold' COMMAND...
#     tap_end
#
# $folder is a temporary folder, which is removed at the end of the script. If the command of a
# check fails, $folder/said is shown; $tap_failed counts these checks.

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 130' INT TERM

tap_count=0
tap_failed=0

# tap_check NAME COMMAND...: runs a check, which passes if the command exits with 0
tap_check() {
    tap_name=$1
    shift
    tap_count=$((tap_count + 1))
    if "$@"; then
        echo "ok $tap_count - $tap_name"
    else
        tap_failed=$((tap_failed + 1))
        echo "not ok $tap_count - $tap_name"
        sed 's/^/# /' "$folder/said"
    fi
}

# tap_end: prints the plan, after the last check
tap_end() {
    echo "1..$tap_count"
}
