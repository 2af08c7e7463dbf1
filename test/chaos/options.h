/* The command line. */
#ifndef REDLOCK_CHAOS_OPTIONS_H
#define REDLOCK_CHAOS_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#define MASTERS 5
#define MAX_CLIENTS 64
#define MAX_KEYS 1024

struct options {
    uint64_t seconds;
    uint32_t clients;
    uint32_t keys;
    uint64_t ttl_ms;
    uint64_t seed;
    uint32_t nemeses; /* mask of NEMESIS_BIT */
    bool hosts;
    bool recheck;
    bool json;
    bool keep;
    const char *actions; /* path of the file for the actions; NULL: none */
};

/* Parses the arguments. Exits with 2 and a message if they are invalid, with 0 for --help. */
void options_parse(struct options *options, int argc, char **argv);

/* Returns whether exclusion is promised under the chosen nemeses. */
bool options_keep_assumptions(const struct options *options);

#endif
