#!/bin/sh
# Installs a build under a temporary folder (DESTDIR) whose name has a blank, and checks the
# programs, manuals and completions there. Prints TAP.
# usage: programs.sh SOURCE-FOLDER BUILD-FOLDER
set -eu
export LC_ALL=C.UTF-8

source=$1
build=$2
# shellcheck source=test/tap.sh
. "$source/test/tap.sh"
root="$folder/a root"

quietly() {
    "$@" >"$folder/said" 2>&1
}

fail() {
    echo "$*"
    return 1
}

# option NAME: prints the value of an option of the build
option() {
    meson introspect "$build" --buildoptions | python3 -c '
import json, sys
print(next(o["value"] for o in json.load(sys.stdin) if o["name"] == sys.argv[1]))' "$1"
}

install_all() {
    DESTDIR=$root meson install -C "$build" --no-rebuild
}

# check_program NAME: checks that it starts
check_program() {
    LD_LIBRARY_PATH=$libdir "$prefix/bin/$1" --help
}

check_version() {
    said=$(LD_LIBRARY_PATH=$libdir "$prefix/bin/$1" --version)
    [ "$said" = "$1 $version" ] || fail "$said"
}

# The programs find the library without a path to the build folder.
check_no_path() {
    for file in "$prefix"/bin/* "$libdir"/libredlock.so.*; do
        ! readelf -d "$file" | grep -E 'R(UN)?PATH' || fail "$file has a path" || return 1
    done
}

check_manuals() {
    for manual in "$prefix"/share/man/man*/*; do
        said=$(man --warnings --encoding=UTF-8 --local-file "$manual" 2>&1 >/dev/null)
        [ -z "$said" ] || fail "$(basename "$manual"): $said" || return 1
    done
}

# Each option of a program's help is in its manual.
check_options() {
    for manual in "$prefix"/share/man/man1/*; do
        program=$(basename "$manual" .1)
        man --encoding=UTF-8 --local-file "$manual" | col -b >"$folder/manual"
        for option in $(check_program "$program" | grep -oE -e '--[a-z][a-z-]+' | sort -u); do
            grep -qF -e "$option" "$folder/manual" ||
                fail "$(basename "$manual") lacks $option" || return 1
        done
    done
}

# Loads it as the package bash-completion does when it completes `redlock` for the first time.
check_bash() {
    file=$prefix/share/bash-completion/completions/redlock
    # shellcheck disable=SC2016
    bash -c '. "$1" && complete -p redlock && COMP_WORDS=(redlock d) && COMP_CWORD=1 &&
        _redlock && echo "${COMPREPLY[*]}"' - "$file" | grep -qx 'dev doctor'
}

# Zsh identifies a completion by the name and the first line of a file in its folder.
check_zsh() {
    head -n 1 "$prefix/share/zsh/site-functions/_redlock" | grep -qx '#compdef redlock'
}

prefix=$root$(option prefix)
libdir=$prefix/$(option libdir)
version=$(sed -n "s/^ *version: '\(.*\)',/\1/p" "$source/meson.build" | head -n 1)
tap_check 'installs' quietly install_all
for program in "$prefix"/bin/*; do
    program=$(basename "$program")
    tap_check "$program starts" quietly check_program "$program"
    tap_check "$program tells its version" quietly check_version "$program"
done
tap_check 'no paths of the build' quietly check_no_path
if command -v man >/dev/null; then
    tap_check 'manuals' quietly check_manuals
    tap_check 'options in manuals' quietly check_options
fi
tap_check 'completion for bash' quietly check_bash
tap_check 'completion for zsh' quietly check_zsh
tap_end
