#!/bin/sh
# Checks the Debian packages on bare systems, which it makes in a temporary folder: that
# test/packages names all that is needed to build them, that lintian reports nothing, and that they
# can be installed on another bare system, upgraded, used (lib/packages/debian/tests, by
# autopkgtest) and removed without a trace. Needs root.
#
#     sh test/debian.sh [SYSTEM]...
#
# A SYSTEM is bookworm (Debian 12) or trixie (Debian 13); the default is both. Prints a table, and
# exits with 0 only if all checks pass, and with 77 if no system could be made, because Debian's
# packages cannot be fetched.
set -eu
export LC_ALL=C.UTF-8

systems=
for system in "$@"; do
    case $system in
    bookworm | trixie) systems="$systems $system" ;;
    *)
        sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
        exit 2
        ;;
    esac
done
systems=${systems:-bookworm trixie}

cd "$(dirname "$0")/.."
# shellcheck source=test/systems.sh
. test/systems.sh
table=$work/table
: >"$table"

new=$(sed -n '1s/.*(\(.*\)).*/\1/p' lib/packages/debian/changelog)
old=0.0.1-1 # older than the first release

make_packages() {
    inside "$builder" 'sh test/install.sh build debian && sh lib/packages/debian.sh /packages'
}

# The tags are suppressed because one source is for two versions of Debian with different versions
# of the policy, and because releases are in this repository only, so there is nothing to watch.
check_by_lintian() {
    inside "$builder" 'sh test/install.sh debian-check && lintian --allow-root --display-info \
        --fail-on error,warning,info --tag-display-limit 0 \
        --suppress-tags out-of-date-standards-version,debian-watch-file-is-missing \
        /packages/*.changes'
}

# Builds the packages again, in /packages/old.
make_old_packages() {
    inside "$builder" "
        mkdir /packages/old
        for package in /packages/libredlock0_*.deb /packages/libredlock-dev_*.deb \
            /packages/redlock-tools_*.deb; do
            dpkg-deb --raw-extract \$package /tmp/old
            sed -i -e 's/^Version: .*/Version: $old/' -e 's/libredlock0 (= [^)]*)/libredlock0 (= $old)/' \
                -e 's/libredlock0 (>= [^)]*)/libredlock0 (>= $old)/' /tmp/old/DEBIAN/control
            dpkg-deb --root-owner-group --build /tmp/old \
                /packages/old/\$(basename \$package | sed 's/_[^_]*_/_${old}_/')
            rm -rf /tmp/old
        done"
}

hand_over() {
    cp -R "$builder/packages" "$user/packages"
    rm -rf "$user/redlock" "$user/packages/libredlock-"*/ "$user"/packages/*-dbgsym_*
    mkdir "$user/redlock"
    # This prevents that a service of the system is started.
    printf '#!/bin/sh\nexit 101\n' >"$user/usr/sbin/policy-rc.d"
    chmod 755 "$user/usr/sbin/policy-rc.d"
    inside "$user" 'apt-get update'
}

# installed VERSION: checks that the packages have this version, and that their programs start
installed() {
    inside "$user" "
        for package in libredlock0 libredlock-dev redlock-tools; do
            dpkg-query -W -f '\${Version} \${db:Status-Status}\n' \$package |
                grep -Fx '$1 installed' || exit 1
        done
        redlock --version && redlock-gateway --version && redlock-bench --help"
}

install_old() {
    inside "$user" 'apt-get install -y --no-install-recommends /packages/old/*.deb' &&
        installed "$old"
}

upgrade() {
    inside "$user" 'apt-get install -y --no-install-recommends /packages/*.deb' &&
        installed "$new"
}

run_tests() {
    inside "$user" 'DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
        autopkgtest dpkg-dev && autopkgtest /packages/*.deb /packages/*.dsc -- null'
}

# Checks that no file, folder or dpkg record of the packages is left.
remove() {
    inside "$user" "
        dpkg -L libredlock0 libredlock-dev redlock-tools | grep redlock | sort -u >/packages/files
        [ -s /packages/files ] || exit 1
        apt-get purge -y libredlock0 libredlock-dev redlock-tools || exit 1
        while read -r file; do
            if [ -e \"\$file\" ]; then
                echo \"left: \$file\"
                exit 1
            fi
        done </packages/files
        ! dpkg -l | grep redlock"
}

# step NAME COMMAND: prints a cell of the table
step() {
    echo "=== $system: $1"
    if [ "$cells" != "${cells#*failed}" ]; then
        cells="$cells - |"
    elif "$2" >"$work/log" 2>&1; then
        cells="$cells good |"
    else
        tail -n 60 "$work/log"
        cells="$cells failed |"
    fi
}

check_system() {
    builder=$work/builder
    user=$work/user
    cells="| $system |"
    make_system "$system" "$builder" && make_system "$system" "$user" || return 77
    step 'they build' make_packages
    step 'lintian' check_by_lintian
    step 'an older version' make_old_packages
    step 'to a bare system' hand_over
    step 'install' install_old
    step 'upgrade' upgrade
    step 'autopkgtest' run_tests
    step 'remove' remove
    echo "$cells" >>"$table"
    rm -rf "$builder" "$user"
    [ "$cells" = "${cells#*failed}" ]
}

status=0
made=no
for system in $systems; do
    result=0
    check_system || result=$?
    [ "$result" -eq 77 ] || made=yes
    [ "$result" -eq 0 ] || status=1
done
[ "$made" = yes ] || exit 77
echo
echo '| system | build | lintian | older | hand over | install | upgrade | autopkgtest | remove |'
echo '|---|---|---|---|---|---|---|---|---|'
cat "$table"
exit "$status"
