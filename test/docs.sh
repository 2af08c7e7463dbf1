#!/bin/sh
# Checks all pages (*.md) of the repository, and prints TAP:
#
#     sh test/docs.sh BUILD_FOLDER
#
#   links     each relative link names a file that exists, each anchor a heading of its page
#   words     README.md has at most 800, the comments of redlock.h and what it includes together
#             5,500, those of each other header of C 1,000
#   numbers   each row of the table "Numbers" in test/README.md: the command prints the number, and
#             no page has another number for these things
#   commands  README.md: each `sh` block runs, in a copy of the sources, with a temporary folder in
#             place of /opt/redlock and throwaway masters in place of ports 6379 to 6381. Three kinds
#             of command do not run, because they need root or run all tests:
#               sh examples/demo.sh, sh test/run.sh   must be steps of .ci/run
#               apt-get install                       must name the packages of `build` in test/packages
#             Other pages: each script, program and option that an `sh` block names exists.
#   C blocks  "c program" is compiled, linked and run beside three masters, unless it includes the
#             header of an event loop that is not installed; "c fragment" is compiled and linked
#             inside a function with the variables `client` and `lock`, and the callbacks
#             on_acquired, on_lost and on_view. A C block must be marked as one of these.
#   C++ blocks  "cpp program" is checked as "c program", in C++17; "cpp fragment" is compiled in
#             C++17, inside a function with the variables `client`, a redlock::client, and `held`, a
#             redlock::lock; "cpp coroutine" in C++20, inside a redlock::task with `client`. Without a
#             C++ compiler they are not checked.
set -eu
export LC_ALL=C.UTF-8

build=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

count=0
failed=0

# report NAME: prints `not ok`, and $work/problems, if that file has a line
report() {
    count=$((count + 1))
    if [ -s "$work/problems" ]; then
        failed=$((failed + 1))
        printf 'not ok %d - %s\n' "$count" "$1"
        sed 's/^/# /' "$work/problems"
    else
        printf 'ok %d - %s\n' "$count" "$1"
    fi
    : >"$work/problems"
}

problem() {
    printf '%s\n' "$*" >>"$work/problems"
}

# list_files PATTERN: lists files; without git (a bare system, a tarball) those of build folders are
# left out
list_files() {
    git ls-files --cached --others --exclude-standard "$1" 2>/dev/null ||
        find . -type f -name "$1" ! -path './build*' ! -path './.*' | sed 's|^\./||' | sort
}

# ------------------------------------------------------------------------------------------ links

# anchors_of PAGE: prints an anchor for each heading, as GitHub makes them
anchors_of() {
    awk '
        /^```/ { is_code = !is_code }
        !is_code && /^#+ / {
            sub(/^#+ +/, "")
            while (match($0, /\[[^]]*\]\([^)]*\)/)) {
                link = substr($0, RSTART, RLENGTH)
                before = substr($0, 1, RSTART - 1)
                after = substr($0, RSTART + RLENGTH)
                sub(/^\[/, "", link)
                sub(/\]\(.*/, "", link)
                $0 = before link after
            }
            anchor = tolower($0)
            gsub(/[^a-z0-9 _-]/, "", anchor)
            gsub(/ /, "-", anchor)
            print seen[anchor]++ ? anchor "-" (seen[anchor] - 1) : anchor
        }' "$1"
}

# links_of PAGE: prints the target of each link, one per line; code has no links
links_of() {
    awk '
        /^```/ { is_code = !is_code; next }
        /^    / && was_empty { is_code_line = 1 }
        !/^    / { is_code_line = 0 }
        { was_empty = /^$/ }
        !is_code && !is_code_line { text = text " " $0 }
        END {
            gsub(/`[^`]*`/, "", text)
            while (match(text, /\]\([^)]*\)/)) {
                target = substr(text, RSTART + 2, RLENGTH - 3)
                gsub(/^ +| .*$/, "", target)
                print target
                text = substr(text, RSTART + RLENGTH)
            }
        }' "$1"
}

check_link() { # PAGE TARGET
    case $2 in
    http://* | https://*) return ;;
    '') problem "an empty link" && return ;;
    esac
    file=${2%%#*}
    case $file in
    '') file=$1 ;;
    *) file=$(dirname "$1")/$file ;;
    esac
    if [ ! -e "$file" ]; then
        problem "$2: there is no $file"
    elif [ "$2" != "${2#*#}" ] && ! anchors_of "$file" | grep -qxF -- "${2#*#}"; then
        problem "$2: $file has no such heading"
    fi
}

check_links() { # PAGE
    links_of "$1" >"$work/links"
    while read -r target; do
        check_link "$1" "$target"
    done <"$work/links"
    report "links of $1"
}

# ----------------------------------------------------------------------------------------- blocks

# blocks_of PAGE INFO FOLDER: writes each block whose info string begins with INFO to FOLDER/1 and
# so on, and its info string and line to FOLDER/1.info
blocks_of() {
    rm -rf "$3"
    mkdir "$3"
    awk -v info="$2" -v folder="$3" '
        /^```/ && is_inside { is_inside = 0; next }
        /^```/ {
            is_inside = 1
            is_wanted = substr($0, 4) == info || index($0, "```" info " ") == 1
            if (is_wanted) {
                file = folder "/" ++count
                print substr($0, 4) > (file ".info")
                print NR > (file ".line")
                printf "" > file
            }
            next
        }
        is_inside && is_wanted { print > file }' "$1"
}

# --------------------------------------------------------------------------------------- commands

# lines_of BLOCK: prints one command per line, without comments
lines_of() {
    sed -e ':a' -e '/\\$/{N;s/ *\\\n */ /;ba' -e '}' -e 's/ *#.*//' -e '/^ *$/d' "$1"
}

# Checks a command of README that CI runs itself.
check_known() { # COMMAND
    # A list of words.
    # shellcheck disable=SC2086
    set -- $1
    [ -f "$2" ] || problem "$*: there is no $2"
    grep -v '^ *#' .ci/run | grep -qF "sh $2" || problem "$*: .ci/run does not run $2"
}

check_packages() { # COMMAND
    awk '$1 == "build" { for (i = 2; i <= NF; i++) print $i }' test/packages | sort >"$work/wanted"
    printf '%s\n' "$1" | tr ' ' '\n' | sed -n '/^[a-z]/p' | grep -vx -e apt-get -e install | sort \
        >"$work/named"
    cmp -s "$work/wanted" "$work/named" ||
        problem "$1: test/packages has other packages for \`build\`"
}

# Checks the commands of a block that are not run here, and writes the others to $work/script.
classify() { # BLOCK
    lines_of "$1" >"$work/lines"
    cat >"$work/script" <<'END'
set -eu
# The examples use the library's default timeouts, which a busy machine may exceed.
attempt() {
    for try in 1 2 3 4 5; do
        "$@" && return 0
    done
    return 1
}
END
    empty=$(wc -l <"$work/script")
    while IFS= read -r line; do
        case $line in
        'sh examples/demo.sh'* | 'sh test/run.sh'*) check_known "$line" ;;
        'apt-get install '*) check_packages "$line" ;;
        *)
            # Only the script knows the masters' addresses.
            # shellcheck disable=SC2016
            printf '%s\n' "$line" | sed -e "s|/opt/redlock|$work/prefix|g" -e 's|^\./|attempt ./|' \
                -e 's|redis://127\.0\.0\.1:6379|${REDLOCK_NODES%% *}|' \
                -e 's| redis://127\.0\.0\.1:63[0-9]*||g' >>"$work/script"
            ;;
        esac
    done <"$work/lines"
}

copy_sources() {
    mkdir "$work/copy"
    list_files '*' | tar -cf - -T - | tar -xf - -C "$work/copy"
}

run_block() { # in the copy; what it builds need not be fast
    (cd "$work/copy" && CFLAGS=-O0 "$build/test/docs/docs-with-masters" "$1" sh "$work/script") \
        >"$work/log" 2>&1 || {
        problem "fails:"
        tail -n 20 "$work/log" >>"$work/problems"
    }
}

check_readme_commands() {
    blocks_of README.md sh "$work/sh"
    number=1
    while [ -f "$work/sh/$number" ]; do
        classify "$work/sh/$number"
        if [ "$(wc -l <"$work/script")" -gt "$empty" ]; then
            run_block 3
        fi
        report "commands of README.md, line $(cat "$work/sh/$number.line")"
        number=$((number + 1))
    done
    [ "$number" -gt 1 ] || problem "README.md has no commands"
    for command in 'sh examples/demo.sh' 'sh test/run.sh'; do
        cat "$work"/sh/[0-9] | grep -q "^$command" || problem "README.md does not name \`$command\`"
    done
    report "README.md names both commands"
}

# text_of WORD: prints a text that contains the options of a script or program
text_of() {
    case $1 in
    *.sh) cat "$1" ;;
    *) "$1" --help 2>&1 || true ;;
    esac
}

# Checks that the scripts, programs and options in a line of another page than README exist.
check_line() { # COMMAND
    program=
    for word in $1; do
        case $word in
        build/*) word=$build/${word#build/} ;;
        esac
        case $word in
        "$build"/*/* | */*.sh)
            [ -f "$word" ] || problem "$1: there is no $word"
            program=$word
            ;;
        --[a-z]*)
            if [ -n "$program" ] && [ -f "$program" ]; then
                text_of "$program" | grep -qe "${word%%=*}" || problem "$1: has no $word"
            fi
            ;;
        esac
    done
}

check_commands() { # PAGE
    blocks_of "$1" sh "$work/sh"
    number=1
    while [ -f "$work/sh/$number" ]; do
        lines_of "$work/sh/$number" >"$work/lines"
        while IFS= read -r line; do
            check_line "$line"
        done <"$work/lines"
        number=$((number + 1))
    done
    [ "$number" -eq 1 ] || report "commands of $1"
}

# --------------------------------------------------------------------------------------- C blocks

# flags_of SOURCE: prints the flags of the event loops whose headers it includes. Returns 1 if one of
# them is not installed
flags_of() {
    sed -n 's|^#include <redlock/\(.*\)\.h>.*|\1|p' "$1" | while read -r header; do
        case $header in
        uv) echo -D_GNU_SOURCE && pkg-config --cflags --libs libuv || return 1 ;;
        ev)
            # The compiler is a list of words.
            # shellcheck disable=SC2086
            echo '#include <ev.h>' | ${CC:-cc} -E - >/dev/null || return 1
            echo -lev
            ;;
        glib) pkg-config --cflags --libs glib-2.0 || return 1 ;;
        sdevent) pkg-config --cflags --libs libsystemd || return 1 ;;
        esac
    done 2>/dev/null
}

# compile OUTPUT SOURCE: uses the library that README's commands have installed
compile() {
    flags=$(PKG_CONFIG_PATH=$work/prefix/lib/pkgconfig pkg-config --cflags --libs redlock \
        libevent_core 2>"$work/problems") || return 1
    flags="$flags $(flags_of "$2")"
    case $2 in
    *.cpp) compiler="${CXX:-c++} -std=c++17" ;;
    *) compiler="${CC:-cc} -std=c11" ;;
    esac
    # The flags, and the compiler, are lists of words.
    # shellcheck disable=SC2086
    $compiler -Wall -Wextra -Wno-unused -Werror -o "$1" "$2" $flags 2>"$work/problems"
}

wrap_fragment() { # BLOCK
    cat <<END
#include <redlock.h>
#include <stdio.h>

void on_acquired(redlock_lock *lock, redlock_status status, void *arg);
void on_lost(redlock_lock *lock, redlock_status status, void *arg);
void on_view(redlock_status status, const redlock_view *view, void *arg);
void fragment(redlock_client *client, redlock_lock *lock);
void on_acquired(redlock_lock *lock, redlock_status status, void *arg) {}
void on_lost(redlock_lock *lock, redlock_status status, void *arg) {}
void on_view(redlock_status status, const redlock_view *view, void *arg) {}
void fragment(redlock_client *client, redlock_lock *lock) {
#line 1 "block"
END
    cat "$1"
    printf '}\nint main(void) { return 0; }\n'
}

check_program() { # BLOCK, and the ending of its language
    cp "$1" "$work/block.$2"
    compile "$work/block" "$work/block.$2" || return 0
    # The program must end by itself.
    LD_LIBRARY_PATH=$work/prefix/lib "$build/test/docs/docs-with-masters" 3 sh -c \
        "timeout 60 $work/block \$REDLOCK_NODES" >"$work/log" 2>&1 || problem "the program fails"
    grep -qx acquired "$work/log" || {
        problem "the program does not print \"acquired\", but:"
        cat "$work/log" >>"$work/problems"
    }
}

check_c_blocks() { # PAGE
    blocks_of "$1" c "$work/c"
    number=1
    while [ -f "$work/c/$number" ]; do
        skipped=
        case $(cat "$work/c/$number.info") in
        'c program')
            if flags_of "$work/c/$number" >/dev/null; then
                check_program "$work/c/$number" c
            else
                skipped=' # SKIP its event loop is not installed'
            fi
            ;;
        'c fragment')
            wrap_fragment "$work/c/$number" >"$work/block.c"
            compile "$work/block" "$work/block.c" || true
            ;;
        *) problem "mark the block as \`c program\` or \`c fragment\`" ;;
        esac
        report "C of $1, line $(cat "$work/c/$number.line")$skipped"
        number=$((number + 1))
    done
}

# ------------------------------------------------------------------------------------- C++ blocks

wrap_cpp() { # STANDARD BLOCK
    echo '#include <cstdio>'
    if [ "$1" = c++17 ]; then
        echo '#include <redlock.hpp>'
        echo 'void fragment(redlock::client &client, redlock::lock &held);'
        echo 'void fragment(redlock::client &client, redlock::lock &held) {'
    else
        echo '#include <redlock/coroutines.hpp>'
        echo 'using namespace std::chrono_literals;'
        echo 'void write(std::uint64_t fence);'
        echo 'redlock::task fragment(redlock::client &client);'
        echo 'redlock::task fragment(redlock::client &client) {'
    fi
    echo '#line 1 "block"'
    cat "$2"
    echo '}'
}

has_cpp() {
    command -v "${CXX:-c++}" >/dev/null
}

check_cpp_blocks() { # PAGE
    blocks_of "$1" cpp "$work/cpp"
    number=1
    while [ -f "$work/cpp/$number" ]; do
        standard=
        case $(cat "$work/cpp/$number.info") in
        'cpp program') ! has_cpp || check_program "$work/cpp/$number" cpp ;;
        'cpp fragment') standard=c++17 ;;
        'cpp coroutine') standard=c++20 ;;
        *) problem "mark the block as \`cpp program\`, \`cpp fragment\` or \`cpp coroutine\`" ;;
        esac
        if [ -n "$standard" ] && has_cpp; then
            wrap_cpp "$standard" "$work/cpp/$number" >"$work/block.cpp"
            # The compiler is a list of words.
            # shellcheck disable=SC2086
            ${CXX:-c++} -std=$standard -Wall -Wextra -Werror -I include -c -o "$work/block.o" \
                "$work/block.cpp" 2>"$work/problems" || true
        fi
        report "C++ of $1, line $(cat "$work/cpp/$number.line")"
        number=$((number + 1))
    done
}

# ---------------------------------------------------------------------------------------- numbers

# rows_of_numbers: prints "NUMBER<tab>THINGS<tab>COMMAND" for each row
rows_of_numbers() {
    awk '
        /^#/ { is_inside = $0 == "## Numbers" }
        is_inside && /^\| [0-9]/ {
            gsub(/\\\|/, "\001")
            split($0, cell, "|")
            things = cell[2]
            number = things + 0
            sub(/^ *[0-9]+ */, "", things)
            sub(/ *$/, "", things)
            command = cell[3]
            gsub(/^ *`|` *$/, "", command)
            gsub(/\001/, "|", command)
            print number "\t" things "\t" command
        }' test/README.md
}

# Finds pages with another number for these things, and counts the right one.
find_number() { # NUMBER THINGS
    found=0
    for page in $pages; do
        tr '\n' ' ' <"$page" | tr -s ' ' | grep -oE "[0-9][0-9,]* $2" >"$work/said" || continue
        while read -r said rest; do
            if [ "$said" = "$1" ]; then
                found=$((found + 1))
            else
                problem "$page: $said $rest"
            fi
        done <"$work/said"
    done
    [ "$found" -gt 1 ] || problem "no page says it" # the table has it, too
}

check_numbers() {
    rows_of_numbers >"$work/rows"
    tab=$(printf '\t')
    while IFS="$tab" read -r number things command; do
        said=$(cd "$work/copy" && sh -c "$(printf '%s\n' "$command" | sed "s|build/|$build/|g")" \
            2>"$work/log" </dev/null | tail -n 1)
        [ "$((said + 0))" = "$number" ] || {
            problem "$command: $said, not $number"
            cat "$work/log" >>"$work/problems"
        }
        find_number "$number" "$things"
        report "number: $number $things"
    done <"$work/rows"
    [ -s "$work/rows" ] || problem "test/README.md has no table of numbers"
    report "there is a table of numbers"
}

# ------------------------------------------------------------------------------------------ words

# words_of_comments FILE...: prints the number of words in comments of C
words_of_comments() {
    cat "$@" | awk '
        {
            rest = $0
            while (rest != "") {
                end = index(rest, is_inside ? "*/" : "/*")
                text = end ? substr(rest, 1, end - 1) : rest
                if (is_inside) {
                    sub(/^ *\*( |$)/, "", text)
                    count += split(text, words)
                }
                rest = end ? substr(rest, end + 2) : ""
                is_inside = end ? !is_inside : is_inside
            }
        }
        END { print count + 0 }'
}

check_words() {
    words=$(wc -w <README.md)
    [ "$words" -le 800 ] || problem "$words words"
    report "README.md has at most 800 words"
    included=$(sed -n 's|^#include "\(redlock/.*\)".*|include/\1|p' include/redlock.h)
    # The names of headers have no blanks.
    # shellcheck disable=SC2086
    words=$(words_of_comments include/redlock.h $included)
    if [ "$words" -le 1000 ] || [ "$words" -gt 5500 ]; then
        problem "$words words"
    fi
    report "redlock.h and what it includes have at most 5,500 words of comment"
    for header in include/redlock/*.h; do
        words=$(words_of_comments "$header")
        [ "$words" -le 1000 ] || problem "$header: $words words"
    done
    report "each other header of C has at most 1,000 words of comment"
}

# -------------------------------------------------------------------------------------------------

: >"$work/problems"
pages=$(list_files '*.md')
copy_sources
for page in $pages; do
    check_links "$page"
done
check_words
check_readme_commands
for page in $pages; do
    [ "$page" = README.md ] || check_commands "$page"
    check_c_blocks "$page"
    check_cpp_blocks "$page"
done
check_numbers
echo "1..$count"
[ "$failed" -eq 0 ]
