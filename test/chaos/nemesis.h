/* The faults of a run, and whether the promises' assumptions hold meanwhile. */
#ifndef REDLOCK_CHAOS_NEMESIS_H
#define REDLOCK_CHAOS_NEMESIS_H

#include <stdbool.h>
#include <stdint.h>

enum nemesis {
    PAUSE_CLIENTS,     /* SIGSTOP, SIGCONT */
    PAUSE_MASTERS,     /* SIGSTOP, SIGCONT */
    KILL_CLIENTS,      /* SIGKILL; another takes its place */
    KILL_MASTERS,      /* SIGKILL; restarted with all that it had granted */
    KILL_MASTERS_LATE, /* SIGKILL; restarted empty, after the longest TTL */
    DELAY,             /* bytes arrive late */
    DROP,              /* bytes are swallowed, in one direction or both */
    HALF_OPEN,         /* connections end on one side, and the other is not told */
    RESET,             /* connections end at once, by RST */
    CUT,               /* nothing passes; what was sent arrives when it is over, as TCP has it */
    AMNESIA,           /* most masters killed, and restarted empty at once */
    CLOCKS,            /* the wall clocks of most masters jump */
    NEMESES
};

struct nemesis_kind {
    const char *name;
    bool keeps_assumptions;
    bool needs_proxy; /* a network of namespaces cannot do it */
};

extern const struct nemesis_kind nemeses[NEMESES];

#define NEMESIS_BIT(nemesis) (UINT32_C(1) << (nemesis))

/* All that keep the assumptions. */
uint32_t nemeses_by_default(bool hosts);

/* The one of this name, or NEMESES. */
enum nemesis nemesis_named(const char *name);

#endif
