#!/bin/sh
# Builds the packages libredlock0, libredlock-dev and redlock-tools for the present Debian system:
#
#     sh test/install.sh build debian      # once, as root: installs the tools
#     sh lib/packages/debian.sh [FOLDER]
#
# FOLDER (default: build-debian) is created afresh, and gets the packages and their source package.
# DEBFULLNAME and DEBEMAIL, if set, name the maintainer.
set -eu
export LC_ALL=C.UTF-8

case ${1:-} in
-*)
    sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac
folder=${1:-build-debian}
case $folder in
/*) ;;
*) folder=$PWD/$folder ;;
esac
cd "$(dirname "$0")/../.."

fail() {
    echo "debian.sh: $*" >&2
    exit 1
}

version=$(sed -n "s/^ *version: '\(.*\)',/\1/p" meson.build)
packaged=$(sed -n '1s/.*(\(.*\)-[^-]*).*/\1/p' lib/packages/debian/changelog)
[ "$packaged" = "$version" ] ||
    fail "lib/packages/debian/changelog is of $packaged, meson.build of $version"

if [ -e "$folder/.made-by-debian.sh" ]; then
    rm -rf "$folder"
fi
mkdir -p "$folder"
[ -z "$(ls -A "$folder")" ] || fail "$folder is not empty, and not made by this script"
: >"$folder/.made-by-debian.sh"
tree=$folder/libredlock-$version
mkdir "$tree"

# list_files: lists the sources; without git, as in a tarball, all files but build folders
list_files() {
    git ls-files --cached --others --exclude-standard 2>/dev/null ||
        find . -type f ! -path './build*' ! -path './.git/*' | sed 's|^\./||'
}

SOURCE_DATE_EPOCH=$(date -d "$(sed -n 's/^ -- .*>  //p' lib/packages/debian/changelog | head -n 1)" +%s)
export SOURCE_DATE_EPOCH
list_files | while IFS= read -r file; do
    [ ! -f "$file" ] || printf '%s\n' "$file"
done | tar -cf - --files-from=- | tar -xf - -C "$tree"
tar -cf - -C "$folder" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" \
    "libredlock-$version" | gzip -n >"$folder/libredlock_$version.orig.tar.gz"

# Debian's tools expect the folder here.
cp -R lib/packages/debian "$tree/debian"
if [ -n "${DEBEMAIL:-}" ]; then
    export MAINTAINER="${DEBFULLNAME:-libredlock authors} <$DEBEMAIL>"
    for file in "$tree/debian/control" "$tree/debian/changelog"; do
        awk '
            /^Maintainer: / { $0 = "Maintainer: " ENVIRON["MAINTAINER"] }
            /^ -- / { $0 = " -- " ENVIRON["MAINTAINER"] substr($0, index($0, ">") + 1) }
            { print }' "$file" >"$folder/changed"
        mv "$folder/changed" "$file"
    done
fi

cd "$tree"
dpkg-buildpackage --unsigned-source --unsigned-changes
echo "the packages: $folder"
