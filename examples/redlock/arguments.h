/*
 * Options and other arguments in any order. If POSIXLY_CORRECT is set, getopt_long() accepts
 * options only before the first other argument: `run KEY --ttl 2s` would hold three keys.
 */
#ifndef ARGUMENTS_H
#define ARGUMENTS_H

#include <getopt.h>

struct arguments {
    int argc;
    char **argv;
    const char *letters; /* short options, after a '-': "-n:" */
    const struct option *options;
    int others; /* number of arguments so far that are not options */
};

/*
 * Keeps an argument that is not an option, in an element of argv that has been read. Also for the
 * value of an option that counts as one of the other arguments.
 */
void arguments_keep(struct arguments *arguments, char *argument);

/*
 * Returns the next option like getopt_long(). At the end, returns -1 and moves all other arguments
 * to the end of argv, from `optind` on.
 */
int arguments_next(struct arguments *arguments);

#endif
