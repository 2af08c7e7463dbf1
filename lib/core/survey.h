/*
 * Inspection of a key that is not ours to change: its holder, and how far its counters have come,
 * as the nodes tell them. Pure: the caller asks, and reads the answers.
 *
 * A value that a quorum has is that of the holder; if no value can reach a quorum, there is none.
 * Behind each fence that a holder was told stands a quorum of counters at least as large; a try
 * that failed may leave larger ones on fewer nodes.
 */
#ifndef REDLOCK_CORE_SURVEY_H
#define REDLOCK_CORE_SURVEY_H

#include "core/quorum.h"

#include <redlock.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The longest value of our own: a token, '/', and an owner of 64 bytes. */
#define SURVEY_VALUE_MAX (40 + 1 + 64)
#define SURVEY_OWNER_MAX 64

/* One of those who wait for the key. */
struct survey_waiter {
    uint64_t ticket;
    size_t length;
    char value[SURVEY_VALUE_MAX];
};

enum survey_state {
    SURVEY_SILENT, /* no answer, yet or at all */
    SURVEY_FREE,   /* no key */
    SURVEY_HELD,   /* a key with a value and an expiry */
    SURVEY_NO_LOCK /* a key without expiry, or one that is no string */
};

/* The first in the queue at a node. */
struct survey_entries {
    uint32_t count;
    struct survey_waiter waiters[REDLOCK_MAX_QUEUE_OWNERS];
};

struct survey_answer {
    enum survey_state state;
    size_t length;                    /* of the whole value: other clients' values may be longer */
    char value[SURVEY_VALUE_MAX];     /* the beginning of the value, any bytes */
    char owner[SURVEY_OWNER_MAX + 1]; /* the part behind the token, as text; "": none */
    uint64_t ttl_ms;                  /* HELD */
    uint64_t fence;                   /* the counter; 0: none */
    uint32_t readers;                 /* HELD: the number of readers that share the key */
    uint32_t queue_length;            /* the number of entries in the queue */
};

struct survey {
    struct quorum_lists lists;
    struct survey_answer answers[REDLOCK_MAX_NODES];
    struct survey_entries *entries; /* the caller's, for each node; NULL: nobody asks who waits */
};

struct survey_verdict {
    bool is_certain; /* the silent nodes could not change the verdict */
    bool is_held;
    uint32_t node;    /* one of the nodes that hold the key */
    uint64_t ttl_ms;  /* the time for which a quorum holds the key */
    uint64_t fence;   /* the largest number that a quorum of the counters has reached */
    uint32_t readers; /* the number of readers that a quorum of the holding nodes has */
};

/* Decides who holds the key, by the list alone. */
struct survey_verdict survey_decide(const struct survey *survey);

struct survey_queue {
    uint32_t length; /* the largest number of entries that a quorum has; at least `owner_count` */
    uint32_t owner_count;
    char owners[REDLOCK_MAX_QUEUE_OWNERS][SURVEY_OWNER_MAX + 1]; /* as text; "": none */
};

/*
 * Tells who stands in the queue, by the list alone: the waiters that a quorum names, each once, by
 * their tickets. `survey->entries` must be there.
 */
void survey_waiters(const struct survey *survey, struct survey_queue *queue);

/*
 * Compares a fence with the counters. Returns REDLOCK_OK if no holder was told a larger fence,
 * REDLOCK_ELOST if a quorum of the counters is beyond it, REDLOCK_ENOQUORUM if too few nodes have
 * answered to decide.
 */
redlock_status survey_check_fence(const struct survey *survey, uint64_t fence);

/* Records the value of the key at a node, and the owner in it; both are copied, and cut if long. */
void survey_record_value(struct survey_answer *answer, const char *bytes, size_t length);

/* Records the next waiter at a node, of REDLOCK_MAX_QUEUE_OWNERS at most; the value is copied. */
void survey_record_waiter(struct survey_entries *entries, uint64_t ticket, const char *bytes,
                          size_t length);

#endif
