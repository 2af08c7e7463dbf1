#!/bin/sh
# Runs README's two commands on bare Debian systems, which it makes in a temporary folder: checks
# that they install all that they need, and that the library works with each system's versions.
# Needs root.
#
#     sh test/matrix.sh [ROW]... [-- ARGUMENTS-OF-run.sh...]
#
# A ROW is SYSTEM-SERVER: bookworm-redis (Debian 12), trixie-redis and trixie-valkey (Debian 13),
# testing-redis and testing-valkey (Debian's next version); the default is all of them, with --all.
# Prints a table, and exits with 0 only if all rows pass, and with 77 if no system could be made,
# because Debian's packages cannot be fetched.
set -eu
export LC_ALL=C.UTF-8

usage() {
    sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
    exit 2
}

rows=
while [ $# -gt 0 ] && [ "$1" != -- ]; do
    case $1 in
    bookworm-redis | trixie-redis | trixie-valkey | testing-redis | testing-valkey)
        rows="$rows $1"
        ;;
    *) usage ;;
    esac
    shift
done
[ $# -eq 0 ] || shift
arguments=${*:---all}
rows=${rows:-bookworm-redis trixie-redis trixie-valkey testing-redis testing-valkey}

cd "$(dirname "$0")/.."
# shellcheck source=test/systems.sh
. test/systems.sh
table=$work/table

version() { # ROOT PACKAGE
    inside "$1" "dpkg-query -W -f '\${Version}' $2 2>/dev/null" | sed 's/^[0-9]*://; s/[-+~].*//'
}

run_row() { # NAME SYSTEM SERVER
    root=$work/root-$1
    make_system "$2" "$root" || return 77
    export REDLOCK_SERVER="$3-server"
    demo=failed
    tests=failed
    echo "=== $1: sh examples/demo.sh, sh examples/demo.sh fence"
    if inside "$root" 'sh examples/demo.sh && sh examples/demo.sh fence'; then
        demo=good
    fi
    echo "=== $1: sh test/run.sh $arguments"
    inside "$root" "sh test/run.sh $arguments" 2>&1 | tee "$work/log"
    tests=$(tail -n 1 "$work/log")
    tls=$(sed -n 's/^ *TLS *: *//p' "$work/log" | head -n 1 | tr '[:upper:]' '[:lower:]')
    printf '| %s | %s | %s | %s | %s | %s | %s %s | %s | %s |\n' \
        "Debian $(cut -d. -f1 "$root/etc/debian_version")" \
        "$(version "$root" libhiredis-dev)" "$tls" "$(version "$root" libevent-dev)" \
        "$(version "$root" libsodium-dev)" "$(version "$root" libc-ares-dev)" "$3" "$(version "$root" "$3-server")" "$demo" "$tests" \
        >>"$table"
    rm -rf "$root"
    [ "$demo" = good ] && echo "$tests" | grep -qE '^[1-9][0-9]* passed, 0 failed$'
}

status=0
made=no
for row in $rows; do
    result=0
    run_row "$row" "${row%-*}" "${row#*-}" || result=$?
    [ "$result" -eq 77 ] || made=yes
    [ "$result" -eq 0 ] || status=1
done
[ "$made" = yes ] || exit 77
echo
echo '| system | hiredis | TLS | libevent | libsodium | c-ares | server | demo | tests |'
echo '|---|---|---|---|---|---|---|---|---|'
cat "$table" 2>/dev/null || true
exit "$status"
