# Converts the plain comments of the headers to Doxygen's, line by line (Doxyfile: INPUT_FILTER):
#
#   a comment above a declaration   is its description
#   a comment after a declaration   is its description too, on any number of lines
#   indented lines                  stay as they are: tables, lists, examples
#   rulers ("/* ----- locks */")    stay as they are
#   specializations of std          are removed: Doxygen needs to see the template
#
# Characters that Doxygen would read as commands are escaped; `code` is code.

function escaped(text) {
    gsub(/\\/, "\\\\\\\\", text)
    gsub(/[@<>#%]/, "\\\\&", text)
    while (match(text, /`[^`]+`/)) {
        text = substr(text, 1, RSTART - 1) "<tt>" substr(text, RSTART + 1, RLENGTH - 2) "</tt>" \
            substr(text, RSTART + RLENGTH)
    }
    return text
}

# Lines that are indented after their star are a separate block.
function body(line,    text) {
    text = line
    sub(/^ *\* ?/, "", text)
    if (text ~ /^ / && !is_verbatim) {
        printf "@verbatim "
        is_verbatim = 1
    } else if (text !~ /^ / && is_verbatim) {
        printf "@endverbatim "
        is_verbatim = 0
    }
    return is_verbatim ? text : escaped(text)
}

FNR == 1 { is_file = 1 }

is_block {
    if (/\*\/ *$/) {
        print (is_verbatim ? "@endverbatim " : "") "*/"
        is_block = is_verbatim = 0
    } else {
        print body($0)
    }
    next
}

is_after {
    if (/\*\/ *$/) {
        sub(/ *\*\/ *$/, "")
        print escaped($0) " */"
        is_after = 0
    } else {
        print escaped($0)
    }
    next
}

/^ *\/\* -----/ { print; next }

/^template <> struct std::/ { print ""; next }

/^ *\/\* *$/ {
    print "/**" (is_file ? " @file" : "")
    is_block = 1
    is_file = 0
    next
}

/^ *\/\*.*\*\/ *$/ {
    sub(/^ *\/\* */, "")
    sub(/ *\*\/ *$/, "")
    print "/** " escaped($0) " */"
    next
}

# Of the preprocessor's lines only definitions, and only those on one line.
/[;,{}a-zA-Z0-9)] +\/\*/ && (!/^#/ || /^#define/) && !/\\$/ {
    at = index($0, "/*")
    code = substr($0, 1, at - 1)
    text = substr($0, at + 2)
    if (text ~ /\*\/ *$/) {
        sub(/ *\*\/ *$/, "", text)
        print code "/**<" escaped(text) " */"
    } else {
        print code "/**<" escaped(text)
        is_after = 1
    }
    next
}

{ print }
