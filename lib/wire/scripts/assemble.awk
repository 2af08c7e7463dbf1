# Prints a script in the form that is sent to servers: with its parts in place of "--@needs
# NAME...", and texts in place of @NAME@; without empty lines and comments. Each comment has its own
# line.
#
#     awk -v folder=FOLDER -f assemble.awk HEADER... FOLDER/a.lua
#
# The part NAME is FOLDER/parts/NAME.lua: local definitions that begin at the beginning of a line,
# and the parts that they need in turn. A script contains a part once, after the parts that it
# needs, and without definitions that the script does not use: each definition costs the server time
# in each call.
#
# A part that only some calls need is needed by a function, on an indented line. It is then put into
# the function, unless the script already has it at this place, and only calls of the function pay
# for it.
#
# NAME in @NAME@ is a C macro, #define NAME "text", in one of the headers.
#
# A script whose contract lists keys does nothing when it is called without any: such a call asks
# whether the server has the script, and may need no right that the script needs.

function fail(message) {
    if (!failed) {
        print message > "/dev/stderr"
    }
    failed = 1
    exit 1
}

# Replaces the macros in a line by their texts.
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

function file_of(name) { return folder "/parts/" name ".lua" }

# Returns the names in a line "--@needs NAME..."; "" for any other line.
function needs_of(line) { return sub(/^ *--@needs /, "", line) ? line : "" }

# Stores a line of a file with the number of its definition, and reads the parts that the line
# needs. The lines of a script are one definition, number 0, which is used.
function keep(file, line, number,    i, names, count) {
    if (line ~ /[^ ] +-- /) {
        fail(file ": a comment behind code: " line)
    }
    lines[file, ++line_count[file]] = line
    number_of[file, line_count[file]] = number
    count = split(needs_of(line), names, / +/)
    for (i = 1; i <= count; i++) {
        read_part(names[i], file)
    }
}

# Records the names that a line "local ..." at the beginning of a definition defines.
function define(file, line, number,    names, count, i) {
    sub(/^local (function )?/, "", line)
    sub(/[(=].*$/, "", line)
    count = split(line, names, /[ ,]+/)
    for (i = 1; i <= count; i++) {
        if (names[i] != "") {
            definitions[names[i]] = definitions[names[i]] " " file SUBSEP number
        }
    }
}

# Reads a part, and the parts that it needs.
function read_part(name, place,    file, line, got, number, at) {
    file = file_of(name)
    if (file in is_read) {
        if (!is_read[file]) {
            fail(place ": " file " needs itself")
        }
        return
    }
    is_read[file] = number = at = 0
    while ((got = getline line < file) > 0 && !failed) {
        at++
        if (line ~ /^local /) {
            define(file, line, ++number)
        } else if (line ~ /^[^ ]/ && line !~ /^(--|end|[})])/) {
            fail(file ":" at ": a part has local definitions alone")
        }
        if (line !~ /^ *(--|$)/ || needs_of(line)) {
            keep(file, line, number)
        }
    }
    close(file)
    if (got < 0) {
        fail(place ": cannot read " file)
    }
    is_read[file] = 1
}

# Marks the definitions of the names in a line, without its strings, and of the names in these
# definitions.
function use(line,    word, found, count, i) {
    gsub(/"[^"]*"/, "", line)
    gsub(/'[^']*'/, "", line)
    while (match(line, /[A-Za-z_][A-Za-z_0-9]*/)) {
        word = substr(line, RSTART, RLENGTH)
        line = substr(line, RSTART + RLENGTH)
        if (!(word in is_used)) {
            is_used[word] = 1
            count = split(definitions[word], found, / /)
            for (i = 1; i <= count; i++) {
                use_definition(found[i])
            }
        }
    }
}

function use_definition(definition,    part, i) {
    if (definition == "" || definition in in_use) {
        return
    }
    in_use[definition] = 1
    split(definition, part, SUBSEP)
    for (i = 1; i <= line_count[part[1]]; i++) {
        if (number_of[part[1], i] == part[2] && !needs_of(lines[part[1], i])) {
            use(lines[part[1], i])
        }
    }
}

# Returns whether a scope is another one, or inside it.
function is_inside(scope, outer) {
    while (scope != outer && scope != 0) {
        scope = parent[scope]
    }
    return scope == outer
}

# Prints the parts of a line "--@needs NAME..." of a file, except those that the scope has.
function print_parts(line, file, scope,    names, count, i, j, other, has_it) {
    count = split(needs_of(line), names, / +/)
    for (i = 1; i <= count; i++) {
        other = file_of(names[i])
        has_it = 0
        for (j = 1; j <= scopes; j++) {
            if ((j, other) in has_part && is_inside(scope, j)) {
                has_it = 1
            } else if ((j, other) in has_part && is_inside(j, scope)) {
                fail(file ": needs " other ", which stands in a function before")
            }
        }
        if (!has_it) {
            has_part[scope, other] = 1
            print_file(other, scope)
        }
    }
}

# Prints the used lines of a file, each part in a scope: that of the script or of a function.
function print_file(file, scope,    i, line) {
    for (i = 1; i <= line_count[file]; i++) {
        line = lines[file, i]
        if (line ~ /^--@needs /) {
            print_parts(line, file, scope)
        } else if (!((file, number_of[file, i]) in in_use)) {
            continue
        } else if (needs_of(line)) {
            parent[++scopes] = scope
            print_parts(line, file, scopes)
        } else {
            record_name(file, line, i, scope)
            print fill(line, file)
        }
    }
}

# Fails if two parts of a scope define the same name.
function record_name(file, line, i, scope,    name) {
    if (file == script || !sub(/^local (function )?/, "", line)) {
        return
    }
    match(line, /^[A-Za-z_0-9]+/)
    name = substr(line, 1, RLENGTH)
    if ((scope, name) in defined_by) {
        fail(file ": defines " name ", as does " defined_by[scope, name])
    }
    defined_by[scope, name] = file
}

FILENAME ~ /\.h$/ && $1 == "#define" && $3 ~ /^".*"$/ { texts[$2] = substr($3, 2, length($3) - 2) }

FILENAME ~ /\.lua$/ {
    script = FILENAME
    has_keys = has_keys || ($0 ~ /^-- keys: / && $0 !~ / none$/)
    if ($0 !~ /^ *(--|$)/ || needs_of($0)) {
        keep(script, $0, 0)
    }
}

END {
    if (failed) {
        exit 1
    }
    use_definition(script SUBSEP 0)
    scopes = 1
    if (has_keys) {
        print "if #KEYS == 0 then return '' end"
    }
    print_file(script, 1)
    exit failed
}
