/*
 * Throwaway masters for tests that are not written in C:
 *
 *   ordered-masters COUNT
 *
 * Prints their URIs on one line, then executes the lines of its input and answers each with "done":
 * "kill I", "restart I", "stop I", "continue I". Ends, with the masters, when its input does.
 */
#include "masters.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct order {
    const char *name;
    void (*act)(struct masters *masters, size_t index);
};

static const struct order orders[] = {
    {"kill", masters_kill},
    {"restart", masters_restart},
    {"stop", masters_stop},
    {"continue", masters_continue},
};

static void say(const char *text) {
    puts(text);
    fflush(stdout);
}

/* Executes a line. Returns whether it is valid. */
static int obey(struct masters *masters, const char *line) {
    char name[16];
    size_t index;

    if (sscanf(line, "%15s %zu", name, &index) != 2 || index >= masters_count(masters)) {
        return 0;
    }
    for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
        if (strcmp(name, orders[i].name) == 0) {
            orders[i].act(masters, index);
            return 1;
        }
    }
    return 0;
}

int main(int argc, char **argv) {
    size_t count = argc == 2 ? strtoul(argv[1], NULL, 10) : 0;
    struct masters *masters = count == 0 ? NULL : masters_start(count, NULL);
    char line[64];
    int status = EXIT_SUCCESS;

    if (masters == NULL) {
        fprintf(stderr, "usage: %s COUNT\n", argv[0]);
        return EXIT_FAILURE;
    }
    for (size_t i = 0; i < count; i++) {
        printf("%s%s?durable=yes", i > 0 ? " " : "", masters_uri(masters, i));
    }
    say("");
    while (status == EXIT_SUCCESS && fgets(line, sizeof(line), stdin) != NULL) {
        if (obey(masters, line)) {
            say("done");
        } else {
            status = EXIT_FAILURE;
        }
    }
    masters_finish(masters);
    return status;
}
