#include "arguments.h"

#include <string.h>

/* What getopt_long() returns for an argument that is not an option, if the letters begin with '-'.
 */
#define OTHER 1

void arguments_keep(struct arguments *arguments, char *argument) {
    arguments->others++;
    arguments->argv[arguments->others] = argument;
}

int arguments_next(struct arguments *arguments) {
    char **argv = arguments->argv;
    int option;

    while ((option = getopt_long(arguments->argc, argv, arguments->letters, arguments->options,
                                 NULL)) == OTHER) {
        arguments_keep(arguments, optarg);
    }
    if (option == -1) {
        while (optind < arguments->argc) { /* after "--" */
            arguments_keep(arguments, argv[optind++]);
        }
        optind = arguments->argc - arguments->others;
        memmove(argv + optind, argv + 1, (size_t)arguments->others * sizeof(*argv));
    }
    return option;
}
