#!/bin/sh
# Builds the library, and demonstrates its locks on five throwaway Redis masters:
#
#     sh examples/demo.sh            # acquire, contention, renewal, crashes, loss, recovery
#     sh examples/demo.sh fence      # a writer that was stopped for too long, and a store's gate
#     sh examples/demo.sh readers    # readers share a key; new ones wait for a writer
#     sh examples/demo.sh several    # several keys in one lock: all of them or none
#     sh examples/demo.sh permits    # a semaphore: several clients may hold it at once
#     sh examples/demo.sh stay       # keys that stay after a release, or after their holder died
#     sh examples/demo.sh replicas   # masters whose replicas must confirm a grant
#     sh examples/demo.sh inspect    # the holder of a key; whether a fence is still the newest
#     sh examples/demo.sh waiting    # a queue that moves on when a holder is killed or stopped
#     sh examples/demo.sh command    # redlock, the command, for shells and operators
#
# Installs missing packages: see test/packages.
set -eu
export LC_ALL=C.UTF-8

cd "$(dirname "$0")/.."
build="build-demo"

sh test/install.sh build "${REDLOCK_SERVER:-redis-server}"

log=$(mktemp)
trap 'rm -f "$log"' EXIT
trap 'exit 130' INT TERM

echo "Building in $build ..."
if [ ! -f "$build/meson-private/coredata.dat" ]; then
    meson setup "$build" -Dexamples=enabled -Dtests=disabled -Dbench=disabled >"$log" 2>&1 || {
        cat "$log" >&2
        exit 1
    }
fi
meson compile -C "$build" >"$log" 2>&1 || {
    cat "$log" >&2
    exit 1
}
echo

"$build/examples/demo" "$@"
