# shellcheck shell=sh
# Makes bare Debian systems in a temporary folder, $work, which is removed at the end of the script.
# The script sources this file, from the repository's folder:
#
#     . test/systems.sh
#     make_system bookworm "$work/root"
#     inside "$work/root" 'COMMAND'
#
# Ends the script with 77 if no system can be made, because Debian's packages cannot be fetched.

if [ "$(id -u)" -ne 0 ]; then
    echo "$0: making another system needs root" >&2
    exit 1
fi
sh test/install.sh matrix || exit 77

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

# inside ROOT COMMAND: runs the command in the folder /redlock; its mounts end with it
inside() {
    unshare --mount --propagation private sh -c '
        mount --rbind /dev "$0/dev"
        mount -t proc proc "$0/proc"
        exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
            HOME=/root TERM=dumb LC_ALL=C.UTF-8 \
            ${http_proxy:+"http_proxy=$http_proxy"} ${https_proxy:+"https_proxy=$https_proxy"} \
            ${REDLOCK_SERVER:+"REDLOCK_SERVER=$REDLOCK_SERVER"} \
            ${CFLAGS:+"CFLAGS=$CFLAGS"} ${CXXFLAGS:+"CXXFLAGS=$CXXFLAGS"} \
            chroot "$0" sh -c "cd /redlock && $1"' "$1" "$2"
}

# make_system SYSTEM ROOT: makes a bare system, with this machine's access to the packages and the
# sources in /redlock
make_system() {
    if [ ! -d "$work/$1" ]; then
        echo "Making a bare $1 ..."
        timeout 900 debootstrap --variant=minbase "$1" "$work/$1" >"$work/$1.log" 2>&1 || {
            tail -n 20 "$work/$1.log"
            rm -rf "${work:?}/$1"
            return 1
        }
        apt-config dump Acquire | grep '::' >"$work/$1/etc/apt/apt.conf.d/00host"
    fi
    cp -a "$work/$1" "$2"
    cp /etc/resolv.conf /etc/hosts "$2/etc/"
    mkdir "$2/redlock"
    git ls-files -z | tar --null --files-from=- -cf - | tar -xf - -C "$2/redlock"
}
