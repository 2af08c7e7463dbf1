#!/bin/sh
# Builds a minimal program with the installed library, as users of one build system do, and runs it:
# once with the shared library, and once with the static one.
#
#     use.sh pkg-config | c++ | cmake | meson
#
# Uses the library that pkg-config and CMake find: set PKG_CONFIG_PATH and CMAKE_PREFIX_PATH if
# necessary. The loader must find it too (LD_LIBRARY_PATH). With ONLY=static, only the static
# library is installed, and the flags for the shared one must select it.
set -eu
export LC_ALL=C

here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
version=$(pkg-config --modversion redlock)
usual=${ONLY:-shared}

fail() {
    echo "use.sh: $*" >&2
    exit 1
}

# check PROGRAM shared|static: checks that it runs, and is linked with the library in this way
check() {
    "$1" || fail "$(basename "$1") fails"
    needed=$(readelf -d "$1" | sed -n 's/.*NEEDED.*\[\(libredlock[^]]*\)\]/\1/p')
    case $2$needed in
    sharedlibredlock.so.0 | static) ;;
    *) fail "$(basename "$1"), $2: needs \"$needed\"" ;;
    esac
}

# compile OUTPUT FLAGS: FLAGS are as pkg-config prints them, with backslashes before blanks
compile() {
    eval "${CC:-cc} -Wall -Wextra -Werror -o \"\$1\" \"\$here/use.c\" $2" ||
        fail "$(basename "$1"): does not link"
}

# variable NAME: prints a variable of redlock.pc; pkg-config puts a backslash before a blank
variable() {
    eval "echo $(pkg-config --variable="$1" redlock)"
}

# check_flags FLAG...: checks that the flags for the shared library need no other library and no
# other library's file
check_flags() {
    for flag in "$@"; do
        case $flag in
        "-I$(variable includedir)" | "-L$(variable libdir)" | -lredlock) ;;
        *) fail "pkg-config leaks $flag" ;;
        esac
    done
    mkdir "$work/alone"
    cp "$(variable pcfiledir)/redlock.pc" "$work/alone"
    PKG_CONFIG_PATH='' PKG_CONFIG_LIBDIR=$work/alone pkg-config --cflags --libs redlock >/dev/null ||
        fail "redlock.pc needs another library's"
}

use_pkg_config() {
    if [ "$usual" = shared ]; then
        eval "check_flags $(pkg-config --cflags --libs redlock)"
    fi
    compile "$work/usual" "$(pkg-config --cflags --libs redlock)"
    check "$work/usual" "$usual"
    flags=$(pkg-config --static --cflags --libs redlock)
    compile "$work/static" "$(echo "$flags" | sed 's/-lredlock/-l:libredlock.a/')"
    check "$work/static" static
    # Glibc warns that it still loads parts of itself at run time.
    compile "$work/all-static" "-static $flags"
    check "$work/all-static" static
}

# The C++ header calls libevent, too.
use_cpp() {
    for standard in c++17 c++20; do
        eval "${CXX:-c++} -std=$standard -Wall -Wextra -Werror -o \"\$work/\$standard\" \
            \"\$here/use.cpp\" $(pkg-config --cflags --libs redlock libevent_core)" ||
            fail "$standard: does not link"
        check "$work/$standard" "$usual"
    done
}

use_cmake() {
    cp -R "$here/use.c" "$here/cmake" "$work"
    cmake -G Ninja -S "$work/cmake" -B "$work/build" -DVERSION="$version"
    cmake --build "$work/build"
    check "$work/build/use" "$usual"
    check "$work/build/use-static" static
    check "$work/build/use-all-static" static
}

use_meson() {
    cp -R "$here/meson" "$work"
    cp "$here/use.c" "$work/meson"
    meson setup "$work/build" "$work/meson" -Dredlock_version="$version"
    meson compile -C "$work/build"
    check "$work/build/use" "$usual"
    check "$work/build/use-static" static
}

case ${1:-} in
pkg-config) use_pkg_config ;;
c++) use_cpp ;;
cmake) use_cmake ;;
meson) use_meson ;;
*)
    sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac
