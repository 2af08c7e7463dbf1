/*
 * Inspection of a key that this client need not hold: its holder, its waiters and its counters, as
 * the nodes report them. Pure: the caller asks the nodes, and reads their answers.
 *
 * A value that a quorum has is the holder's; if no value can reach a quorum, there is no holder.
 * Every fence that was given to a holder has a quorum of counters at least as large; a failed try
 * may leave larger counters on fewer nodes.
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

/* A waiter for the key. */
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

/* The first waiters in the queue of a node. */
struct survey_entries {
    uint32_t count;
    struct survey_waiter waiters[REDLOCK_MAX_QUEUE_OWNERS];
};

struct survey_answer {
    enum survey_state state;
    size_t length;                /* of the whole value: values of foreign clients may be longer */
    char value[SURVEY_VALUE_MAX]; /* the beginning of the value, any bytes */
    char owner[SURVEY_OWNER_MAX + 1]; /* the part after the token, as text; "": none */
    uint64_t ttl_ms;                  /* HELD */
    uint64_t fence;                   /* the counter; 0: none */
    uint32_t readers;                 /* HELD: the number of readers that share the key */
    uint32_t queue_length;            /* the number of entries in the queue */
};

struct survey {
    struct quorum_lists lists;
    struct survey_answer answers[REDLOCK_MAX_NODES];
    struct survey_entries *entries; /* the caller's, for each node; NULL: no waiters wanted */
};

struct survey_verdict {
    bool is_certain; /* the silent nodes could not change the verdict */
    bool is_held;
    uint32_t node;    /* one of the nodes that hold the key */
    uint64_t ttl_ms;  /* the time for which a quorum holds the key */
    uint64_t fence;   /* the first of the newest range that a quorum of counters has reached */
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
 * Writes the waiters that a quorum of the list names, each once, in the order of their tickets.
 * `survey->entries` must be set.
 */
void survey_waiters(const struct survey *survey, struct survey_queue *queue);

/*
 * Compares a fence with the counters. Returns REDLOCK_OK if no holder was given a fence of a later
 * range, REDLOCK_ELOST if a quorum of the counters is beyond the range of `fence`, and
 * REDLOCK_ENOQUORUM if too few nodes have answered to decide.
 */
redlock_status survey_check_fence(const struct survey *survey, uint64_t fence);

/* Records the value of the key at a node, and its owner. Both are copied, and cut if too long. */
void survey_record_value(struct survey_answer *answer, const char *bytes, size_t length);

/*
 * Records the next waiter at a node, of at most REDLOCK_MAX_QUEUE_OWNERS. The value is copied, and
 * cut if too long.
 */
void survey_record_waiter(struct survey_entries *entries, uint64_t ticket, const char *bytes,
                          size_t length);

#endif
