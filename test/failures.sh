#!/bin/sh
# Reports the failures of the last test run: each program, its failed cases, and the end of its
# output; then the names of these programs, for readers who see only the end of a log.
#
#     sh test/failures.sh BUILD_FOLDER
set -eu

awk '
    function tell_end(of, lines, i) {
        for (i = lines > 40 ? lines - 39 : 1; i <= lines; i++) {
            print "    " of[i]
        }
    }
    function tell() {
        if (is_failed) {
            printf "\n%s: %s\n%s", test, result, cases
            if (cases == "") {
                tell_end(output, outputs)
            }
            tell_end(error, errors)
        }
        part = cases = ""
        is_failed = is_case = outputs = errors = 0
    }
    /^[{]"name": "/ {
        split($0, quoted, "\"")
        match($0, /"result": "[A-Z]+"/)
        result = substr($0, RSTART + 11, RLENGTH - 12)
        if (result !~ /^(OK|SKIP|EXPECTEDFAIL)$/) {
            failed[quoted[4]] = result
        }
        next
    }
    /^=+ [0-9]+\/[0-9]+ =+$/ {
        tell()
        part = "head"
    }
    part == "head" && /^test: / { test = substr($0, 15) }
    part == "head" && /^result: / {
        result = substr($0, 15)
        is_failed = test in failed
    }
    /^-+ stdout -+$/ { part = "output"; next }
    /^-+ stderr -+$/ { part = "errors"; next }
    /^=+$/ { part = "" }
    part == "output" {
        output[++outputs] = $0
        is_case = /^not ok / || (is_case && /^#/)
        cases = cases (is_case ? "    " $0 "\n" : "")
    }
    part == "errors" && !/^(\(test program exited.*)?$/ { error[++errors] = $0 }
    END {
        tell()
        print ""
        for (test in failed) {
            print "failed: " test " (" failed[test] ")"
        }
    }' "$1"/meson-logs/testlog*.json "$1"/meson-logs/testlog*.txt
