/* The command line of redlock-bench. */
#ifndef BENCH_OPTIONS_H
#define BENCH_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct options {
    size_t spawn;       /* number of throwaway masters to start; 0: `nodes` are given */
    const char **nodes; /* URIs; freed by options_finish */
    size_t node_count;
    char *node_text; /* memory that `nodes` point into */
    size_t in_flight;
    double duration_s;
    bool json;
    bool floor;

    size_t held; /* number of locks to hold; 0: another mode */
    uint64_t ttl_ms;
    uint64_t busy_ms; /* 0: none */
    size_t stop;      /* number of masters to stop; 0: none */
    bool fenced;

    bool contend;
    bool poll;
    size_t clients; /* number of contenders */
    size_t processes;
    size_t keys;
    uint64_t hold_us;
};

/* Parses the command line. Exits: after --help with 0, after a mistake, named on stderr, with 2. */
void options_parse(struct options *options, int argc, char **argv);

void options_finish(struct options *options);

#endif
