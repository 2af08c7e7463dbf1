#!/bin/sh
# Tells what failed in the last run of the tests: which program, which of its cases, and the end of
# what it said.
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
    /^=+ [0-9]+\/[0-9]+ =+$/ {
        tell()
        part = "head"
    }
    part == "head" && /^test: / { test = substr($0, 15) }
    part == "head" && /^result: / {
        result = substr($0, 15)
        is_failed = result !~ /^exit status (0|77)$/
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
    END { tell() }' "$1/meson-logs/testlog.txt"
