#include "core/round.h"

#include "base/nanos.h"

#include <assert.h>
#include <string.h>

static struct tally tally_of(uint32_t members) {
    uint32_t size = (uint32_t)__builtin_popcount(members);
    return (struct tally){.members = members, .size = size, .silent = size};
}

void round_begin(struct round *round, struct round_answer *answers, enum round_kind kind,
                 struct quorum_lists lists, uint64_t start, uint64_t ttl, uint32_t awaited) {
    assert(lists.now != 0);
    /* Joint consensus, except for a release: the next list need not have had the key. */
    bool is_joint = lists.next != 0 && kind != ROUND_RELEASE;
    round->answers = answers;
    round->answered = 0;
    round->kind = (uint8_t)kind;
    round->start = round->sent_at = start;
    round->late_at = NANOS_NEVER; /* until it was sent */
    round->timeout = 0;
    round->ttl = ttl;
    round->members = lists.now | lists.next;
    round->silent = round->members;
    round->awaited = awaited & round->members;
    round->queued = round->pushed = round->refusing = round->changed = round->ahead = 0;
    round->tallies[0] = tally_of(lists.now);
    round->tally_count = 1;
    round->doubts_denials = false;
    if (is_joint) {
        round->tallies[1] = tally_of(lists.next);
        round->tally_count = 2;
    }
    /* A DIAGNOSE that waits for no node is over at once. */
    round->verdict = kind == ROUND_DIAGNOSE && round->awaited == 0 ? ROUND_YES : ROUND_OPEN;
    memset(round->votes, REDLOCK_VOTE_NONE, sizeof(round->votes));
    round->permits = NULL;
    round->extension_ttl = 0;
    round->fence_limit = 0;
}

/* ---- answers ---- */

static struct round_answer *answer_of(struct round *round, uint32_t node) {
    if (!(round->answered >> node & 1)) {
        round->answered |= UINT32_C(1) << node;
        round->answers[node] = (struct round_answer){0};
    }
    return &round->answers[node];
}

struct round_answer round_answer(const struct round *round, uint32_t node) {
    return round->answered >> node & 1 ? round->answers[node] : (struct round_answer){0};
}

/* Records a TTL. A TTL of 0 needs no room: most rounds have no answers but votes. */
static void record_ttl(struct round *round, uint32_t node, uint32_t other_ttl_ms) {
    if ((other_ttl_ms | round->answered) != 0) {
        answer_of(round, node)->other_ttl_ms = other_ttl_ms;
    }
}

void round_record_fence(struct round *round, uint32_t node, uint64_t fence) {
    answer_of(round, node)->fence = fence;
}

/* ---- votes ---- */

static bool says_not_ours(redlock_vote vote) {
    return vote == REDLOCK_VOTE_DENIED || vote == REDLOCK_VOTE_WRONG_TYPE ||
           vote == REDLOCK_VOTE_NO_EXPIRY || vote == REDLOCK_VOTE_MISSING;
}

static enum round_verdict decide(const struct round *round) {
    /* After a failed try there is no quorum to reach: the answers of the deniers end the round. */
    if (round->kind == ROUND_DIAGNOSE) {
        return (round->silent & round->awaited) == 0 ? ROUND_YES : ROUND_OPEN;
    }
    bool is_yes = true;
    bool may_be_yes = true;
    for (unsigned i = 0; i < round->tally_count; i++) {
        const struct tally *tally = &round->tallies[i];
        is_yes &= quorum_is_reached(tally->size, tally->granted);
        may_be_yes &= quorum_is_reached(tally->size, tally->granted + tally->silent);
    }
    /* Redlock step 3: N/2 + 1 of all configured nodes, of both lists during a change. */
    if (is_yes) {
        return ROUND_YES;
    }
    const struct tally *list = &round->tallies[0];
    /* Even if all other nodes have the key, they are no quorum. */
    if (quorum_is_blocked(list->size, list->gone)) {
        return ROUND_GONE;
    }
    if (may_be_yes) {
        return ROUND_OPEN;
    }
    /* An acquisition that cannot be a YES is a NO; a holder waits on, to learn of a loss. */
    bool is_held = round->kind == ROUND_RENEW || round->kind == ROUND_RELEASE;
    return is_held && quorum_is_blocked(list->size, list->gone + list->silent) ? ROUND_OPEN
                                                                               : ROUND_NO;
}

/* Counts the vote of a node that was silent until now, or late: then its TIMEOUT was counted. */
static void count_vote(struct round *round, uint32_t node, redlock_vote vote, bool was_silent) {
    uint32_t is_granted = vote == REDLOCK_VOTE_GRANTED;
    uint32_t is_gone = says_not_ours(vote);
    for (unsigned i = 0; i < round->tally_count; i++) {
        struct tally *tally = &round->tallies[i];
        uint32_t is_member = tally->members >> node & 1;
        tally->silent -= is_member & was_silent;
        tally->granted += is_member & is_granted;
        tally->gone += is_member & is_gone;
    }
}

/* Returns whether a vote is the node's first one, or comes after its TIMEOUT. */
static bool may_vote(const struct round *round, uint32_t node) {
    return round->silent >> node & 1 || round->votes[node] == REDLOCK_VOTE_TIMEOUT;
}

/*
 * Decides an open QUEUE by all votes, because they change. A node with an entry may still grant,
 * and so may a slow one: with thousands of waiters all nodes are slow, and asking again would make
 * it worse.
 */
static bool decide_in_queue(struct round *round) {
    uint32_t granted = round_voters(round, REDLOCK_VOTE_GRANTED);
    uint32_t waiting = round->silent | round_voters(round, REDLOCK_VOTE_DENIED) |
                       round_voters(round, REDLOCK_VOTE_TIMEOUT);
    if (round_has_quorum(round, granted)) {
        round->verdict = ROUND_YES;
    } else if (!round_has_quorum(round, granted | waiting)) {
        /* Not even pushes from all nodes that may still push would be a quorum. */
        round->verdict = ROUND_NO;
    }
    return round->verdict != ROUND_OPEN;
}

/*
 * Returns the TTL of a vote. The node may have reported in the meantime that it leaves the key open
 * to all: such a message can overtake the answer, which is about the previous holder.
 */
static uint32_t ttl_of_vote(const struct round *round, uint32_t node, uint32_t other_ttl_ms) {
    uint32_t reported_ms = round_answer(round, node).other_ttl_ms;
    bool is_overtaken = (round->silent >> node & 1) && reported_ms != 0;
    return is_overtaken && reported_ms < other_ttl_ms ? reported_ms : other_ttl_ms;
}

/* Records the vote of a node that may vote. */
static bool record(struct round *round, uint32_t node, redlock_vote vote) {
    bool was_silent = round->silent >> node & 1;
    bool is_open = round->verdict == ROUND_OPEN;
    /* A grant after the node's TIMEOUT counts while the round waits for others. */
    bool is_late = vote == REDLOCK_VOTE_GRANTED && !was_silent && !is_open;
    round->silent &= ~(UINT32_C(1) << node);
    round->changed &= ~(UINT32_C(1) << node);
    round->votes[node] = (uint8_t)(is_late ? REDLOCK_VOTE_LATE : vote);
    /* A verdict stays; later votes only show where the key may be. */
    if (!is_open) {
        return false;
    }
    if (round->kind == ROUND_QUEUE) {
        return decide_in_queue(round);
    }
    count_vote(round, node, vote, was_silent);
    round->verdict = (uint8_t)decide(round);
    return round->verdict != ROUND_OPEN;
}

bool round_vote(struct round *round, uint32_t node, redlock_vote vote, uint32_t other_ttl_ms) {
    assert(node < REDLOCK_MAX_NODES);
    /* One vote for each node: a repeated reply must not count twice. */
    if (!may_vote(round, node)) {
        return false;
    }
    record_ttl(round, node, ttl_of_vote(round, node, other_ttl_ms));
    return record(round, node, vote);
}

void round_mark_queued(struct round *round, uint32_t node, uint32_t ahead) {
    if (may_vote(round, node)) {
        round->queued |= UINT32_C(1) << node;
        round->ahead = ahead > round->ahead ? ahead : round->ahead;
    }
}

bool round_awaits_push(const struct round *round, uint32_t node) {
    return round->kind == ROUND_QUEUE && round->verdict == ROUND_OPEN &&
           round->members >> node & 1 && round->votes[node] != REDLOCK_VOTE_GRANTED;
}

void round_record_open(struct round *round, uint32_t node, uint32_t open_ms) {
    assert(round_awaits_push(round, node));
    record_ttl(round, node, open_ms);
    /* Nodes send this to the first waiter, which polls as soon as the time is over. */
    round->ahead = 0;
}

void round_withdraw(struct round *round, uint32_t node) {
    assert(round_awaits_push(round, node));
    round->silent |= UINT32_C(1) << node; /* a QUEUE has no tallies that count it */
    round->answered &= ~(UINT32_C(1) << node);
    round->votes[node] = REDLOCK_VOTE_NONE;
}

void round_doubt_denials(struct round *round) {
    round->doubts_denials = true;
    uint32_t denials = round_voters(round, REDLOCK_VOTE_DENIED);
    for (; denials != 0; denials &= denials - 1) {
        round_withdraw(round, (uint32_t)__builtin_ctz(denials));
    }
}

bool round_push(struct round *round, uint32_t node, uint64_t fence, uint64_t until) {
    assert(round_awaits_push(round, node));
    round->silent &= ~(UINT32_C(1) << node);
    round->pushed |= UINT32_C(1) << node;
    round->votes[node] = REDLOCK_VOTE_GRANTED;
    *answer_of(round, node) = (struct round_answer){
        .fence = fence,
        .stands_ms = (uint32_t)nanos_min(nanos_to_ms(nanos_sub(until, round->start)), UINT32_MAX)};
    return decide_in_queue(round);
}

bool round_void(struct round *round, uint32_t node) {
    assert(round_grants(round) >> node & 1);
    round->votes[node] = REDLOCK_VOTE_UNTRUSTED;
    round->pushed &= ~(UINT32_C(1) << node);
    if (round->verdict != ROUND_OPEN) {
        return false;
    }
    /* A QUEUE has no tallies, because its votes change. */
    if (round->kind == ROUND_QUEUE) {
        return decide_in_queue(round);
    }
    for (unsigned i = 0; i < round->tally_count; i++) {
        struct tally *tally = &round->tallies[i];
        tally->granted -= tally->members >> node & 1;
    }
    round->verdict = (uint8_t)decide(round);
    return round->verdict != ROUND_OPEN;
}

/* Returns the instant until which a node that granted is certain to keep the key. */
static uint64_t certain_until(const struct round *round, uint32_t node, uint64_t end) {
    bool is_pushed = round->pushed >> node & 1;
    return is_pushed ? nanos_add(round->start, nanos_from_ms(round->answers[node].stands_ms)) : end;
}

uint64_t round_certain_until(const struct round *round, uint64_t end) {
    uint32_t keepers = round_voters(round, REDLOCK_VOTE_GRANTED);
    uint64_t until = NANOS_NEVER;
    /* Drop nodes in the order of their ends: the one without which no quorum is left bounds it. */
    while (round_has_quorum(round, keepers)) {
        uint32_t first = (uint32_t)__builtin_ctz(keepers);
        for (uint32_t rest = keepers & (keepers - 1); rest != 0; rest &= rest - 1) {
            uint32_t node = (uint32_t)__builtin_ctz(rest);
            bool is_less = certain_until(round, node, end) < certain_until(round, first, end);
            first = is_less ? node : first;
        }
        until = certain_until(round, first, end);
        keepers &= ~(UINT32_C(1) << first);
    }
    return until;
}

static uint32_t other_ttl(const struct round *round, uint32_t node) {
    return round_answer(round, node).other_ttl_ms;
}

uint32_t round_free_in_ms(const struct round *round) {
    const struct tally *list = &round->tallies[0];
    uint32_t deniers = round_voters(round, REDLOCK_VOTE_DENIED) & list->members;
    uint32_t granted = round_voters(round, REDLOCK_VOTE_GRANTED) & list->members;
    uint32_t free = (uint32_t)__builtin_popcount(granted);
    uint32_t within = 0;
    /* Count deniers as free in the order in which their keys expire, until there is a quorum. */
    while (!quorum_is_reached(list->size, free)) {
        uint32_t next = UINT32_MAX; /* the denier whose key expires first */
        for (uint32_t rest = deniers; rest != 0; rest &= rest - 1) {
            uint32_t node = (uint32_t)__builtin_ctz(rest);
            bool is_first = next == UINT32_MAX || other_ttl(round, node) < other_ttl(round, next);
            next = is_first ? node : next;
        }
        if (next == UINT32_MAX) { /* the rest has reported no TTL */
            return UINT32_MAX;
        }
        within = other_ttl(round, next);
        deniers &= ~(UINT32_C(1) << next);
        free++;
    }
    return within;
}

/* Records a grant as the first vote of a node. It can only make an ACQUIRE a YES. */
static bool record_grant(struct round *round, uint32_t node) {
    round->silent &= ~(UINT32_C(1) << node);
    round->votes[node] = REDLOCK_VOTE_GRANTED;
    if (round->verdict != ROUND_OPEN) {
        return false;
    }
    bool is_yes = true;
    for (unsigned i = 0; i < round->tally_count; i++) {
        struct tally *tally = &round->tallies[i];
        uint32_t is_member = tally->members >> node & 1;
        tally->silent -= is_member;
        tally->granted += is_member;
        is_yes &= quorum_is_reached(tally->size, tally->granted);
    }
    if (is_yes) {
        round->verdict = ROUND_YES;
    } else if (round->kind == ROUND_RELEASE) {
        round->verdict = (uint8_t)decide(round);
    }
    return round->verdict != ROUND_OPEN;
}

/* Records any grant. Kept out of round_grant, which runs often. */
static __attribute__((noinline)) bool grant(struct round *round, uint32_t node, uint64_t fence) {
    if (!may_vote(round, node)) {
        return false;
    }
    if ((fence | round->answered) != 0) {
        *answer_of(round, node) = (struct round_answer){.fence = fence};
    }
    return record(round, node, REDLOCK_VOTE_GRANTED);
}

bool round_grant(struct round *round, uint32_t node, uint64_t fence) {
    /* The common case: a first vote that brings nothing but the grant. */
    if ((fence | round->answered) == 0 && (round->silent >> node & 1) && round_is_plain(round)) {
        return record_grant(round, node);
    }
    return grant(round, node, fence);
}

void round_expire(struct round *round, uint32_t late, uint64_t now) {
    late &= round->silent;
    round->timeout = late != 0 ? nanos_sub(now, round->sent_at) : round->timeout;
    for (uint32_t rest = late; rest != 0; rest &= rest - 1) {
        round_vote(round, (uint32_t)__builtin_ctz(rest), REDLOCK_VOTE_TIMEOUT, 0);
    }
}

bool round_was_kept(const struct round *round) {
    /* A QUEUE has no tallies: its verdict says it. */
    return round->verdict == ROUND_YES ||
           (round->verdict != ROUND_OPEN &&
            quorum_is_reached(round->tallies[0].size, round->tallies[0].granted));
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
#define UNSENT (VOTE(UNREACHABLE) | VOTE(REFUSED))
#define DENIALS (VOTE(DENIED) | VOTE(WRONG_TYPE) | VOTE(NO_EXPIRY))

uint32_t round_grants(const struct round *round) {
    /* A YES is not taken back: the lease was notified, and holds the lock. */
    return round->verdict == ROUND_YES ? 0 : voters(round, VOTE(GRANTED) | VOTE(LATE));
}

bool round_has_quorum(const struct round *round, uint32_t nodes) {
    bool has_quorum = true;
    for (unsigned i = 0; i < round->tally_count; i++) {
        const struct tally *tally = &round->tallies[i];
        uint32_t count = (uint32_t)__builtin_popcount(nodes & tally->members);
        /* Joint consensus: a quorum of each list. */
        has_quorum &= quorum_is_reached(tally->size, count);
    }
    return has_quorum;
}

bool round_was_granted_late(const struct round *round) {
    return round->verdict == ROUND_NO &&
           round_has_quorum(round, voters(round, VOTE(GRANTED) | VOTE(LATE)));
}

/* Votes that say nothing about the key: the node may grant it the next time. */
#define FAILURES (VOTE(ERROR) | VOTE(UNREACHABLE) | VOTE(REFUSED) | VOTE(BROKEN) | VOTE(UNTRUSTED))

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

uint32_t round_unsent(const struct round *round) {
    return voters(round, UNSENT);
}

uint32_t round_deniers(const struct round *round) {
    return voters(round, DENIALS);
}

uint32_t round_possible_holders(const struct round *round) {
    /* In a QUEUE a node that denied may have an entry, which has to be given up as well. */
    uint32_t without = round->kind == ROUND_QUEUE ? 0 : DENIALS;
    return voters(round, ~(without | UNSENT));
}

/* ---- fences ---- */

/* Returns the smallest counter that `nodes`, a mask, have reported; 0: none. */
static uint64_t smallest_fence(const struct round *round, uint32_t nodes) {
    uint64_t smallest = 0;
    for (uint32_t rest = nodes; rest != 0; rest &= rest - 1) {
        uint64_t fence = round_answer(round, (uint32_t)__builtin_ctz(rest)).fence;
        smallest = fence != 0 && (smallest == 0 || fence < smallest) ? fence : smallest;
    }
    return smallest;
}

uint64_t round_fence(const struct round *round) {
    uint64_t limit = round->fence_limit != 0 ? round->fence_limit : UINT64_MAX;
    uint64_t largest = 0;
    for (uint32_t rest = voters(round, VOTE(GRANTED)); rest != 0; rest &= rest - 1) {
        uint64_t fence = round_answer(round, (uint32_t)__builtin_ctz(rest)).fence;
        /* A counter beyond the limit may be a lie, and would raise all others (wire/fence.h). */
        largest = fence > largest && fence <= limit ? fence : largest;
    }
    return largest != 0 ? largest : smallest_fence(round, voters(round, VOTE(GRANTED)));
}

uint64_t round_fence_beyond(const struct round *round) {
    return smallest_fence(round, voters(round, VOTE(ERROR)));
}

bool round_agrees(const struct round *round, uint64_t fence) {
    uint32_t agreeing = 0;
    for (uint32_t rest = voters(round, VOTE(GRANTED)); rest != 0; rest &= rest - 1) {
        uint32_t node = (uint32_t)__builtin_ctz(rest);
        /* A larger counter does not agree: another lock may have had the key there in between. */
        agreeing |= (uint32_t)(round_answer(round, node).fence == fence) << node;
    }
    return round_has_quorum(round, agreeing);
}
