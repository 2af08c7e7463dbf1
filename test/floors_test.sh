#!/bin/sh
# Checks that floors.sh detects violations: plants faults in a copy of lib/.
set -eu
export LC_ALL=C

here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=test/tap.sh
. "$here/tap.sh"

# says STATUS EXPECTED: whether floors.sh exits and prints as check expects
says() {
    if [ -z "$2" ]; then
        [ "$1" -eq 0 ] && [ ! -s "$folder/said" ]
    else
        [ "$1" -ne 0 ] && grep -qF "$2" "$folder/said"
    fi
}

# check NAME FILE LINE EXPECTED: floors.sh must print EXPECTED if FILE contains LINE; an empty
# EXPECTED: it must print nothing, and exit with 0
check() {
    rm -rf "${folder:?}/lib"
    cp -R "$here/../lib" "$folder"
    echo "$3" >>"$folder/$2"
    status=0
    sh "$here/floors.sh" --root "$folder" >"$folder/said" 2>&1 || status=$?
    tap_check "$1" says "$status" "$4"
}

check 'the library as it is' lib/client.c '' ''
check 'a circle of two files' lib/node/pending_releases.h '#include "node/node.h"' \
    'lib/node/pending_releases: part of a circle'
check 'a circle by way of a third file' lib/base/text.h '#include "base/log.h"' \
    'lib/base/text: part of a circle'
check 'a floor above' lib/round/operation.c '#include "lock/locks.h"' \
    'lib/round/operation.c: round must not include "lock/locks.h"'
check 'the floor of threads' lib/client.c '#include "threads/mt.h"' \
    'lib/client.c: face must not include "threads/mt.h"'
check 'an outside library' lib/lock/lock.c '#include <event2/event.h>' \
    'lib/lock/lock.c: only lib/io may include <event2/event.h>'
check 'a pure floor' lib/core/round.c '#include <unistd.h>' \
    'lib/core/round.c: core is pure and must not include <unistd.h>'
check 'a clock' lib/node/node.c 'static long now(void) { return time(NULL); }' \
    'lib/node/node.c: only lib/io reads a clock'
tap_end
