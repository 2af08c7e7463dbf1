/*
 * Runs a command beside throwaway masters, which end with it:
 *
 *   with_masters COUNT COMMAND [ARGUMENT]...
 *
 * REDLOCK_NODES in its environment lists their URIs. They contain ?durable=yes, so that new masters
 * are trusted at once.
 */
#include "masters.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* The URIs of all masters, separated by spaces. Returns a string that the caller frees. */
static char *list_uris(const struct masters *masters) {
    size_t size = masters_count(masters) * 128 + 1;
    char *list = calloc(1, size);

    for (size_t i = 0; list != NULL && i < masters_count(masters); i++) {
        size_t length = strlen(list);
        snprintf(list + length, size - length, "%s%s?durable=yes", i > 0 ? " " : "",
                 masters_uri(masters, i));
    }
    return list;
}

static int run(char **command) {
    int status = 0;
    pid_t child = fork();

    if (child == 0) {
        execvp(command[0], command);
        _exit(127);
    }
    if (child < 0 || waitpid(child, &status, 0) != child) {
        return EXIT_FAILURE;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILURE;
}

int main(int argc, char **argv) {
    size_t count = argc > 2 ? strtoul(argv[1], NULL, 10) : 0;

    if (count == 0) {
        fprintf(stderr, "usage: %s COUNT COMMAND [ARGUMENT]...\n", argv[0]);
        return 2;
    }
    struct masters *masters = masters_start(count, NULL);
    if (masters == NULL) {
        return EXIT_FAILURE;
    }
    char *uris = list_uris(masters);
    int status =
        uris != NULL && setenv("REDLOCK_NODES", uris, 1) == 0 ? run(argv + 2) : EXIT_FAILURE;
    free(uris);
    masters_finish(masters);
    return status;
}
