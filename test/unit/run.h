/*
 * The life of a lease as a table: each row is an event and its effects.
 *
 * A row expects exactly the effects that it names: what it does not name must not happen. Only
 * values (state, time, validity, fence, tries, may_hold) are not checked when they are 0.
 */
#ifndef REDLOCK_TEST_RUN_H
#define REDLOCK_TEST_RUN_H

#include "rig.h"

#define ROWS_MAX 12

/* Masks of nodes. */
#define NODE(number) (UINT32_C(1) << (number))
#define ALL_NODES 0x1f

enum row_event {
    END,       /* the run is over */
    PASS,      /* `ms` pass */
    VOTES,     /* nodes vote as in `votes` (rig_votes), with `counter` */
    DENY,      /* `nodes` deny, with an entry after `ahead` others; their holder's TTL is `ms` */
    PUSH,      /* `nodes` push their grant, certain for `ms`, with `counter` */
    CHANGE,    /* `nodes` notify, one after the other, that the key may have changed */
    OPEN,      /* `nodes` leave the key to anybody for `ms` */
    JOIN,      /* nodes have begun new queues: the entry is asked for again */
    TIMER,     /* the timer fires on time */
    EARLY,     /* the timer fires at once */
    NO_MEMORY, /* from now on rounds cannot be sent */
    UNSENT,    /* the round of the last row was not sent */
    CANCEL,    /* the application cancels */
    CLOSE      /* the client closes */
};

/* A round that a row sends; 0: none. */
#define SENDS(kind) (ROUND_##kind + 1)

struct row {
    enum row_event event;
    const char *votes;
    uint32_t nodes;
    uint32_t ahead;
    uint64_t ms;
    uint64_t counter;

    /* The effects. */
    enum lease_state state; /* 0: the same as before */
    int sends;
    bool keeps_token, watches;
    uint32_t undo;      /* mask of nodes */
    uint32_t awaited;   /* mask of the nodes that DIAGNOSE waits for */
    unsigned notifies;  /* mask of enum lease_notification */
    redlock_status why; /* the status of the notification */

    /* Values after the event; times in ms from now. */
    uint64_t wakes_from, wakes_to; /* range of the next instant of the timer */
    bool wakes_as_before;          /* the event does not move the timer */
    bool wakes_to_poll;            /* the timer is set to the poll that was planned */
    uint64_t validity, fence;
    uint32_t tries;
    uint32_t may_hold; /* mask of nodes */
    uint32_t late;     /* mask of the nodes that have not answered in time */
};

/* Effects that often come together. */
#define WAKES_IN(from, to) .wakes_from = (from), .wakes_to = (to)
#define IS_HELD .state = LEASE_HELD, .notifies = LEASE_ACQUIRED
#define IS_RAISED .state = LEASE_RAISING, .sends = SENDS(RAISE)
#define ASKS_AGAIN .state = LEASE_ACQUIRING, .sends = SENDS(QUEUE), .keeps_token = true
#define FAILS(status) .state = LEASE_OVER, .notifies = LEASE_ACQUIRED, .why = (status)

/* Two rows: 2 ms later all five nodes deny, with an entry after a number of others; the effects. */
#define QUEUED_AFTER(...)                                                                          \
    {.event = PASS, .ms = 2}, {                                                                    \
        .event = DENY, .nodes = ALL_NODES, .state = LEASE_QUEUED, .ahead = __VA_ARGS__             \
    }

struct run {
    const char *name;
    struct lease_terms terms;  /* fields other than 0 replace those of the base */
    struct quorum_lists lists; /* 0: five nodes, one list */
    struct row rows[ROWS_MAX];
};

/* Makes a test of each run, with its name. `base` are the terms without a run's own. */
void run_make_tests(struct CMUnitTest *tests, const struct run *runs, size_t count,
                    const struct lease_terms *base);

#endif
