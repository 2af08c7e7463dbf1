#!/bin/sh
# Checks that abi.sh detects changes: compares the library with copies of the record and of the list
# of symbols that are edited as if the library had changed. Prints TAP.
# usage: abi_test.sh LIBRARY
set -eu
export LC_ALL=C

here=$(cd "$(dirname "$0")" && pwd)
library=$1
# shellcheck source=test/tap.sh
. "$here/tap.sh"
record=$here/../lib/packages/redlock.abi
list=$here/../lib/packages/debian/libredlock0.symbols

# says EXPECTED ARGUMENT...: whether abi.sh exits and prints as check expects
says() {
    expected=$1
    shift
    status=0
    sh "$here/abi.sh" "$@" "$library" >"$folder/said" 2>&1 || status=$?
    if [ -z "$expected" ]; then
        [ "$status" -eq 0 ]
    else
        [ "$status" -eq 1 ] && grep -q "$expected" "$folder/said"
    fi
}

differs() {
    if cmp "$1" "$2" >"$folder/said"; then
        echo 'nothing was changed' >"$folder/said"
        return 1
    fi
}

# check_changed NAME EXPECTED OPTION FILE CHANGE...: abi.sh must print EXPECTED after CHANGE, a
# filter, has edited FILE, which OPTION names; an empty EXPECTED: it must exit with 0
check_changed() {
    name=$1 expected=$2 option=$3 file=$4
    shift 4
    "$@" <"$file" >"$folder/changed"
    # shellcheck disable=SC2310
    if differs "$file" "$folder/changed"; then
        tap_check "$name" says "$expected" "$option" "$folder/changed"
    else
        tap_check "$name: planted" false
    fi
}

check() { # NAME EXPECTED CHANGE...
    name=$1 expected=$2
    shift 2
    check_changed "$name" "$expected" --reference "$record" "$@"
}

# Edits of the record: from its present content to the record of an older library.

had_function() { # NAME
    sed "s/.*elf-symbol name='redlock_fence'.*/&\n$(grep "elf-symbol name='redlock_fence'" "$record" |
        sed "s/redlock_fence/$1/; s/\//\\\\&/g")/"
}

lacked_function() { # NAME
    sed "/elf-symbol name='$1'/d; /function-decl name='$1'/,/<\/function-decl>/d"
}

lacked_parameter() { # FUNCTION
    sed "/function-decl name='$1'/,/<\/function-decl>/{/<parameter/d}"
}

had_value() { # ENUMERATOR VALUE
    sed "s/\(name='$1' value='\)[^']*/\1$2/"
}

# Removes the last member of a struct: the struct was one word smaller.
lacked_last_member() { # STRUCT
    awk -v start="<class-decl name='$1' " '
        index($0, start) {
            is_inside = 1
            match($0, /size-in-bits=.[0-9]*/)
            bits = substr($0, RSTART + 14, RLENGTH - 14) - 64
            $0 = substr($0, 1, RSTART + 13) bits substr($0, RSTART + RLENGTH)
        }
        is_inside { lines[++count] = $0 }
        !is_inside { print }
        is_inside && /<\/class-decl>/ {
            for (i = 1; i <= count; i++) {
                if (i < count - 3 || i == count) {
                    print lines[i]
                }
            }
            is_inside = count = 0
        }'
}

# Removes the first member of a struct: the member is new.
lacked_first_member() { # STRUCT
    awk -v start="<class-decl name='$1' " '
        left > 0 { left--; next }
        { print }
        index($0, start) { left = 3 }'
}

status=0
sh "$here/abi.sh" "$library" >"$folder/said" 2>&1 || status=$?
if [ "$status" -eq 77 ]; then
    echo "1..0 # SKIP $(cat "$folder/said")"
    exit 0
fi

tap_check 'the library as it is' says ''
tap_check 'the library as it is recorded' says '' --exact
check 'a function that is gone' redlock_gone had_function redlock_gone
check 'a function that is new' '' lacked_function redlock_fence
check 'a parameter that is new' redlock_cancel lacked_parameter redlock_cancel
check 'an enumerator that changed' REDLOCK_EHELD had_value REDLOCK_EHELD -33
check 'a struct that grew' redlock_view lacked_last_member redlock_view
for struct in redlock_options redlock_request redlock_stats redlock_node_stats; do
    check "$struct, which may grow, grew" '' lacked_last_member $struct
    check "$struct, with a member in front" $struct lacked_first_member $struct
done
# Even permitted changes must be recorded with a release.
lacked_function redlock_fence <"$record" >"$folder/older"
tap_check 'a function that is not recorded' says redlock_fence --exact --reference "$folder/older"
lacked_last_member redlock_options <"$record" >"$folder/older"
tap_check 'a growth that is not recorded' says redlock_options --exact --reference "$folder/older"
check_changed 'a symbol that the list lacks' 'redlock_fence: in the library, but not in the list' \
    --symbols "$list" sed '/redlock_fence/d'
check_changed 'a symbol of the list that is gone' 'redlock_gone: not in the library' \
    --symbols "$list" sed 's/redlock_fence/redlock_gone/'
tap_end
