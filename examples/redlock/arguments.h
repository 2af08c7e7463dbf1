/*
 * Options and other arguments in any order. getopt_long() takes options only before the first other
 * argument where POSIXLY_CORRECT is set: `run KEY --ttl 2s` would hold three keys.
 */
#ifndef ARGUMENTS_H
#define ARGUMENTS_H

#include <getopt.h>

struct arguments {
    int argc;
    char **argv;
    const char *letters; /* short options, behind a '-': "-n:" */
    const struct option *options;
    int others; /* number of arguments so far that are no options */
};

/*
 * Keeps an argument that is no option, in a place of argv that has been read: for the value of an
 * option, too, that is to stand among the others.
 */
void arguments_keep(struct arguments *arguments, char *argument);

/*
 * Returns the next option as getopt_long() does. At the end, -1, all other arguments are moved to
 * the end of argv, from `optind` on.
 */
int arguments_next(struct arguments *arguments);

#endif
