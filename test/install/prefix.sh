#!/bin/sh
# Installs the library under a temporary prefix and uses it from there, as a program would that
# knows of pkg-config only: shared, and with --static.
# usage: prefix.sh SOURCE-FOLDER
set -eu
export LC_ALL=C

source=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

prefix=$work/prefix
compiler=${CC:-cc}

fail() {
    echo "prefix.sh: $*" >&2
    exit 1
}

if ! { meson setup "$work/build" "$source" --prefix "$prefix" --libdir lib -Dbuildtype=plain \
    -Dtests=disabled -Dbench=disabled -Dexamples=disabled &&
    meson install -C "$work/build"; } >"$work/log" 2>&1; then
    cat "$work/log" >&2
    fail "cannot be installed"
fi

for file in include/redlock.h include/redlock.hpp lib/libredlock.so lib/libredlock.so.0 lib/libredlock.a \
    lib/pkgconfig/redlock.pc; do
    [ -e "$prefix/$file" ] || fail "$file was not installed"
done

export PKG_CONFIG_PATH="$prefix/lib/pkgconfig"
version=$(sed -n "s/^ *version: '\(.*\)',/\1/p" "$source/meson.build")
[ "$(pkg-config --modversion redlock)" = "$version" ] || fail "redlock.pc is not of $version"

# use OUTPUT FLAGS...: compiles and links the program
use() {
    output=$1
    shift
    # The flags of pkg-config and the compiler's are lists of words.
    # shellcheck disable=SC2046,SC2086
    $compiler -Wall -Wextra -Werror $(pkg-config --cflags redlock) -o "$output" \
        "$source/test/install/use.c" "$@" || fail "$(basename "$output"): does not link"
}

# shellcheck disable=SC2046
use "$work/shared" $(pkg-config --libs redlock)
LD_LIBRARY_PATH="$prefix/lib" "$work/shared" || fail "the program with the shared library fails"
LC_ALL=C readelf -d "$work/shared" | grep -q 'NEEDED.*\[libredlock\.so\.0\]' ||
    fail "the program does not ask for libredlock.so.0"

# The header for C++, which calls libevent too; the library needs no C++ compiler.
if command -v "${CXX:-c++}" >/dev/null; then
    for standard in c++17 c++20; do
        # shellcheck disable=SC2046,SC2086
        ${CXX:-c++} -std=$standard -Wall -Wextra -Werror -o "$work/$standard" \
            "$source/test/install/use.cpp" $(pkg-config --cflags --libs redlock libevent_core) ||
            fail "$standard: does not link"
        LD_LIBRARY_PATH="$prefix/lib" "$work/$standard" || fail "the program in $standard fails"
    done
fi

# What is not public must not be visible: a program has a conn_open or timer_set of its own.
strangers() {
    awk 'NF == 3 && $2 != "U" && $3 !~ /^redlock_/ { print $3 }'
}
seen=$(nm -D --defined-only "$prefix/lib/libredlock.so" | strangers)
[ -z "$seen" ] || fail "the shared library exports $seen"
seen=$(nm -g --defined-only "$prefix/lib/libredlock.a" | strangers)
[ -z "$seen" ] || fail "the static library has global $seen"
names=$(grep -v '^static inline' "$source/include/redlock.h" |
    sed -n 's/^.*[ *]\(redlock_[a-z_]*\)(.*$/\1/p' | grep -v '_cb$' | sort -u)
[ -n "$names" ] || fail "no function was found in redlock.h"
for name in $names; do
    nm -D --defined-only "$prefix/lib/libredlock.so" | grep -q " T $name\$" ||
        fail "the shared library lacks $name"
done

# Without the shared library beside it, -lredlock is the static one.
rm "$prefix"/lib/libredlock.so*
# shellcheck disable=SC2046
use "$work/static" $(pkg-config --static --libs redlock)
"$work/static" || fail "the program with the static library fails"
if readelf -d "$work/static" | grep -q 'NEEDED.*libredlock'; then
    fail "the static program asks for a shared libredlock"
fi
