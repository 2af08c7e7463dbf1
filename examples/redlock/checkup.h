/* Looks at one node, on a connection of its own. */
#ifndef CHECKUP_H
#define CHECKUP_H

#include "direct.h"
#include "findings.h"

#include <stdint.h>

#define CHECKUP_RUN_ID 48

struct checkup {
    struct direct_uri uri;
    const char *prefix;          /* for keys to try rights on */
    uint64_t max_ttl_ms;         /* time after a start in which a node does not count */
    uint64_t timeout_ms;         /* time to wait for a silent node */
    uint64_t round_trip_us;      /* the shortest of some; 0: not reached */
    int64_t clock_offset_us;     /* clock of the server less ours */
    bool has_odd_marker;         /* whether the marker was something else */
    redisContext *context;       /* NULL: not connected */
    char why[200];               /* cause of that, or why PING was refused; "": it was answered */
    bool knows_clock;            /* whether the server has told its time */
    char version[32];            /* "" when it is not known */
    char run_id[CHECKUP_RUN_ID]; /* likewise */
};

/* Connects, and looks at the marker, which the library's client mends, and must come later. */
void checkup_begin(struct checkup *checkup);

/* Adds the findings, and disconnects. */
void checkup_node(struct checkup *checkup, struct findings *findings);

#endif
