/* The command line of redlock-bench. */
#ifndef BENCH_OPTIONS_H
#define BENCH_OPTIONS_H

#include "keys.h"
#include "relay.h"

#include <redlock.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The kind of load that runs the cycles. */
enum options_load { LOAD_REDLOCK, LOAD_STOCK, LOAD_EPOLL };

struct options {
    size_t spawn;       /* number of throwaway masters to start; 0: `nodes` is given */
    bool null_masters;  /* whether to start null masters, which grant everything */
    const char **nodes; /* URIs; freed by options_finish */
    size_t node_count;
    char *node_text; /* memory to which `nodes` points */
    size_t in_flight;
    double duration_s;
    uint64_t cycles; /* number of cycles to run, without warm-up; 0: `duration_s` counts */
    bool json;
    enum options_load load;

    bool relayed; /* whether a relay adds delays */
    struct relay_delays delays;
    const char *rtt_text; /* as given; NULL: not given */

    size_t held; /* number of locks to hold; 0: another mode */
    uint64_t ttl_ms;
    uint64_t busy_ms; /* time to block the loop; 0: none */
    size_t stop;      /* number of masters to stop; 0: none */
    bool fenced;

    size_t rate; /* cycles per second, of each client in a fleet; 0: closed loop */
    redlock_mode mode;
    size_t threads;
    const struct outer_kind *loop; /* NULL: libevent */
    bool shares_client;            /* whether all threads share a client: --mt */
    size_t blocking;               /* number of these threads that block; 0: none does */
    struct keys_spec spread;       /* distribution of the cycles' keys */
    const char *spread_text;       /* as given; NULL: not given */

    size_t mixed; /* number of clients that wait beside the cycles; 0: another mode */

    size_t fleet;   /* number of clients; 0: another mode */
    size_t working; /* percentage of them that works */

    bool contend;
    bool poll;
    uint64_t node_timeout_ms; /* 0: it follows the answers of each node */
    size_t clients;           /* number of contenders */
    size_t processes;
    size_t keys;        /* number of the contenders' keys */
    uint64_t hold_us;   /* of contenders and of cycles */
    bool is_hold_given; /* whether --hold was given, even as 0 */
};

/* Parses the command line. Exits with 0 after --help, with 2 after an error message on stderr. */
void options_parse(struct options *options, int argc, char **argv);

void options_finish(struct options *options);

#endif
