/*
 * The quorum collector: one command to every node, and the votes until they decide.
 *
 * A round decides as early as its votes allow, in one of three ways. YES: a quorum granted the
 * command. GONE: so many nodes reported that the key is not ours that no quorum can have it. NO:
 * the nodes that have not voted can bring about neither. Later votes are still recorded, because
 * they show the state of their nodes, but the verdict stays. This module is pure: the caller sends,
 * and reads the clock.
 *
 * While the list of nodes is being changed, YES takes a quorum of the list and one of the next
 * list. The list alone decides whether the key is gone, and whether a release found it, because the
 * next list need not have the key yet.
 */
#ifndef REDLOCK_CORE_ROUND_H
#define REDLOCK_CORE_ROUND_H

#include "core/quorum.h"

#include <redlock.h>
#include <stdbool.h>
#include <stdint.h>

struct permits;

enum round_kind {
    ROUND_ACQUIRE, /* SET NX */
    ROUND_QUEUE,   /* takes the key or a queue entry: nodes that denied may push a grant */
    ROUND_RAISE,   /* compare, set the expiry, raise the counter of a fenced lock */
    ROUND_RENEW,   /* compare and set the expiry; for a fenced lock the command of RAISE */
    ROUND_RELEASE, /* compare and delete */
    ROUND_DIAGNOSE /* releases a failed try; over when the nodes that denied it have reported what
                      they hold; a quorum means nothing here */
};

enum round_verdict { ROUND_OPEN, ROUND_YES, ROUND_GONE, ROUND_NO };

/* The counts of one list's votes until the verdict. */
struct tally {
    uint32_t members; /* mask */
    uint32_t size;    /* number of members */
    uint32_t silent;  /* number of members that have not voted */
    uint32_t granted; /* number of grants */
    uint32_t gone;    /* number of members that reported that the key is not ours */
};

/* The part of an answer that most answers lack. */
struct round_answer {
    uint64_t fence;        /* GRANTED: the node's counter; 0: none */
    uint32_t other_ttl_ms; /* DENIED: the remaining TTL of the other holder */
    uint32_t stands_ms;    /* QUEUE, pushed: ms after `start` until which the node is certain to
                              keep the key */
};

/* The silent members of a round, each by its own timeout. */
struct round_silence {
    uint32_t late; /* mask: those whose time is over */
    uint64_t next; /* the next instant at which another one may be late; NANOS_NEVER: none */
};

/* In the order of use: recording and counting a vote touches the first 64 bytes. */
struct round {
    uint8_t kind;    /* enum round_kind */
    uint8_t verdict; /* enum round_verdict */
    uint8_t tally_count;
    bool doubts_denials;              /* QUEUE: a DENIED counts only if a DIAGNOSE confirms it */
    uint32_t silent;                  /* mask: members that have not voted */
    uint32_t answered;                /* mask: members with an entry in `answers` */
    struct tally tallies[2];          /* of the list, and of the next list */
    uint8_t votes[REDLOCK_MAX_NODES]; /* redlock_vote */
    uint32_t members;                 /* mask: nodes that count */
    uint32_t ahead;                   /* QUEUE: the largest number of waiters ahead at a member */
    union {
        uint32_t awaited;   /* DIAGNOSE: mask: the members that it waits for */
        uint32_t left_free; /* QUEUE: mask: members that left the key free: they do not count */
    };
    uint64_t start; /* a clock reading from before the first byte was queued */
    uint64_t ttl;
    uint64_t usable_until;        /* the lease's: the instant from which the round is useless */
    uint64_t sent_at;             /* the instant at which the command was written to the sockets */
    uint64_t late_at;             /* the earliest instant at which a silent member is late */
    uint64_t timeout;             /* the time after which a member became a TIMEOUT; 0: none */
    uint32_t queued;              /* mask: QUEUE: members that have an entry for the waiter */
    uint32_t pushed;              /* mask: QUEUE: members that granted by a push */
    uint32_t refusing;            /* mask: members whose votes report that they refuse the client */
    uint32_t changed;             /* mask: members whose key may have changed since they voted */
    struct permits *permits;      /* ACQUIRE of a permit: the free permits; otherwise NULL */
    struct round_answer *answers; /* of members, by node */
    uint64_t extension_ttl;       /* RENEW: of the extension that follows this round; 0: none */
    uint64_t fence_limit; /* the largest fence that one node alone can raise others to; 0: any */
};

/* Returns the number of answers that a round of these lists needs room for. */
static inline uint32_t round_indexes(struct quorum_lists lists) {
    return 32 - (uint32_t)__builtin_clz(lists.now | lists.next);
}

/* Returns whether only the number of the grants matters, not their order, values or times. */
static inline bool round_is_plain(const struct round *round) {
    return round->kind == ROUND_ACQUIRE || round->kind == ROUND_RELEASE;
}

/*
 * Begins a round at all nodes of `lists`. ROUND_DIAGNOSE waits for `awaited`, a mask; the other
 * kinds ignore it. `answers` has room for round_indexes(lists). For a permit, the caller sets
 * `permits` afterwards.
 */
void round_begin(struct round *round, struct round_answer *answers, enum round_kind kind,
                 struct quorum_lists lists, uint64_t start, uint64_t ttl, uint32_t awaited);

/*
 * Records a node's vote, and returns whether it decided the round. A second vote of a node only
 * replaces a TIMEOUT; if it is a grant, it is recorded as LATE. Votes after the verdict do not
 * change it; they count in the report, and for which nodes to release.
 */
bool round_vote(struct round *round, uint32_t node, redlock_vote vote, uint32_t other_ttl_ms);

/* Records, before the node's vote, that it refuses the client: its login, or lacking a right. */
static inline void round_record_refusing(struct round *round, uint32_t node) {
    round->refusing |= UINT32_C(1) << node;
}

/* Returns what a node has answered in addition to its vote; all fields are 0 if nothing. */
struct round_answer round_answer(const struct round *round, uint32_t node);

/* Records the value of the lock's counter at a node, before the node's vote. */
void round_record_fence(struct round *round, uint32_t node, uint64_t fence);

/* Records the vote REDLOCK_VOTE_GRANTED, with the value of the lock's counter at the node. */
bool round_grant(struct round *round, uint32_t node, uint64_t fence);

/* Records, before its UNTRUSTED, that a node left the key free: it was asked for an entry only. */
static inline void round_record_left_free(struct round *round, uint32_t node) {
    round->left_free |= UINT32_C(1) << node;
}

/* Records, before the DENIED of a QUEUE, an entry at the node with `ahead` waiters before it. */
void round_mark_queued(struct round *round, uint32_t node, uint32_t ahead);

/* Returns whether the round is an open QUEUE, in which the node may still grant by a push. */
bool round_awaits_push(const struct round *round, uint32_t node);

/*
 * Records that a node from which a push is awaited leaves the key open to all for `open_ms`, after
 * which this waiter, the first in the queue, should ask again.
 */
void round_record_open(struct round *round, uint32_t node, uint32_t open_ms);

/* Records that the key may have changed at a node, a mask, until its next vote. */
static inline void round_record_changed(struct round *round, uint32_t node) {
    round->changed |= node & round->members;
}

/* Takes back the vote of a node from which a push is awaited: the push casts another. */
void round_withdraw(struct round *round, uint32_t node);

/*
 * Takes back each DENIED of an open QUEUE, which may be about the client's own earlier token, and
 * doubts those that are still to come.
 */
void round_doubt_denials(struct round *round);

/*
 * Records a grant that was pushed by a node from which a push is awaited, with the value of the
 * lock's counter there (0: none) and the instant until which the node is certain to keep the key.
 * Returns whether this decided the round.
 */
bool round_push(struct round *round, uint32_t node, uint64_t fence, uint64_t until);

/* Returns a mask of the nodes whose grant, in time or late, may still count for a decision. */
uint32_t round_grants(const struct round *round);

/*
 * Takes back a grant of round_grants, because its node may have lost the key: the vote becomes
 * UNTRUSTED. Returns whether this decided the round, as NO.
 */
bool round_void(struct round *round, uint32_t node);

/*
 * Returns the instant until which a quorum of each list is certain to keep the key, after a YES of
 * QUEUE. `end` is the end of the grants that were given at once.
 */
uint64_t round_certain_until(const struct round *round, uint64_t end);

/*
 * Returns the time in ms, as reported by the nodes that denied, after which enough keys have
 * expired for a quorum of the list to grant. UINT32_MAX: that takes nodes that have reported
 * nothing.
 */
uint32_t round_free_in_ms(const struct round *round);

/* Returns whether the command may not have been carried out: a release is then sent again. */
static inline bool round_vote_leaves_undone(redlock_vote vote) {
    const uint32_t undone = UINT32_C(1) << REDLOCK_VOTE_UNREACHABLE |
                            UINT32_C(1) << REDLOCK_VOTE_REFUSED |
                            UINT32_C(1) << REDLOCK_VOTE_BROKEN | UINT32_C(1) << REDLOCK_VOTE_ERROR;
    return undone >> vote & 1;
}

/*
 * Returns the fence to raise to: the largest counter within `fence_limit` of the nodes that
 * granted, or the smallest one if all are beyond it. 0: none.
 */
uint64_t round_fence(const struct round *round);

/*
 * Returns the smallest counter that was reported with the ERROR of a RAISE because it was beyond
 * the limit and the fence. 0: none.
 */
uint64_t round_fence_beyond(const struct round *round);

/* Returns whether a quorum of each list granted with exactly this counter. */
bool round_agrees(const struct round *round, uint64_t fence);

/*
 * Records a TIMEOUT for each silent member of `late`, a mask. When no member is silent any more,
 * the round is decided, unless it is a QUEUE that these nodes may still complete.
 */
void round_expire(struct round *round, uint32_t late, uint64_t now);

/*
 * Returns whether the round is decided and a quorum of the list granted; the next list is ignored.
 */
bool round_was_kept(const struct round *round);

/*
 * Returns whether the round ended as NO, but later grants made a quorum of each list. For a renewal
 * that is as good as a YES: validity counts from the round's start.
 */
bool round_was_granted_late(const struct round *round);

/*
 * Returns whether a quorum needs nodes that have not voted, even if all failed nodes granted the
 * next time. Such a renewal need not be sent again: nodes answer in order.
 */
bool round_needs_silent(const struct round *round);

/*
 * Returns whether a round sent now may succeed without the silent nodes: those that have granted,
 * and those of `up` whose vote was no answer about the key (ERROR, UNREACHABLE, REFUSED, BROKEN,
 * UNTRUSTED), include a quorum of each list.
 */
bool round_is_completed_by(const struct round *round, uint32_t up);

/* Returns whether `nodes`, a mask, include a quorum of each list of the round. */
bool round_has_quorum(const struct round *round, uint32_t nodes);

/* Returns a mask of the nodes with this vote. */
uint32_t round_voters(const struct round *round, redlock_vote vote);

/* Returns a mask of the nodes that the command was not sent to. */
uint32_t round_unsent(const struct round *round);

/* Returns a mask of the nodes whose key is another holder's, or is no lock at all. */
uint32_t round_deniers(const struct round *round);

/*
 * Returns a mask of the nodes that may hold the key after ACQUIRE: all but those that denied and
 * those that the command was not sent to. After QUEUE, nodes that denied are included, because they
 * may hold an entry.
 */
uint32_t round_possible_holders(const struct round *round);

#endif
