# Prints a C entry for each mutant: its name, and the world in its file, if there is one.
#
#     awk -f list.awk FOLDER/a.mutant... >mutant_list.h
#
# "World: guarded 337" is the profile and the seed in which the mutant was last caught. The line
# precedes the first edit.

function print_entry() {
    if (name != "") {
        printf "{\"%s\", %s, %s},\n", name, profile == "" ? "NULL" : "\"" profile "\"", seed
    }
}

FNR == 1 {
    print_entry()
    name = FILENAME
    sub(/.*\//, "", name)
    sub(/\.mutant$/, "", name)
    profile = ""
    seed = 0
}
/^World: [a-z]+ [0-9]+$/ {
    profile = $2
    seed = $3
}
END { print_entry() }
