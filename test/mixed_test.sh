#!/bin/sh
# Checks that mixed.sh detects differences: a version passes with itself, but not with one that uses
# other keys than it reports. Prints TAP.
# usage: mixed_test.sh REDLOCK
set -eu
export LC_ALL=C.UTF-8

here=$(cd "$(dirname "$0")" && pwd)
command=$1
# shellcheck source=test/tap.sh
. "$here/tap.sh"

beside() { # OTHER
    sh "$here/mixed.sh" --other "$1" "$command" >"$folder/said" 2>&1
}

beside_itself() {
    beside "$command" && ! grep -q '^not ok' "$folder/said"
}

# Uses database 1 of each master.
make_stranger() {
    cat >"$folder/stranger" <<END
#!/bin/sh
REDLOCK_NODES=\$(echo "\$REDLOCK_NODES" | sed 's|?|/1?|g')
export REDLOCK_NODES
exec "$command" "\$@"
END
    chmod 755 "$folder/stranger"
}

# No check passes, in either direction.
stranger_is_seen() {
    if beside "$folder/stranger"; then
        return 1
    fi
    [ "$(grep -c '^not ok' "$folder/said")" -eq "$(sed -n 's/^1\.\.//p' "$folder/said")" ]
}

make_stranger
tap_check 'a version beside itself' beside_itself
tap_check 'a version that has keys of its own' stranger_is_seen
tap_end
