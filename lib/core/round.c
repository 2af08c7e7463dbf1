#include "core/round.h"

#include <assert.h>
#include <string.h>

static struct tally tally_of(uint32_t members) {
    uint32_t size = (uint32_t)__builtin_popcount(members);
    return (struct tally){.members = members, .size = size, .silent = size};
}

void round_begin(struct round *round, enum round_kind kind, struct quorum_lists lists,
                 uint64_t start, uint64_t ttl, uint32_t awaited) {
    assert(lists.now != 0);
    bool is_joint = lists.next != 0 && kind != ROUND_RELEASE;
    round->kind = kind;
    round->start = start;
    round->ttl = ttl;
    round->members = lists.now | lists.next;
    round->silent = round->members;
    round->awaited = awaited & round->members;
    round->tallies[0] = tally_of(lists.now);
    round->tally_count = 1;
    if (is_joint) {
        round->tallies[1] = tally_of(lists.next);
        round->tally_count = 2;
    }
    round->verdict = kind == ROUND_SETTLE && round->awaited == 0 ? ROUND_YES : ROUND_OPEN;
    memset(round->votes, REDLOCK_VOTE_NONE, sizeof(round->votes));
    memset(round->other_ttl_ms, 0, sizeof(round->other_ttl_ms));
    round->permits = NULL;
}

static bool says_not_ours(redlock_vote vote) {
    return vote == REDLOCK_VOTE_DENIED || vote == REDLOCK_VOTE_WRONG_TYPE ||
           vote == REDLOCK_VOTE_NO_EXPIRY || vote == REDLOCK_VOTE_MISSING;
}

static enum round_verdict decide(const struct round *round) {
    if (round->kind == ROUND_SETTLE) {
        return (round->silent & round->awaited) == 0 ? ROUND_YES : ROUND_OPEN;
    }
    bool is_yes = true;
    bool may_be_yes = true;
    for (unsigned i = 0; i < round->tally_count; i++) {
        const struct tally *tally = &round->tallies[i];
        is_yes &= quorum_is_reached(tally->size, tally->granted);
        may_be_yes &= quorum_is_reached(tally->size, tally->granted + tally->silent);
    }
    if (is_yes) {
        return ROUND_YES;
    }
    const struct tally *list = &round->tallies[0];
    if (quorum_is_blocked(list->size, list->gone)) {
        return ROUND_GONE;
    }
    if (may_be_yes) {
        return ROUND_OPEN;
    }
    /* An acquisition that cannot be a yes is a no; a holder goes on, to learn of a loss. */
    bool is_held = round->kind == ROUND_RENEW || round->kind == ROUND_RELEASE;
    return is_held && quorum_is_blocked(list->size, list->gone + list->silent) ? ROUND_OPEN
                                                                               : ROUND_NO;
}

static void count(struct round *round, uint32_t node, redlock_vote vote) {
    uint32_t is_granted = vote == REDLOCK_VOTE_GRANTED;
    uint32_t is_gone = says_not_ours(vote);
    for (unsigned i = 0; i < round->tally_count; i++) {
        struct tally *tally = &round->tallies[i];
        uint32_t is_member = tally->members >> node & 1;
        tally->silent -= is_member;
        tally->granted += is_member & is_granted;
        tally->gone += is_member & is_gone;
    }
}

/* Returns whether a vote is the node's first one, or comes after its TIMEOUT. */
static bool may_vote(const struct round *round, uint32_t node) {
    return round->silent >> node & 1 || round->votes[node] == REDLOCK_VOTE_TIMEOUT;
}

bool round_vote(struct round *round, uint32_t node, redlock_vote vote, uint32_t other_ttl_ms) {
    assert(node < REDLOCK_MAX_NODES);
    if (!may_vote(round, node)) {
        return false;
    }
    bool is_late = vote == REDLOCK_VOTE_GRANTED && !(round->silent >> node & 1);
    round->silent &= ~(UINT32_C(1) << node);
    round->votes[node] = (uint8_t)(is_late ? REDLOCK_VOTE_LATE : vote);
    round->other_ttl_ms[node] = other_ttl_ms;
    if (round->verdict != ROUND_OPEN) {
        return false;
    }
    count(round, node, vote);
    round->verdict = decide(round);
    return round->verdict != ROUND_OPEN;
}

bool round_grant(struct round *round, uint32_t node, uint64_t fence) {
    if (may_vote(round, node)) {
        round->fences[node] = fence;
    }
    return round_vote(round, node, REDLOCK_VOTE_GRANTED, 0);
}

void round_expire(struct round *round) {
    for (uint32_t rest = round->silent; rest != 0; rest &= rest - 1) {
        round_vote(round, (uint32_t)__builtin_ctz(rest), REDLOCK_VOTE_TIMEOUT, 0);
    }
}

bool round_was_kept(const struct round *round) {
    return round->verdict != ROUND_OPEN &&
           quorum_is_reached(round->tallies[0].size, round->tallies[0].granted);
}

/* Returns a mask of the nodes whose vote is one of `votes`, a mask of redlock_vote. */
static uint32_t voters(const struct round *round, uint32_t votes) {
    uint32_t mask = 0;
    for (uint32_t rest = round->members; rest != 0; rest &= rest - 1) {
        if (votes >> round->votes[__builtin_ctz(rest)] & 1) {
            mask |= rest & -rest; /* its lowest bit */
        }
    }
    return mask;
}

#define VOTE(name) (UINT32_C(1) << REDLOCK_VOTE_##name)
#define DENIALS (VOTE(DENIED) | VOTE(WRONG_TYPE) | VOTE(NO_EXPIRY))

bool round_has_quorum(const struct round *round, uint32_t nodes) {
    bool has_quorum = true;
    for (unsigned i = 0; i < round->tally_count; i++) {
        const struct tally *tally = &round->tallies[i];
        uint32_t count = (uint32_t)__builtin_popcount(nodes & tally->members);
        has_quorum &= quorum_is_reached(tally->size, count);
    }
    return has_quorum;
}

bool round_was_granted_late(const struct round *round) {
    return round->verdict == ROUND_NO &&
           round_has_quorum(round, voters(round, VOTE(GRANTED) | VOTE(LATE)));
}

/* Votes that tell nothing of the key: another time the node may grant it. */
#define FAILURES (VOTE(ERROR) | VOTE(UNREACHABLE) | VOTE(BROKEN) | VOTE(UNTRUSTED))

bool round_needs_silent(const struct round *round) {
    return !round_has_quorum(round, voters(round, VOTE(GRANTED) | FAILURES));
}

bool round_is_completed_by(const struct round *round, uint32_t up) {
    uint32_t failed = voters(round, FAILURES) & up;
    return round_has_quorum(round, voters(round, VOTE(GRANTED)) | failed);
}

uint32_t round_voters(const struct round *round, redlock_vote vote) {
    return voters(round, UINT32_C(1) << vote);
}

uint32_t round_deniers(const struct round *round) {
    return voters(round, DENIALS);
}

uint32_t round_possible_holders(const struct round *round) {
    return voters(round, ~(DENIALS | VOTE(UNREACHABLE)));
}

/* ---- fences ---- */

uint64_t round_fence(const struct round *round) {
    uint64_t largest = 0;
    for (uint32_t rest = voters(round, VOTE(GRANTED)); rest != 0; rest &= rest - 1) {
        uint64_t fence = round->fences[__builtin_ctz(rest)];
        largest = fence > largest ? fence : largest;
    }
    return largest;
}

bool round_agrees(const struct round *round, uint64_t fence) {
    uint32_t agreeing = 0;
    for (uint32_t rest = voters(round, VOTE(GRANTED)); rest != 0; rest &= rest - 1) {
        uint32_t node = (uint32_t)__builtin_ctz(rest);
        agreeing |= (uint32_t)(round->fences[node] == fence) << node;
    }
    return round_has_quorum(round, agreeing);
}
