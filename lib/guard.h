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

struct node;

enum guard_question {
    GUARD_SERVER,
    GUARD_REPLICATION,
    GUARD_MEMORY, /* for a warning only */
    GUARD_BEAT,
    GUARD_QUESTION_COUNT
};

struct guard_asked {
    struct conn_request request;
    struct guard *guard;
    enum guard_question question;
    bool is_pending;
};

struct guard {
    struct node *node;
    struct trust trust;
    bool is_sound;      /* nothing is wrong: stays so until something else is heard */
    bool was_told;      /* that something is wrong: to the log */
    bool has_warned;    /* of its eviction policy */
    bool is_repeated;   /* the last beat, with its text */
    uint64_t beaten_at; /* when the last beat was sent */
    char why[192];
    struct guard_asked asked[GUARD_QUESTION_COUNT];
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

/* In how many ms that will be over, rounded up; 0 where no time will mend it, or none has to. */
uint64_t guard_distrust_ms(const struct trust_view *view);

/* Why: "" when they count. Valid until it is asked again, or the node is freed. */
const char *guard_why(struct guard *guard);

#endif
