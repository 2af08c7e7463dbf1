#!/bin/sh
# Makes a release tarball of the present sources, and builds and tests from it. Prints TAP.
# usage: dist.sh SOURCE-FOLDER
set -eu
export LC_ALL=C

source=$1
# shellcheck source=test/tap.sh
. "$source/test/tap.sh"
version=$(sed -n "s/^ *version: '\(.*\)',/\1/p" "$source/meson.build")
repository=$folder/repository
tarball=$folder/build/meson-dist/redlock-$version.tar.gz
tree=$folder/redlock-$version

if ! command -v git >/dev/null; then
    echo '1..0 # SKIP no git'
    exit 0
fi

quietly() {
    "$@" >"$folder/said" 2>&1
}

list_files() {
    git ls-files --cached --others --exclude-standard 2>/dev/null ||
        find . -type f ! -path './build*' ! -path './.git/*' | sed 's|^\./||'
}

# `meson dist` packs only committed files, so it runs in a temporary repository.
make_tarball() {
    mkdir "$repository"
    (cd "$source" && list_files | while IFS= read -r file; do
        [ ! -f "$file" ] || printf '%s\n' "$file"
    done | tar -cf - --files-from=-) | tar -xf - -C "$repository" &&
        git -C "$repository" init --quiet &&
        git -C "$repository" add --all --force &&
        git -C "$repository" -c user.name=test -c user.email=test@example.org \
            -c commit.gpgsign=false commit --quiet --message 'release' &&
        meson setup "$folder/build" "$repository" -Dtests=disabled -Dbench=disabled \
            -Dexamples=disabled &&
        meson dist -C "$folder/build" --no-tests --formats gztar &&
        (cd "$folder/build/meson-dist" && sha256sum --check "$tarball.sha256sum")
}

# The tarball has each file of the repository, and no others.
check_content() {
    tar -xf "$tarball" -C "$folder" &&
        diff --recursive --brief --exclude=.git "$repository" "$tree"
}

build_and_test() {
    meson setup "$folder/again" "$tree" -Dbuildtype=plain -Dtests=enabled -Dmutants=false &&
        ninja -C "$folder/again" test/unit/uri examples/redlock/redlock &&
        meson test -C "$folder/again" --no-rebuild uri &&
        "$folder/again/examples/redlock/redlock" --version
}

tap_check 'meson dist' quietly make_tarball
tap_check 'content of the tarball' quietly check_content
tap_check 'the tarball builds, and passes a test' quietly build_and_test
tap_end
