/*
 * What the nodes say of a key that is not ours to change: who holds it, and how far its counters
 * have come. Pure: the caller asks, and reads the answers.
 *
 * A quorum that holds the same value is a holder; where no value can reach a quorum, nobody is.
 * Whoever was told a fence has a quorum of counters that are at least as large; a try that failed
 * may leave larger ones on fewer nodes.
 */
#ifndef REDLOCK_CORE_SURVEY_H
#define REDLOCK_CORE_SURVEY_H

#include "core/quorum.h"

#include <redlock.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A token, '/', and an owner of 64. */
#define SURVEY_VALUE_MAX (40 + 1 + 64)
#define SURVEY_OWNER_MAX 64

enum survey_state {
    SURVEY_SILENT, /* no answer, yet or at all */
    SURVEY_FREE,   /* the key is not there */
    SURVEY_HELD,   /* it is, with a value */
    SURVEY_NO_LOCK /* it is, but without expiry, or it is no string */
};

struct survey_answer {
    enum survey_state state;
    size_t length;                    /* of the value: any bytes, another client's may be longer */
    char value[SURVEY_VALUE_MAX];     /* cut */
    char owner[SURVEY_OWNER_MAX + 1]; /* the part behind the token, as text; "" */
    uint64_t ttl_ms;                  /* HELD */
    uint64_t fence;                   /* the counter; 0: none */
    uint32_t readers;                 /* HELD: how many share it */
};

struct survey {
    struct quorum_lists lists;
    struct survey_answer answers[REDLOCK_MAX_NODES];
};

struct survey_verdict {
    bool is_certain; /* the nodes that are silent could not change it */
    bool is_held;
    uint32_t node;    /* one of those that hold it */
    uint64_t ttl_ms;  /* for how long a quorum holds it */
    uint64_t fence;   /* what a quorum of the counters has reached */
    uint32_t readers; /* so many a quorum has, of those that hold it */
};

struct survey_verdict survey_decide(const struct survey *survey);

/*
 * REDLOCK_OK: nobody was told a larger fence; REDLOCK_ELOST: a quorum of the counters is beyond it;
 * REDLOCK_ENOQUORUM: too few have answered to tell.
 */
redlock_status survey_check_fence(const struct survey *survey, uint64_t fence);

/* Notes the value that a node has. */
void survey_note_value(struct survey_answer *answer, const char *bytes, size_t length);

#endif
