/*
 * Drives one lease as a lock does: carries out its updates, keeps its latest round, and checks
 * after every event what must hold for every lease at any time. Time is what the test says.
 */
#ifndef REDLOCK_TEST_RIG_H
#define REDLOCK_TEST_RIG_H

#include "core/lease.h"
#include "core/permits.h"

/* When every lease of the tests begins. */
#define T0 UINT64_C(1000000000000)

struct rig {
    struct lease lease;
    struct quorum_lists lists;  /* whom its rounds ask */
    struct round round;         /* the latest one that was sent */
    struct permits permits;     /* what its nodes say is free, where it is about permits */
    struct lease_update update; /* what the last event led to */
    uint64_t now;
    uint64_t counter;    /* what nodes tell of a fenced lock's counter when they grant it */
    bool without_memory; /* rounds cannot be sent */
    bool is_unsent;      /* the last one was not: lease_out_of_memory is due */

    unsigned acquired, extended, losses, released; /* how often each was told */
    unsigned extensions;                           /* how many were accepted */
    uint32_t topped_up;                            /* since the last round was sent */
    uint32_t joining;                              /* by the event that is carried out */
    uint64_t best_end; /* the largest end of validity that any round that succeeded gave */
};

/* Five nodes, 10 s of TTL, 50 ms for a node, one try, no watchdog. */
struct lease_terms rig_terms(void);

void rig_start(struct rig *rig, const struct lease_terms *terms, uint64_t seed);
void rig_start_at(struct rig *rig, const struct lease_terms *terms, struct quorum_lists lists,
                  uint64_t seed);

/* From now on these nodes are asked. */
void rig_move(struct rig *rig, struct quorum_lists lists);

/* Lets time pass, without an event. */
void rig_pass(struct rig *rig, uint64_t nanos);

/*
 * Votes for the latest round, a letter a node: G granted (with the rig's counter), D denied, W
 * wrong type, P no expiry, M missing, E error, U unreachable, B broken; a space: none yet. Tells
 * the lease the verdict, if they decided, or that late votes came.
 */
void rig_votes(struct rig *rig, const char *votes);
void rig_vote(struct rig *rig, uint32_t node, redlock_vote vote);

/* Late votes have come, or are looked at for the first time: after an acquisition was told. */
void rig_late_votes(struct rig *rig);

/* So many nodes, from the first on, say that a permit is free, in the latest round. */
void rig_says_free(struct rig *rig, uint32_t nodes, uint32_t permit);

/* The timer fires: now, or when the lease wanted it. */
void rig_wake(struct rig *rig);
void rig_wake_on_time(struct rig *rig);

void rig_out_of_memory(struct rig *rig);

/* A node has come up. */
void rig_hurry(struct rig *rig);

redlock_status rig_cancel(struct rig *rig);
redlock_status rig_extend(struct rig *rig, uint64_t ttl);
redlock_status rig_release(struct rig *rig);
void rig_close(struct rig *rig);

/*
 * Has a held lock renew at the end of each third of its TTL, counted from the round that acquired
 * it, so that a test can say when; else the instant is drawn.
 */
void rig_renew_at_the_end(struct rig *rig);

/* A lease that `votes` made HELD, with the update of that; it renews at the end. */
void rig_hold(struct rig *rig, const struct lease_terms *terms, const char *votes);

/* The last update sends such a round, and nothing else but what is asked for next. */
void assert_sent(const struct rig *rig, enum round_kind kind);
void assert_nothing_sent(const struct rig *rig);
void assert_state(const struct rig *rig, enum lease_state state);

#endif
