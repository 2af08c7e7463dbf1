/*
 * Drives one lease as a lock does: carries out its updates, keeps its latest round, and checks
 * after each event the rules that always hold for every lease. The test sets the time.
 */
#ifndef REDLOCK_TEST_RIG_H
#define REDLOCK_TEST_RIG_H

#include "core/lease.h"
#include "core/permits.h"

/* Start of each lease of the tests. */
#define T0 UINT64_C(1000000000000)

struct rig {
    struct lease lease;
    struct lease_terms terms;
    uint64_t seed;                                  /* seed of the lease's jitter */
    struct ticks ticks;                             /* of the lease's renewals */
    struct quorum_lists lists;                      /* nodes that its rounds ask */
    struct round round;                             /* latest round that was sent */
    struct round_answer answers[REDLOCK_MAX_NODES]; /* its answers */
    struct permits permits;     /* free permits, as nodes report them, for a round about permits */
    struct lease_update update; /* update of the last event */
    uint64_t now;
    uint64_t counter;    /* counter of a fenced lock that nodes report with a grant */
    uint32_t busy;       /* mask of the nodes that answer earlier commands, and are not late yet */
    bool without_memory; /* whether rounds cannot be sent */
    bool is_unsent; /* whether the last round was not sent, so that lease_out_of_memory is due */

    unsigned acquired, extended, losses, released; /* numbers of notifications */
    unsigned extensions;                           /* number of extensions accepted */
    uint32_t topped_up; /* mask of the nodes topped up since the last round was sent */
    uint32_t unasked;   /* mask of the nodes that join, or have room now, by the current event */
    uint64_t best_end;  /* latest end of validity of all successful rounds */
};

/*
 * Returns terms with a TTL of 10 s, a node timeout of 50 ms, one try, and no watchdog; rig_start
 * has five nodes.
 */
struct lease_terms rig_terms(void);

void rig_start(struct rig *rig, const struct lease_terms *terms, uint64_t seed);
void rig_start_at(struct rig *rig, const struct lease_terms *terms, struct quorum_lists lists,
                  uint64_t seed);

/* Moves the lease to other nodes. */
void rig_move(struct rig *rig, struct quorum_lists lists);

/* Lets time pass, without an event. */
void rig_pass(struct rig *rig, uint64_t nanos);

/*
 * Votes for the latest round, with a letter for each node: G granted (with the rig's counter), D
 * denied, W wrong type, P no expiry, M missing, E error, - no answer in time, U unreachable, B
 * broken; a space: none yet. Notifies the lease of the verdict if the votes decided, or of late
 * votes.
 */
void rig_votes(struct rig *rig, const char *votes);
void rig_vote(struct rig *rig, uint32_t node, redlock_vote vote);

/* Makes a node push its grant, which is certain to last until `until`. */
void rig_push(struct rig *rig, uint32_t node, uint64_t until);

/*
 * Notifies the lease that late votes have come, or that they are checked for the first time: after
 * an acquisition was reported.
 */
void rig_late_votes(struct rig *rig);

/* Keeps the last top-up from `nodes`, a mask; later, gives these nodes room for it. */
void rig_without_room(struct rig *rig, uint32_t nodes);
void rig_has_room(struct rig *rig, uint32_t nodes);

/* Makes the first `nodes` nodes of the latest round report that a permit is free. */
void rig_says_free(struct rig *rig, uint32_t nodes, uint32_t permit);

/* Makes a node offer the waiter a permit that has come free there. */
void rig_offers(struct rig *rig, uint32_t node, uint32_t permit);

/* Fire the timer: now, or at the instant that the lease requested. */
void rig_wake(struct rig *rig);
void rig_wake_on_time(struct rig *rig);

void rig_out_of_memory(struct rig *rig);

/* Notify the lease that a node has come up. */
void rig_renew_now(struct rig *rig); /* all nodes are up */
void rig_renew_now_by(struct rig *rig, uint32_t up);

/* Notifies the lease that a node may have begun a new queue. */
void rig_ask_again(struct rig *rig);

/* Notify the lease that the key may have changed. */
/* at a node; at nodes that were recorded */
void rig_key_changed_at(struct rig *rig, uint32_t node);
void rig_key_changed(struct rig *rig);

redlock_status rig_cancel(struct rig *rig);
redlock_status rig_extend(struct rig *rig, uint64_t ttl);
redlock_status rig_release(struct rig *rig);
void rig_close(struct rig *rig);

/*
 * Makes a held lock renew after each 1/3 of its TTL, counted from the round that acquired it, so
 * that a test knows the instant; otherwise the instant is drawn.
 */
void rig_renew_at_the_end(struct rig *rig);

/* Makes a lease HELD by `votes`, and keeps the update of the last vote; it renews at the end. */
void rig_hold(struct rig *rig, const struct lease_terms *terms, const char *votes);

/*
 * Asserts that the last update sends a round of this kind, and nothing else, unless later
 * assertions require it.
 */
void assert_sent(const struct rig *rig, enum round_kind kind);
void assert_nothing_sent(const struct rig *rig);
void assert_state(const struct rig *rig, enum lease_state state);

#endif
