# Prints a script as servers are sent it: with its parts in place of "--@include FILE", and texts in
# place of @NAME@; without empty lines, and without comments, which stand on lines of their own.
#
#     awk -v folder=FOLDER -f assemble.awk HEADER... FOLDER/a.lua
#
# FILE is relative to FOLDER. A NAME is that of a C macro, #define NAME "text", in one of the headers.

function fail(message) {
    print message > "/dev/stderr"
    failed = 1
    exit 1
}

# Puts the texts of macros into a line.
function fill(line, place,    name) {
    while (match(line, /@[A-Z_]+@/)) {
        name = substr(line, RSTART + 1, RLENGTH - 2)
        if (!(name in texts)) {
            fail(place ": no header defines " name)
        }
        line = substr(line, 1, RSTART - 1) texts[name] substr(line, RSTART + RLENGTH)
    }
    return line
}

function add_line(line, place,    file, part, got) {
    if (line ~ /^--@include /) {
        file = folder "/" substr(line, length("--@include ") + 1)
        while ((got = getline part < file) > 0) {
            add_line(part, file)
        }
        close(file)
        if (got < 0) {
            fail(place ": cannot read " file)
        }
    } else if (line !~ /^ *(--|$)/) {
        print fill(line, place)
    }
}

FILENAME ~ /\.h$/ && $1 == "#define" && $3 ~ /^".*"$/ { texts[$2] = substr($3, 2, length($3) - 2) }
FILENAME ~ /\.lua$/ { add_line($0, FILENAME) }
END { exit failed }
