#!/bin/sh
# Checks that two versions of the library work together on the same masters: locks of each kind
# exclude each other, are handed over from one version to the other in the queue, and are understood
# by both. Each version is tested by its command `redlock`, against the other. Prints TAP.
#
#     sh test/mixed.sh --commit COMMIT REDLOCK   # builds the command of that commit
#     sh test/mixed.sh --other OTHER REDLOCK     # OTHER is such a command
#
# REDLOCK is the command of this version. Starts its own masters (redlock dev).
set -eu
export LC_ALL=C.UTF-8

root=$(cd "$(dirname "$0")/.." && pwd)
if [ $# -ne 3 ] || [ ! -x "$3" ]; then
    sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
# shellcheck source=test/tap.sh
. "$root/test/tap.sh"
this=$(cd "$(dirname "$3")" && pwd)/$(basename "$3")

# Builds the command of a commit in $folder/build.
build_other() { # COMMIT
    mkdir "$folder/source"
    git -C "$root" archive "$1" | tar -xf - -C "$folder/source"
    meson setup "$folder/build" "$folder/source" -Dtests=disabled -Dbench=disabled
    ninja -C "$folder/build" examples/redlock/redlock
}

case $1 in
--commit)
    git -C "$root" rev-parse --verify --quiet "$2^{commit}" >"$folder/said" || {
        echo "mixed.sh: there is no commit \"$2\"" >&2
        exit 2
    }
    other=$folder/build/examples/redlock/redlock
    # The shell continues after a command that fails in a condition: only the program counts.
    # shellcheck disable=SC2310
    build_other "$2" >"$folder/said" 2>&1 || true
    if [ ! -x "$other" ]; then
        cat "$folder/said" >&2
        exit 1
    fi
    ;;
--other) other=$2 ;;
*)
    sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac

# ----------------------------------------------------------------------------------------- holders

holders=
masters=
# Ends all holders.
drop() {
    for pid in $holders; do
        kill "$pid" 2>/dev/null || true
        wait "$pid" || true
    done
    holders=
}
finish() {
    drop
    if [ -n "$masters" ]; then
        kill "$masters" 2>/dev/null || true
        wait "$masters" || true
    fi
    rm -rf "$folder"
}
trap finish EXIT

# want NAME COMMAND ARGUMENT...: starts a holder, which waits for the lock if needed
want() {
    name=$1 command=$2
    shift 2
    rm -f "$folder/$name.held" "$folder/$name.go"
    mkfifo "$folder/$name.held" "$folder/$name.go"
    # The variables are those of the inner shell.
    # shellcheck disable=SC2016
    "$command" run --ttl 30s --wait 60s --owner "$name" "$@" -- \
        sh -c 'echo "${REDLOCK_FENCE:-0}" >"$1.held"; cat "$1.go"' - "$folder/$name" \
        >>"$folder/said" 2>&1 </dev/null &
    holders="$! $holders"
    eval "pid_$name=$!"
}

# got NAME: waits until the holder has the lock, and prints its fence
got() {
    timeout 90 cat "$folder/$1.held"
}

# let_go NAME: makes the holder release the lock, and waits for its end
let_go() {
    # shellcheck disable=SC2016
    timeout 60 sh -c ': >"$1"' - "$folder/$1.go" || return 1
    eval "pid=\$pid_$1"
    wait "$pid"
}

hold() { # as want
    want "$@"
    got "$1" >"$folder/fence"
}

# status_of COMMAND ARGUMENT...: sets $status to that of one try, repeated if it had no quorum, as
# on a busy machine
status_of() {
    command=$1
    shift
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        status=0
        "$command" run --no-wait --ttl 30s "$@" -- true >>"$folder/said" 2>&1 || status=$?
        [ "$status" -eq 69 ] || break
    done
}

refused() {
    status_of "$@"
    [ "$status" -eq 75 ]
}

granted() {
    status_of "$@"
    [ "$status" -eq 0 ]
}

# in_line COMMAND KEY COUNT: waits until COUNT waiters are in the queue
in_line() {
    looks=0
    while [ "$looks" -lt 200 ]; do
        "$1" inspect --json "$2" >"$folder/view" 2>>"$folder/said" || true
        if grep -q "^{[^[]*\"queue_length\":$3," "$folder/view"; then
            return 0
        fi
        looks=$((looks + 1))
    done
    cat "$folder/view" >>"$folder/said"
    return 1
}

# ------------------------------------------------------------------------------------------ checks
# Each check has two commands: $one has a lock, and $two wants it. $key is new.

plain() {
    hold first "$one" "$key" &&
        refused "$two" "$key" &&
        let_go first &&
        granted "$two" "$key"
}

fences_grow() {
    hold first "$one" --fence "$key" || return 1
    earlier=$(cat "$folder/fence")
    "$two" inspect --json "$key" >>"$folder/said" &&
        grep -q "^{[^[]*\"fence\":$earlier," "$folder/said" &&
        refused "$two" --fence "$key" &&
        let_go first &&
        hold second "$two" --fence "$key" || return 1
    later=$(cat "$folder/fence")
    echo "fences: $earlier, then $later" >>"$folder/said"
    [ "$later" -gt "$earlier" ]
}

several() {
    hold first "$one" "$key" "$key-2" &&
        refused "$two" "$key-2" "$key-3" &&
        refused "$two" "$key" &&
        granted "$two" "$key-3"
}

readers() {
    hold first "$one" --shared "$key" &&
        granted "$two" --shared "$key" &&
        refused "$two" --writer "$key" &&
        refused "$two" "$key" &&
        let_go first &&
        granted "$two" --writer "$key"
}

writers() {
    hold first "$one" --writer "$key" &&
        refused "$two" --shared "$key" &&
        refused "$two" --writer "$key"
}

permits() {
    hold first "$one" --permits 2 "$key" &&
        hold second "$two" --permits 2 "$key" &&
        refused "$one" --permits 2 "$key" &&
        refused "$two" --permits 2 "$key" &&
        want third "$one" --permits 2 "$key" &&
        let_go second &&
        got third >"$folder/fence"
}

stays() {
    "$one" run --ttl 30s --wait 60s --min-hold 20s "$key" -- true >>"$folder/said" 2>&1 &&
        refused "$two" "$key"
}

# owners: each version reports the other's label
owners() {
    hold first "$one" "$key" || return 1
    "$two" inspect --json "$key" >"$folder/said" &&
        grep -q '^{[^[]*"owner":"first",' "$folder/said"
}

# Queues one, two, one, in this order.
queue_of() { # OPTION...
    hold first "$one" "$@" "$key" &&
        want second "$two" "$@" "$key" &&
        in_line "$one" "$key" 1 &&
        want third "$one" "$@" "$key" &&
        in_line "$two" "$key" 2 &&
        let_go first &&
        got second >"$folder/fence" &&
        let_go second &&
        got third >"$folder/fence"
}

line() {
    queue_of
}

queue_of_writers() {
    queue_of --writer
}

line_with_fences() {
    queue_of --fence
}

# A release passes the key to all consecutive readers.
readers_in_queue() {
    hold first "$one" --writer "$key" &&
        want second "$two" --shared "$key" &&
        in_line "$one" "$key" 1 &&
        want third "$one" --shared "$key" &&
        in_line "$two" "$key" 2 &&
        let_go first &&
        got second >"$folder/fence" &&
        got third >"$folder/fence"
}

keys=0
# check NAME FUNCTION: runs a check in both directions
check() {
    for direction in 'the other first' 'this first'; do
        if [ "$direction" = 'this first' ]; then
            one=$this two=$other
        else
            one=$other two=$this
        fi
        keys=$((keys + 1))
        key=key-$keys
        : >"$folder/said"
        tap_check "$1, $direction" "$2"
        drop
    done
}

# The first line sets REDLOCK_NODES.
unset REDLOCK_NODES
mkfifo "$folder/masters"
"$this" dev 3 >"$folder/masters" &
masters=$!
exec 3<"$folder/masters"
read -r nodes <&3
eval "$nodes"
[ -n "$REDLOCK_NODES" ]

check 'a lock' plain
check 'fences grow' fences_grow
check 'several keys' several
check 'readers' readers
check 'a writer' writers
check 'permits' permits
check 'a key that stays' stays
check 'the name of the holder' owners
check 'in line' line
check 'writers in line' queue_of_writers
check 'in line, with fences' line_with_fences
check 'readers in line' readers_in_queue
tap_end
[ "$tap_failed" -eq 0 ]
