/* The command line of redlock-bench. */
#ifndef BENCH_OPTIONS_H
#define BENCH_OPTIONS_H

#include "keys.h"

#include <redlock.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The way in which cycles are run. */
enum options_load { LOAD_REDLOCK, LOAD_STOCK, LOAD_EPOLL };

struct options {
    size_t spawn;       /* number of throwaway masters to start; 0: `nodes` are given */
    bool null_masters;  /* whether those cost next to nothing, and grant everything */
    const char **nodes; /* URIs; freed by options_finish */
    size_t node_count;
    char *node_text; /* memory that `nodes` point into */
    size_t in_flight;
    double duration_s;
    uint64_t cycles; /* number of cycles to run, without warming up; 0: `duration_s` counts */
    bool json;
    enum options_load load;

    size_t held; /* number of locks to hold; 0: another mode */
    uint64_t ttl_ms;
    uint64_t busy_ms; /* 0: none */
    size_t stop;      /* number of masters to stop; 0: none */
    bool fenced;

    size_t rate; /* cycles per second; 0: one follows another */
    redlock_mode mode;
    size_t threads;
    struct keys_spec spread; /* of the keys that cycles want */
    const char *spread_text; /* as given; NULL: not given */

    bool contend;
    bool poll;
    size_t clients; /* number of contenders */
    size_t processes;
    size_t keys;        /* of contenders */
    uint64_t hold_us;   /* of cycles, too */
    bool is_hold_given; /* be it as 0 */
};

/* Parses the command line. Exits: after --help with 0, after a mistake, named on stderr, with 2. */
void options_parse(struct options *options, int argc, char **argv);

void options_finish(struct options *options);

#endif
