# Prints the members of one JSON object, one "NAME VALUE" per line; members of an object within it
# as "NAME.PART VALUE".
{
    prefix = ""
    name = ""
    while (match($0, /"[^"]*"|[{}:,]|[^][{}:," \t]+/)) {
        token = substr($0, RSTART, RLENGTH)
        $0 = substr($0, RSTART + RLENGTH)
        gsub(/"/, "", token)
        if (token == "{") {
            prefix = name == "" ? "" : name "."
            name = ""
        } else if (token == "}") {
            prefix = ""
        } else if (token == ",") {
            name = ""
        } else if (name == "") {
            name = prefix token
        } else if (token != ":") {
            print name, token
        }
    }
}
