#include "core/round.h"

#include "core/quorum.h"

void round_begin(struct round *round, enum round_kind kind, uint32_t nodes, uint64_t start,
                 uint64_t ttl, uint32_t awaited) {
    round->kind = kind;
    round->start = start;
    round->ttl = ttl;
    round->nodes = nodes;
    round->silent = round_all(nodes);
    round->awaited = awaited;
    round->granted = 0;
    round->gone = 0;
    round->verdict = kind == ROUND_SETTLE && awaited == 0 ? ROUND_YES : ROUND_OPEN;
    for (uint32_t i = 0; i < nodes; i++) {
        round->votes[i] = REDLOCK_VOTE_NONE;
        round->other_ttl_ms[i] = 0;
    }
}

static bool says_not_ours(redlock_vote vote) {
    return vote == REDLOCK_VOTE_DENIED || vote == REDLOCK_VOTE_WRONG_TYPE ||
           vote == REDLOCK_VOTE_NO_EXPIRY || vote == REDLOCK_VOTE_MISSING;
}

static enum round_verdict decide(const struct round *round) {
    uint32_t silent = (uint32_t)__builtin_popcount(round->silent);
    if (round->kind == ROUND_SETTLE) {
        return (round->silent & round->awaited) == 0 ? ROUND_YES : ROUND_OPEN;
    }
    if (round->granted >= quorum_of(round->nodes)) {
        return ROUND_YES;
    }
    if (quorum_is_blocked(round->nodes, round->gone)) {
        return ROUND_GONE;
    }
    bool may_be_yes = round->granted + silent >= quorum_of(round->nodes);
    /* Who acquires is done when it cannot be yes; a holder goes on to learn whether it is lost. */
    bool may_be_gone =
        round->kind != ROUND_ACQUIRE && quorum_is_blocked(round->nodes, round->gone + silent);
    return silent > 0 && (may_be_yes || may_be_gone) ? ROUND_OPEN : ROUND_NO;
}

bool round_vote(struct round *round, uint32_t node, redlock_vote vote, uint32_t other_ttl_ms) {
    uint32_t bit = UINT32_C(1) << node;
    if ((round->silent & bit) == 0 && round->votes[node] != REDLOCK_VOTE_TIMEOUT) {
        return false;
    }
    round->silent &= ~bit;
    round->votes[node] = (uint8_t)vote;
    round->other_ttl_ms[node] = other_ttl_ms;
    if (round->verdict != ROUND_OPEN) {
        return false;
    }
    round->granted += vote == REDLOCK_VOTE_GRANTED;
    round->gone += says_not_ours(vote);
    round->verdict = decide(round);
    return round->verdict != ROUND_OPEN;
}

void round_expire(struct round *round) {
    for (uint32_t i = 0; i < round->nodes; i++) {
        if (round->silent & UINT32_C(1) << i) {
            round_vote(round, i, REDLOCK_VOTE_TIMEOUT, 0);
        }
    }
}

uint32_t round_voters(const struct round *round, redlock_vote vote) {
    uint32_t mask = 0;
    for (uint32_t i = 0; i < round->nodes; i++) {
        mask |= (uint32_t)(round->votes[i] == vote) << i;
    }
    return mask;
}

uint32_t round_deniers(const struct round *round) {
    return round_voters(round, REDLOCK_VOTE_DENIED) | round_voters(round, REDLOCK_VOTE_WRONG_TYPE) |
           round_voters(round, REDLOCK_VOTE_NO_EXPIRY);
}

uint32_t round_possible_holders(const struct round *round) {
    return round_all(round->nodes) & ~round_deniers(round) &
           ~round_voters(round, REDLOCK_VOTE_UNREACHABLE);
}
