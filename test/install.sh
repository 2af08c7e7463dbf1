#!/bin/sh
# Installs the missing packages for the given purposes, as listed in test/packages:
#
#     sh test/install.sh build redis-server test
#
# If no package is missing, does nothing and needs no rights. Otherwise it needs root or sudo.
set -eu

here=$(cd "$(dirname "$0")" && pwd)

is_installed() {
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

missing=
for purpose in "$@"; do
    packages=$(awk -v purpose="$purpose" '$1 == purpose { $1 = ""; print }' "$here/packages")
    if [ -z "$packages" ]; then
        echo "install.sh: test/packages has no line for \"$purpose\"" >&2
        exit 2
    fi
    if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
        echo "This is no Debian: for \"$purpose\", please see to the equivalents of$packages" >&2
        continue
    fi
    for package in $packages; do
        if ! is_installed "$package"; then
            missing="$missing $package"
        fi
    done
done
if [ -z "$missing" ]; then
    exit 0
fi

if [ "$(id -u)" -ne 0 ]; then
    # Without a terminal sudo cannot ask for a password, and must work without one.
    if command -v sudo >/dev/null && { [ -t 0 ] || sudo -n true 2>/dev/null; }; then
        exec sudo sh "$here/install.sh" "$@"
    fi
    echo "Packages are missing, and installing them needs root. Please run, as root:" >&2
    echo "    apt-get install --no-install-recommends$missing" >&2
    exit 1
fi

log=$(mktemp)
policy=/usr/sbin/policy-rc.d
own_policy=no

finish() {
    if [ "$own_policy" = yes ]; then
        rm -f "$policy"
    fi
    rm -f "$log"
}
trap finish EXIT
trap 'exit 130' INT TERM HUP

# Each program starts the masters that it needs. The package would also start a server for the whole
# system; this is Debian's way to prevent that.
if [ ! -e "$policy" ]; then
    own_policy=yes
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
fi

echo "Installing$missing" >&2
export DEBIAN_FRONTEND=noninteractive
if ! apt-get update >"$log" 2>&1; then
    echo "apt-get update failed; going on with the lists that are there" >&2
fi
# $missing is a list of words.
# shellcheck disable=SC2086
if ! apt-get install -y --no-install-recommends $missing >>"$log" 2>&1; then
    cat "$log" >&2
    echo "apt-get could not install$missing" >&2
    exit 1
fi
