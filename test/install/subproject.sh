#!/bin/sh
# Uses the library as a meson subproject of another project, once as a shared library and once as
# a static one, without a network.
# usage: subproject.sh SOURCE-FOLDER
set -eu
export LC_ALL=C

source=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

mkdir -p "$work/user/subprojects/redlock"
# What a release would hold: the sources, none of the folders that were built in.
for part in meson.build meson_options.txt include lib test; do
    cp -R "$source/$part" "$work/user/subprojects/redlock/"
done
cp "$source/test/install/use.c" "$work/user/"
cat >"$work/user/meson.build" <<'END'
project('user', 'c', default_options: ['warning_level=3', 'werror=true', 'buildtype=plain'])
redlock = dependency('redlock', fallback: 'redlock')
assert(redlock.type_name() == 'internal')
test('use', executable('use', 'use.c', dependencies: redlock))
END

# A program that was not asked for the project's own tests must not get them.
for library in shared static; do
    build=$work/$library
    if ! { meson setup "$build" "$work/user" --wrap-mode=nodownload \
        --force-fallback-for=redlock --default-library="$library" &&
        meson compile -C "$build" && meson test -C "$build"; } >"$work/log" 2>&1; then
        cat "$work/log" >&2
        echo "subproject.sh: $library: does not work" >&2
        exit 1
    fi
    needs=$(readelf -d "$build/use" | grep -c 'NEEDED.*libredlock' || true)
    if [ "$library$needs" != shared1 ] && [ "$library$needs" != static0 ]; then
        echo "subproject.sh: $library: the program asks for $needs shared libredlock" >&2
        exit 1
    fi
    if [ -n "$(find "$build" -name '*.p' -path '*test*')" ]; then
        echo "subproject.sh: $library: the subproject's own tests are built" >&2
        exit 1
    fi
done
