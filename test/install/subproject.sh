#!/bin/sh
# Uses the library as a meson subproject of another project, in a folder whose name has a blank,
# without a network: as a shared and as a static library, selected by the project's default_library
# and by the default_options of the dependency. Prints TAP.
# usage: subproject.sh SOURCE-FOLDER
set -eu
export LC_ALL=C

source=$1
# shellcheck source=test/tap.sh
. "$source/test/tap.sh"
user="$folder/a user"

mkdir -p "$user/subprojects/redlock"
# Copies the content of a release: the sources, without build folders.
for part in meson.build meson_options.txt include lib test; do
    cp -R "$source/$part" "$user/subprojects/redlock/"
done
cp "$source/test/install/use.c" "$user/"
cat >"$user/meson.build" <<'END'
project('user', 'c', default_options: ['warning_level=3', 'werror=true', 'buildtype=plain'])
redlock = dependency('redlock', default_options: get_option('redlock_options'))
assert(redlock.type_name() == 'internal')
test('use', executable('use', 'use.c', dependencies: redlock))
END
echo "option('redlock_options', type: 'array')" >"$user/meson_options.txt"
cat >"$user/subprojects/redlock.wrap" <<'END'
[wrap-file]
directory = redlock

[provide]
dependency_names = redlock
END

# build shared|static OPTIONS...: checks that it works, and links the library in this way
build() {
    expected=$1
    shift
    rm -rf "$folder/build"
    meson setup "$folder/build" "$user" --wrap-mode=nodownload --force-fallback-for=redlock "$@" &&
        meson compile -C "$folder/build" && meson test -C "$folder/build" || return 1
    needed=$(readelf -d "$folder/build/use" | grep -c 'NEEDED.*libredlock' || true)
    case $expected$needed in
    shared1 | static0) ;;
    *)
        echo "the program needs $needed shared libredlock"
        return 1
        ;;
    esac
    # A program that did not enable the project's own tests must not get them.
    if [ -n "$(find "$folder/build" -name '*.p' -path '*test*')" ]; then
        echo "the subproject's own tests are built"
        return 1
    fi
}

# check EXPECTED OPTION...
check() {
    tap_check "$*" quiet_build "$@"
}

quiet_build() {
    build "$@" >"$folder/said" 2>&1
}

check shared -Ddefault_library=shared
check shared -Ddefault_library=both
check static -Dredlock_options=default_library=static
check static -Ddefault_library=static -Db_lto=true
tap_end
