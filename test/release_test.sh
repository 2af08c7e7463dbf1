#!/bin/sh
# Checks that release.sh detects faults: runs its quick steps in a clone of the present sources that
# is ready for a release, and plants one fault after the other. In the clone a night ends at once,
# with the requested result. Prints TAP.
# usage: release_test.sh SOURCE-FOLDER
set -eu
export LC_ALL=C.UTF-8

source=$1
# shellcheck source=test/tap.sh
. "$source/test/tap.sh"
clone=$folder/clone
version=$(sed -n "s/^ *version: '\(.*\)',/\1/p" "$source/meson.build")

if ! command -v git >/dev/null; then
    echo '1..0 # SKIP no git'
    exit 0
fi

list_files() {
    git ls-files --cached --others --exclude-standard 2>/dev/null ||
        find . -type f ! -path './build*' ! -path './.git/*' | sed 's|^\./||'
}

commit() {
    git -C "$clone" add --all --force
    git -C "$clone" -c user.name=test -c user.email=test@example.org -c commit.gpgsign=false \
        commit --quiet --allow-empty --message "$1"
}

mkdir "$clone"
(cd "$source" && list_files | while IFS= read -r file; do
    [ ! -f "$file" ] || printf '%s\n' "$file"
done | tar -cf - --files-from=-) | tar -xf - -C "$clone"
git -C "$clone" init --quiet
commit 'as it is'
sed -i "0,/^## .*/s//## $version, 2026-01-31/" "$clone/CHANGELOG.md"
commit 'release'

# run STEP...: runs only these steps
run() {
    options=
    for step in "$@"; do
        options="$options --only $step"
    done
    # A list of words.
    # shellcheck disable=SC2086
    sh "$clone/test/release.sh" $options >"$folder/said" 2>&1
}

is_good() {
    run tree versions changelog && grep -q '^good, but for . steps' "$folder/said"
}

# is_refused EXPECTED STEP [RESULT]: checks that the step fails for this reason
is_refused() {
    if run "$2"; then
        return 1
    fi
    grep -qF -- "$1" "$folder/said" && grep -q "^| $2 | ${3:-failed} | " "$folder/said"
}

# refuse NAME EXPECTED STEP FILE EXPRESSION: checks the same after the sed expression has edited
# FILE
refuse() {
    file=$clone/$4
    cp "$file" "$folder/kept"
    sed -i -E "$5" "$file"
    if cmp -s "$file" "$folder/kept"; then
        tap_check "$1: planted" false
    else
        tap_check "$1" is_refused "$2" "$3"
    fi
    cp "$folder/kept" "$file"
}

tap_check 'what is ready' is_good

refuse 'a change that is not committed' ' M README.md' tree README.md '1s/$/!/'
: >"$clone/forgotten.c"
tap_check 'a file that is not committed' is_refused '?? forgotten.c' tree
rm "$clone/forgotten.c"

for row in \
    'include/redlock.h|s/(REDLOCK_VERSION_MINOR) [0-9]+/\1 77/' \
    'CHANGELOG.md|s/^## [0-9.]+,/## 77.0.0,/' \
    'lib/packages/debian/changelog|1s/\([^-]*-/(77.0.0-/' \
    'README.md|s/^Version [0-9.]+\. /Version 77.0.0. /' \
    'lib/doc/packages.md|s/redlock-[0-9.]+\.tar/redlock-77.0.0.tar/'; do
    file=${row%%|*}
    refuse "another version in $file" "$file: the version" versions "$file" "${row#*|}"
done
for file in lib/packages/redlock.abi lib/packages/redlock-config.cmake.in; do
    refuse "another soname in $file" "$file: the soname is 77" versions "$file" \
        's/(libredlock\.so\.)[0-9]+/\177/'
done
refuse 'another soname of the library' 'libredlock77.symbols: the soname is missing' versions \
    lib/meson.build "s/(soversion: ')[^']*/\177/"

refuse 'a changelog without a day' "the entry \"$version, not released yet\" has no day" changelog \
    CHANGELOG.md '0,/^## .*/s//## '"$version, not released yet/"
refuse 'a day that there is not' 'has no day' changelog CHANGELOG.md '0,/^## .*/s/2026-01-31/2026-02-31/'
refuse 'a day to come' '9999-01-31 is still to come' changelog CHANGELOG.md \
    '0,/^## .*/s/2026-01-31/9999-01-31/'
refuse 'a changelog of another version' "and not of $version" changelog CHANGELOG.md \
    '0,/^## .*/s//## 77.0.0, 2026-01-31/'
refuse 'a changelog that tells nothing' 'tells nothing' changelog CHANGELOG.md '/^\* /d'

# night RESULT STATUS: sets the result and the status of the next run of nightly.sh
night() {
    cat >"$clone/test/nightly.sh" <<END
[ "\$SCALE" = 1 ] || exit 1
echo '| model | good | 0:00:01 | |' >"\$1"
echo '| systems | $1 | 0:00:01 | |' >>"\$1"
exit $2
END
}
night 'good' 0
tap_check 'a good night' run nightly
night 'not checked' 0
tap_check 'a night that left something out' is_refused '| systems | not checked |' nightly 'not checked'
night 'failed' 1
tap_check 'a bad night' is_refused 'nightly: failed' nightly
git -C "$clone" checkout --quiet test/nightly.sh

is_unknown() {
    status=0
    sh "$clone/test/release.sh" --skip nothing >"$folder/said" 2>&1 || status=$?
    [ "$status" -eq 2 ] && grep -q 'there is no step "nothing"' "$folder/said"
}
tap_check 'a step that there is not' is_unknown

skips_all() {
    # A list of words.
    # shellcheck disable=SC2046
    sh "$clone/test/release.sh" $(sh "$clone/test/release.sh" --list | sed 's/ .*//; s/^/--skip /') \
        >"$folder/said" 2>&1
}
tap_check 'all steps that it lists can be skipped' skips_all
tap_end
