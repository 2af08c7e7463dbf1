/* Checks one node, on a connection of its own. */
#ifndef CHECKUP_H
#define CHECKUP_H

#include "direct.h"
#include "findings.h"

#include <stdint.h>

#define CHECKUP_RUN_ID 48

struct checkup {
    struct direct_uri uri;
    const char *prefix;          /* of the keys on which rights are tried */
    uint64_t max_ttl_ms;         /* time after a restart for which a node does not count */
    uint64_t timeout_ms;         /* time limit for a silent node */
    uint64_t round_trip_us;      /* the shortest measured; 0: not reached */
    int64_t clock_offset_us;     /* the server's clock minus ours */
    bool has_odd_marker;         /* whether the marker's key held something else */
    redisContext *context;       /* NULL: not connected */
    char why[200];               /* why not, or why PING was refused; "": it was answered */
    bool knows_clock;            /* whether the server reported its time */
    char version[32];            /* "": not known */
    char run_id[CHECKUP_RUN_ID]; /* "": not known */
};

/* Connects and reads the marker. Call it before the library's client, which repairs the marker. */
void checkup_begin(struct checkup *checkup);

/* Adds the findings and disconnects. */
void checkup_node(struct checkup *checkup, struct findings *findings);

#endif
