/*
 * The quorum collector: one command to every node, and the votes until they decide.
 *
 * A round decides as early as its votes allow, in one of three ways: a quorum did it (YES); so many
 * nodes said that the key is not ours that no quorum can have it (GONE); or the rest cannot make it
 * either (NO). Votes that come after that are still written down, for what they tell of the node,
 * but the verdict stays. Pure: the caller sends, and reads the clock.
 *
 * While the list of nodes is being changed, YES takes a quorum of the list and of the next one.
 * Whether the key is gone, and whether a release found it, is known from the list alone: the next
 * one need not have it yet.
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
    ROUND_RAISE,   /* of a fenced lock: compare, set the expiry, raise the counter */
    ROUND_RENEW,   /* compare and set the expiry; of a fenced lock, as RAISE */
    ROUND_RELEASE, /* compare and delete */
    ROUND_SETTLE   /* a release after a failed try: nobody asks whether a quorum had the key; it
                      is over when the nodes that denied have said what they hold */
};

enum round_verdict { ROUND_OPEN, ROUND_YES, ROUND_GONE, ROUND_NO };

/* The votes of one list, counted. */
struct tally {
    uint32_t members; /* mask */
    uint32_t size;
    uint32_t silent;
    uint32_t granted; /* how many did it */
    uint32_t gone;    /* how many said that the key is not ours */
};

struct round {
    enum round_kind kind;
    enum round_verdict verdict;
    uint64_t start; /* a clock reading from before the first byte was queued */
    uint64_t ttl;
    uint32_t members; /* mask: nodes that are asked */
    uint32_t silent;  /* mask: those of them that have not voted */
    uint32_t awaited; /* mask: SETTLE waits for these only */
    unsigned tally_count;
    struct tally tallies[2];                  /* of the list, and of the next one */
    uint8_t votes[REDLOCK_MAX_NODES];         /* redlock_vote */
    uint32_t other_ttl_ms[REDLOCK_MAX_NODES]; /* DENIED: what the holder's key has left */
    uint64_t fences[REDLOCK_MAX_NODES];       /* GRANTED: the node's counter; 0: it told none */
    struct permits *permits;                  /* ACQUIRE of a permit: which are free; else NULL */
};

/*
 * Begins a round of any kind; ROUND_SETTLE waits for `awaited`, the others ignore it. It is not
 * about permits unless the caller sets `permits` afterwards.
 */
void round_begin(struct round *round, enum round_kind kind, struct quorum_lists lists,
                 uint64_t start, uint64_t ttl, uint32_t awaited);

/*
 * Writes down a node's vote; a second vote of the same node replaces a TIMEOUT and nothing else:
 * what comes late does not change the verdict, but is seen by who asks why, and whom to release. A
 * grant that does so is written down as LATE. True when this vote was the one that decided the
 * round.
 */
bool round_vote(struct round *round, uint32_t node, redlock_vote vote, uint32_t other_ttl_ms);

/* The same for REDLOCK_VOTE_GRANTED, with the number that the lock's counter has there. */
bool round_grant(struct round *round, uint32_t node, uint64_t fence);

/*
 * Fences: the largest counter of those that granted it; and whether a quorum (of each list) granted
 * it with just that counter.
 */
uint64_t round_fence(const struct round *round);
bool round_agrees(const struct round *round, uint64_t fence);

/* The per-node timeout: whoever is silent has voted TIMEOUT. The round is decided after this. */
void round_expire(struct round *round);

/* Whether it is decided, and a quorum of the list did it, whatever the next one said. */
bool round_was_kept(const struct round *round);

/*
 * Whether a quorum (of each list) did it, with those that said so when the round had ended as NO.
 * For a renewal that is as good as a yes: validity counts from its start.
 */
bool round_was_granted_late(const struct round *round);

/*
 * Whether a quorum takes nodes that have not voted, even if each that failed did it next time. Such
 * a renewal need not be sent again: nodes answer in order.
 */
bool round_needs_silent(const struct round *round);

/* Returns whether `nodes`, a mask, include a quorum of the list, and of the next one. */
bool round_has_quorum(const struct round *round, uint32_t nodes);

/* A mask of the nodes that voted so. */
uint32_t round_voters(const struct round *round, redlock_vote vote);

/* A mask of the nodes that said that the key is somebody else's, or no lock at all. */
uint32_t round_deniers(const struct round *round);

/* ACQUIRE: a mask of the nodes that may hold the key for us: all that did not definitely deny. */
uint32_t round_possible_holders(const struct round *round);

#endif
