# Adds up one profile of callgrind: "instructions OBJECT NUMBER" for the instructions that an object
# (a library, or the program) executed itself, "allocations OBJECT NUMBER" for its calls of malloc,
# calloc and realloc, and both for "all". OBJECT is the name of the object's file, without version.

# Returns the name in a field such as "fn=(12) main"; the profile has it once for each number.
function name_of(kind, field,    number) {
    sub(/^[a-z]*=/, "", field)
    number = substr(field, 1, index(field, ")"))
    if (length(field) > length(number)) names[kind, number] = substr(field, length(number) + 2)
    return names[kind, number]
}

function object_of(field,    path) {
    path = name_of("object", field)
    sub(/.*\//, "", path)
    sub(/[-.][0-9.]*so.*/, "", path)
    return path
}

/^ob=/ { object = object_of($0) }
/^cob=/ { object_of($0) }
/^fn=/ { name_of("function", $0) }
/^cfn=/ { callee = name_of("function", $0) }
/^calls=/ {
    if (callee ~ /^(malloc|calloc|realloc)$/) {
        sub(/^calls=/, "", $1)
        allocations[object] += $1
        allocations["all"] += $1
    }
    is_cost_of_call = 1
    next
}
/^[-+*0-9]/ && NF == 2 {
    if (!is_cost_of_call) {
        instructions[object] += $2
        instructions["all"] += $2
    }
    is_cost_of_call = 0
}

END {
    for (object in instructions) {
        printf "instructions %s %d\n", object, instructions[object]
        printf "allocations %s %d\n", object, allocations[object]
    }
}
