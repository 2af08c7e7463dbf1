#!/bin/sh
# Runs Doxygen on the public headers, and prints TAP: Doxygen has no warnings, each public name of
# the headers of C has a comment, and each function is in the reference.
set -eu
export LC_ALL=C.UTF-8

cd "$(dirname "$0")/../.."
if ! command -v doxygen >/dev/null; then
    echo "1..0 # SKIP doxygen is not installed"
    exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

count=0
failed=0

# report NAME: prints `not ok`, and $work/problems, if that file has a line
report() {
    count=$((count + 1))
    if [ -s "$work/problems" ]; then
        failed=1
        echo "not ok $count - $1"
        sed 's/^/# /' "$work/problems"
    else
        echo "ok $count - $1"
    fi
}

# read_headers SETTING...: runs Doxygen with settings that override those before
read_headers() {
    {
        cat lib/doc/Doxyfile
        echo "OUTPUT_DIRECTORY = $work"
        printf '%s\n' "$@"
    } >"$work/Doxyfile"
    doxygen "$work/Doxyfile" >"$work/log" 2>&1 || echo "doxygen ends with $?" >>"$work/log"
    grep -v '^$' "$work/log" >"$work/problems" || true
}

read_headers
report 'Doxygen warns of nothing'
read_headers 'FILE_PATTERNS = *.h' 'EXTRACT_ALL = NO'
report 'each public name of the headers of C has a comment'

find include -name '*.h' -exec sed -n 's/^REDLOCK_EXPORT.*[ *]\(redlock_[a-z_]*\)(.*/\1/p' {} + \
    >"$work/functions"
while read -r name; do
    grep -q ">$name<" "$work"/html/*_8h.html || echo "$name"
done <"$work/functions" >"$work/problems"
[ "$(wc -l <"$work/functions")" -ge 30 ] || echo 'too few functions' >>"$work/problems"
report 'each function is in the reference'

echo "1..$count"
exit "$failed"
