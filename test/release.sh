#!/bin/sh
# Checks everything that must be right before a release, and prints a table:
#
#     sh test/release.sh [--only STEP]... [--skip STEP]...
#     sh test/release.sh --list
#
#     --list       print the steps, in their order
#     --only STEP  run only this step, or these
#     --skip STEP  skip this step, or these
#
# Takes a night, and needs root for the bare systems. Changes only folders build-*: the tag is set
# by hand when all steps pass. Exits with 0 only if each step that was run passes; a step that this
# machine cannot check does not pass.
set -eu
export LC_ALL=C.UTF-8

cd "$(dirname "$0")/.."

steps='tree versions changelog abi dist mixed debian nightly'
build='build-release'

# Prints the sentence of a step, for --list.
about() {
    case $1 in
    tree) echo 'all is committed' ;;
    versions) echo 'one version, and one number of the ABI, stand everywhere' ;;
    changelog) echo 'CHANGELOG.md begins with this version, its day, and what is new' ;;
    abi) echo 'programs built with the last release still run; what is new is recorded' ;;
    dist) echo 'meson makes the tarball, which has just the files of the commit' ;;
    mixed) echo 'clients of each release of this major version, and of this one, exclude each other' ;;
    debian) echo 'the packages, on bare Debian 12 and 13; before the night, which has them too' ;;
    nightly) echo 'the long forms of all tests, each of which this machine can run' ;;
    esac
}

usage() {
    sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
    exit 2
}

is_in() { # WORD LIST
    case " $2 " in
    *" $1 "*) return 0 ;;
    *) return 1 ;;
    esac
}

only=
skip=
while [ $# -gt 0 ]; do
    case $1 in
    --list)
        for step in $steps; do
            printf '%-10s %s\n' "$step" "$(about "$step")"
        done
        exit 0
        ;;
    --only | --skip)
        [ $# -ge 2 ] || usage
        if ! is_in "$2" "$steps"; then
            echo "release.sh: there is no step \"$2\"; there are: $steps" >&2
            exit 2
        fi
        if [ "$1" = --only ]; then
            only="$only $2"
        else
            skip="$skip $2"
        fi
        shift
        ;;
    *) usage ;;
    esac
    shift
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

version=$(sed -n "s/^ *version: '\(.*\)',/\1/p" meson.build)

# ------------------------------------------------------------------------------------------- steps

check_tree() {
    git status --porcelain >"$work/status" || return 1
    if [ -s "$work/status" ]; then
        echo "not committed:"
        cat "$work/status"
        return 1
    fi
}

# agree FILE WHAT IS: reports a number that is not $wanted
agree() {
    if [ "$3" != "$wanted" ]; then
        echo "$1: $2 is ${3:-missing}, not $wanted"
        disagree=yes
    fi
}

header_version() {
    sed -nE 's/^#define REDLOCK_VERSION_(MAJOR|MINOR|PATCH) ([0-9]+).*/\2/p' include/redlock.h |
        paste -s -d .
}

# first FILE EXPRESSION: prints the first line of the sed expression's output
first() {
    sed -nE "$2" "$1" | head -n 1
}

check_versions() {
    disagree=no
    wanted=$version
    agree include/redlock.h 'the version' "$(header_version)"
    agree CHANGELOG.md 'the version' "$(first CHANGELOG.md 's/^## ([0-9.]+).*/\1/p')"
    agree lib/packages/debian/changelog 'the version' \
        "$(first lib/packages/debian/changelog '1s/.*\((.*)-[^-]*\).*/\1/p')"
    agree README.md 'the version' "$(first README.md 's/^Version ([0-9]+\.[0-9]+\.[0-9]+)\..*/\1/p')"
    agree lib/doc/packages.md 'the version of the tarball' \
        "$(first lib/doc/packages.md 's/.*redlock-([0-9.]*)\.tar.*/\1/p')"

    wanted=$(first lib/meson.build "s/^ *soversion: '(.*)',/\1/p")
    agree lib/packages/redlock.abi 'the soname' \
        "$(first lib/packages/redlock.abi "s/.* soname='libredlock\.so\.([0-9]+)'.*/\1/p")"
    agree lib/packages/redlock-config.cmake.in 'the soname' \
        "$(first lib/packages/redlock-config.cmake.in 's/.*"libredlock\.so\.([0-9]+)".*/\1/p')"
    agree "lib/packages/debian/libredlock$wanted.symbols" 'the soname' \
        "$(first "lib/packages/debian/libredlock$wanted.symbols" '1s/^libredlock\.so\.([0-9]+) .*/\1/p' \
            2>/dev/null)"
    [ "$disagree" = no ]
}

check_changelog() {
    entry=$(first CHANGELOG.md 's/^## (.*)/\1/p')
    day=${entry#"$version, "}
    if [ "$entry" = "${entry#"$version"}" ]; then
        echo "CHANGELOG.md: the first entry is \"$entry\", and not of $version"
        return 1
    fi
    if ! expr "$day" : '[0-9]\{4\}-[0-9]\{2\}-[0-9]\{2\}$' >/dev/null ||
        ! date -d "$day" >/dev/null 2>&1; then
        echo "CHANGELOG.md: the entry \"$entry\" has no day of the release: \"$version, YYYY-MM-DD\""
        return 1
    fi
    if [ "$(date -d "$day" +%s)" -gt "$(date +%s)" ]; then
        echo "CHANGELOG.md: $day is still to come"
        return 1
    fi
    if ! awk '/^## / { entries++ } entries == 1 && /^\* / { found = 1 } END { exit !found }' \
        CHANGELOG.md; then
        echo "CHANGELOG.md: the entry \"$entry\" tells nothing"
        return 1
    fi
}

# Builds the library and the command in $build, with debug information.
make_library() {
    if [ ! -f "$build/meson-private/coredata.dat" ]; then
        meson setup "$build" -Dtests=disabled -Dbench=disabled || return 1
    fi
    meson compile -C "$build"
}

# releases PATTERN: prints the tags of other versions, the newest first
releases() {
    git tag --merged HEAD --sort=-version:refname --list "$1" | grep -vx "v$version" || true
}

soname_of() { # RECORD
    first "$1" "s/.* soname='([^']*)'.*/\1/p"
}

# If the soname has changed, old programs need not run with the library.
check_abi() {
    make_library || return 1
    sh test/abi.sh --exact "$build/lib/libredlock.so" || return $?
    last=$(releases 'v[0-9]*' | head -n 1)
    if [ -z "$last" ]; then
        echo "there is no release before $version"
        return 0
    fi
    git show "$last:lib/packages/redlock.abi" >"$work/last.abi" || return 1
    if [ "$(soname_of "$work/last.abi")" != "$(soname_of lib/packages/redlock.abi)" ]; then
        echo "the soname is not that of $last"
        return 0
    fi
    sh test/abi.sh --reference "$work/last.abi" "$build/lib/libredlock.so"
}

check_dist() {
    make_library && meson dist -C "$build" --no-tests || return 1
    tar -tf "$build/meson-dist/redlock-$version.tar.xz" | sed -n "s|^redlock-$version/\(.*[^/]\)$|\1|p" |
        sort >"$work/packed"
    git ls-files | sort >"$work/committed"
    diff "$work/committed" "$work/packed"
}

check_mixed() {
    make_library || return 1
    releases "v${version%%.*}.*" >"$work/releases"
    [ -s "$work/releases" ] || echo "there is no release before $version"
    while read -r tag; do
        echo "--- $tag"
        sh test/mixed.sh --commit "$tag" "$build/examples/redlock/redlock" </dev/null || return 1
    done <"$work/releases"
}

check_debian() {
    sh test/debian.sh
}

# A step that nightly.sh could not check does not pass. SCALE would shorten the night.
check_nightly() {
    mkdir -p "$build"
    SCALE=1 sh test/nightly.sh "$build/nightly.md" || return 1
    if grep '^| .* | not checked | ' "$build/nightly.md"; then
        return 77
    fi
}

# --------------------------------------------------------------------------------------------------

bad=0
skipped=0
for step in $steps; do
    if is_in "$step" "$skip" || { [ -n "$only" ] && ! is_in "$step" "$only"; }; then
        skipped=$((skipped + 1))
        printf '| %s | skipped | |\n' "$step" >>"$work/table"
        continue
    fi
    echo "=== $step: $(about "$step")"
    begun=$(date +%s)
    status=0
    # Each step reports by its status whether it passes.
    # shellcheck disable=SC2310
    "check_$step" || status=$?
    case $status in
    0) result=good ;;
    77) result='not checked' ;;
    *) result=failed ;;
    esac
    [ "$status" -eq 0 ] || bad=$((bad + 1))
    printf '| %s | %s | %d s |\n' "$step" "$result" $(($(date +%s) - begun)) >>"$work/table"
    echo "=== $step: $result"
done

printf '\n| step | result | time |\n|---|---|---|\n'
cat "$work/table"
echo
if [ "$bad" -ne 0 ]; then
    echo "$version is not ready: $bad of the steps are not good"
elif [ "$skipped" -ne 0 ]; then
    echo "good, but for $skipped steps that were skipped"
else
    echo "$version is ready: set the tag v$version"
fi
[ "$bad" -eq 0 ]
