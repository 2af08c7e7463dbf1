# Prints the C files that are changed, or include a changed file, directly or through others.
#
#     awk -v changed='FILE...' -f includers.awk SOURCE...
#
# Sources include each other by their path in lib/, so it runs in the folder of lib/.

/^#include "/ {
    split($0, parts, "\"")
    included = "lib/" parts[2]
    includers[included] = includers[included] " " FILENAME
}

END {
    count = split(changed, files)
    for (i = 1; i <= count; i++) {
        if (files[i] in seen) {
            continue
        }
        seen[files[i]] = 1
        if (files[i] ~ /\.c$/) {
            print files[i]
        }
        added = split(includers[files[i]], more)
        for (j = 1; j <= added; j++) {
            files[++count] = more[j]
        }
    }
}
