/* The faults of a run, and whether the assumptions of the promises hold under them. */
#ifndef REDLOCK_CHAOS_NEMESIS_H
#define REDLOCK_CHAOS_NEMESIS_H

#include <stdbool.h>
#include <stdint.h>

enum nemesis {
    PAUSE_CLIENTS,     /* SIGSTOP, SIGCONT */
    PAUSE_MASTERS,     /* SIGSTOP, SIGCONT */
    KILL_CLIENTS,      /* SIGKILL; another client replaces it */
    KILL_MASTERS,      /* SIGKILL; restarted with all granted keys */
    KILL_MASTERS_LATE, /* SIGKILL; restarted empty, after the longest TTL */
    DELAY,             /* bytes arrive late */
    DROP,              /* bytes are dropped, in one direction or both */
    HALF_OPEN,         /* connections end on one side without notice to the other */
    RESET,             /* connections end at once, by RST */
    CUT,               /* nothing passes; sent bytes arrive after the cut, as with TCP */
    AMNESIA,           /* most masters killed, and restarted empty at once */
    CLOCKS,            /* the wall clocks of most masters jump */
    NEMESES
};

struct nemesis_kind {
    const char *name;
    bool keeps_assumptions;
    bool needs_proxy; /* not available in a network of namespaces */
};

extern const struct nemesis_kind nemeses[NEMESES];

#define NEMESIS_BIT(nemesis) (UINT32_C(1) << (nemesis))

/* Returns the mask of the nemeses that keep the assumptions. */
uint32_t nemeses_by_default(bool hosts);

/* Returns the nemesis of this name, or NEMESES. */
enum nemesis nemesis_named(const char *name);

#endif
