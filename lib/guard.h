/*
 * What a node is asked about itself, so that it can be told whether its votes count (core/trust.h):
 * INFO on each new connection, and a beat, which reads its clock and its marker, once a second.
 * They stand in the same order as all else that a node is sent: whoever is granted a key knows from
 * the answer before it whether that counts.
 */
#ifndef REDLOCK_GUARD_H
#define REDLOCK_GUARD_H

#include "core/trust.h"
#include "io/net.h"

#include <redlock.h>
#include <stdbool.h>
#include <stdint.h>

/* How often a node is asked for its time. */
#define GUARD_BEAT_NANOS (1000 * NANOS_PER_MS)

/* The most beats that may wait for their answers: a slow node is asked all the same. */
#define GUARD_BEATS_MAX 8

struct node;

enum guard_question {
    GUARD_SERVER,
    GUARD_REPLICATION,
    GUARD_MEMORY, /* for a warning only */
    GUARD_BEAT,
    GUARD_QUESTION_COUNT
};

/* One of each question, and more beats. */
#define GUARD_ASKED_MAX (GUARD_BEAT + GUARD_BEATS_MAX)

struct guard_asked {
    struct conn_request request;
    struct guard *guard;
    enum guard_question question;
    bool is_pending;
    bool has_text; /* of a beat: the script's */
};

struct guard {
    struct node *node;
    struct trust trust;
    uint64_t sound_until;   /* nothing is wrong until then, or until something else is heard */
    bool was_told;          /* that something is wrong: to the log */
    bool has_warned;        /* of its eviction policy */
    uint64_t beaten_at;     /* when the last beat was sent */
    uint64_t asked_role_at; /* when it was last asked for its role */
    char why[192];
    struct guard_asked asked[GUARD_ASKED_MAX];
};

void guard_init(struct guard *guard, struct node *node);

/* Asks all of it on the node's new connection, which is closed if it cannot be sent. */
void guard_connected(struct guard *guard, uint64_t now);

/* Sends a beat if the last one was sent so long ago. The node is up. */
void guard_beat(struct guard *guard, uint64_t now, uint64_t ago);

/* Its node is none any more: a twin of it is alone now. */
void guard_left(struct guard *guard);

/* What to make of the node's votes now. */
struct trust_view guard_look(const struct guard *guard);

/* What to make of the vote that is being delivered, by the instant at which it had arrived. */
struct trust_view guard_judge(const struct guard *guard);

/* In how many ms that will be over, rounded up; 0 where no time will mend it, or none has to. */
uint64_t guard_distrust_ms(const struct trust_view *view);

/* Why: "" when they count. Valid until it is asked again, or the node is freed. */
const char *guard_why(struct guard *guard);

#endif
