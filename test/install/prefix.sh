#!/bin/sh
# Installs the library under temporary prefixes, whose names have blanks, and uses it in all the
# ways that a program can. Prints TAP.
# usage: prefix.sh SOURCE-FOLDER
set -eu
export LC_ALL=C

source=$1
# shellcheck source=test/tap.sh
. "$source/test/tap.sh"
use=$source/test/install/use.sh
build="$folder/a build"
prefix="$folder/a prefix"

# quietly COMMAND...: prints the output only if the check fails
quietly() {
    "$@" >"$folder/said" 2>&1
}

fail() {
    echo "$*"
    return 1
}

# install_library OPTIONS...: builds and installs it afresh
install_library() {
    rm -rf "$build" "$prefix"
    meson setup "$build" "$source" --prefix "$prefix" -Dbuildtype=plain \
        -Dtests=disabled -Dbench=disabled -Dexamples=disabled "$@" &&
        meson install -C "$build"
}

# reinstall_library OPTIONS...: from the folder in which it was built before
reinstall_library() {
    rm -rf "$prefix"
    meson configure "$build" "$@" && meson install -C "$build"
}

# there FOLDER COMMAND...: runs the command with the library in FOLDER, and its files in FOLDER/lib
there() {
    place=$1
    shift
    PKG_CONFIG_PATH=$place/lib/pkgconfig CMAKE_PREFIX_PATH=$place LD_LIBRARY_PATH=$place/lib "$@"
}

check_files() {
    for file in include/redlock.h include/redlock.hpp lib/libredlock.so lib/libredlock.so.0 \
        lib/libredlock.a lib/pkgconfig/redlock.pc lib/cmake/redlock/redlock-config.cmake \
        lib/cmake/redlock/redlock-config-version.cmake; do
        [ -e "$prefix/$file" ] || fail "$file was not installed" || return 1
    done
    diff -r "$source/include" "$prefix/include" || fail "the headers differ"
}

strangers() {
    awk 'NF == 3 && $2 != "U" && $3 !~ /^redlock_/ { print $3 }'
}

# Private symbols must not be visible: a program may have its own conn_open or timer_set.
check_symbols() {
    seen=$(nm -D --defined-only "$prefix/lib/libredlock.so" | strangers)
    [ -z "$seen" ] || fail "the shared library exports $seen" || return 1
    seen=$(nm -g --defined-only "$prefix/lib/libredlock.a" | strangers)
    [ -z "$seen" ] || fail "the static library has global $seen" || return 1
    names=$(find "$source/include" -name '*.h' -exec \
        sed -n 's/^REDLOCK_EXPORT.*[ *]\(redlock_[a-z_]*\)(.*$/\1/p' {} + | sort -u)
    [ -n "$names" ] || fail "no function was found in the headers" || return 1
    for name in $names; do
        nm -D --defined-only "$prefix/lib/libredlock.so" | grep -q " T $name\$" ||
            fail "the shared library lacks $name" || return 1
    done
}

check_static_alone() {
    [ -z "$(find "$prefix" -name 'libredlock.so*')" ] || fail "the shared library was installed"
}

# as_moved COMMAND...: runs the command after the prefix was moved, as with a relocatable package
as_moved() {
    moved="$folder/another place"
    mv "$prefix" "$moved"
    status=0
    there "$moved" "$@" || status=$?
    mv "$moved" "$prefix"
    return "$status"
}

# pkg-config derives the prefix from the location of redlock.pc.
use_moved_pkg_config() {
    flags=$(pkg-config --define-prefix --cflags --libs redlock)
    eval "${CC:-cc} -o \"\$folder/moved\" \"\$source/test/install/use.c\" $flags" &&
        "$folder/moved"
}

# check_libdir LIBDIR: checks that CMake finds the other folders from there
check_libdir() {
    reinstall_library -Dlibdir="$1" || return 1
    libdir=$1
    [ "$libdir" != "${libdir#/}" ] || libdir=$prefix/$libdir
    PKG_CONFIG_PATH=$libdir/pkgconfig LD_LIBRARY_PATH=$libdir redlock_DIR=$libdir/cmake/redlock \
        sh "$use" cmake
}

use_cmake_program=$(command -v cmake || true)
# cmake_check NAME COMMAND...: runs a check if CMake is installed
cmake_check() {
    if [ -n "$use_cmake_program" ]; then
        tap_check "$@"
    else
        tap_count=$((tap_count + 1))
        echo "ok $tap_count - $1 # SKIP no CMake"
    fi
}

tap_check 'installs' quietly install_library --libdir lib
tap_check 'all files' quietly check_files
tap_check 'no symbols but the public ones' quietly check_symbols
tap_check 'a program, by pkg-config' quietly there "$prefix" sh "$use" pkg-config
if command -v "${CXX:-c++}" >/dev/null; then
    tap_check 'a program in C++' quietly there "$prefix" sh "$use" c++
fi
cmake_check 'a program, by CMake' quietly there "$prefix" sh "$use" cmake
tap_check 'a program, by meson' quietly there "$prefix" sh "$use" meson
tap_check 'a moved prefix, by pkg-config' quietly as_moved use_moved_pkg_config
cmake_check 'a moved prefix, by CMake' quietly as_moved sh "$use" cmake
cmake_check 'libdir of several parts' quietly check_libdir lib/some/where
cmake_check 'libdir outside the prefix' quietly check_libdir "$folder/a libdir"
tap_check 'default_library=both' quietly reinstall_library -Ddefault_library=both -Dlibdir=lib
tap_check 'default_library=both: all files' quietly check_files
tap_check 'default_library=static' quietly reinstall_library -Ddefault_library=static
tap_check 'default_library=static: no shared library' quietly check_static_alone
export ONLY=static
tap_check 'default_library=static: by pkg-config' quietly there "$prefix" sh "$use" pkg-config
cmake_check 'default_library=static: by CMake' quietly there "$prefix" sh "$use" cmake
tap_check 'default_library=static: by meson' quietly there "$prefix" sh "$use" meson
tap_end
