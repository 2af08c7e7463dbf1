/*
 * Tests the quorum collector against an oracle that does not count votes: it tries all possible
 * remaining votes, and checks their outcomes.
 */
#include "core/round.h"
#include "unit.h"

#include <string.h>

#define START MS(777)
#define TTL MS(10000)

/* All votes that a node can cast. */
static const redlock_vote alphabet[] = {
    REDLOCK_VOTE_GRANTED,     REDLOCK_VOTE_DENIED,    REDLOCK_VOTE_WRONG_TYPE, REDLOCK_VOTE_MISSING,
    REDLOCK_VOTE_ERROR,       REDLOCK_VOTE_NO_EXPIRY, REDLOCK_VOTE_TIMEOUT,    REDLOCK_VOTE_BROKEN,
    REDLOCK_VOTE_UNREACHABLE, REDLOCK_VOTE_UNTRUSTED,
};

/* Returns a mask of the first nodes. */
static uint32_t first(uint32_t nodes) {
    return (uint32_t)((UINT64_C(1) << nodes) - 1);
}

/* Answers of a test's rounds, at most one of which has any at a time. */
static struct round_answer answers[REDLOCK_MAX_NODES];

static struct round begin_at(enum round_kind kind, struct quorum_lists lists, uint32_t awaited) {
    struct round round;
    memset(&round, 0xa5, sizeof(round)); /* rounds come from a pool, as their last user left them */
    round_begin(&round, answers, kind, lists, START, TTL, awaited);
    return round;
}

static struct round begin(enum round_kind kind, uint32_t nodes, uint32_t awaited) {
    return begin_at(kind, (struct quorum_lists){first(nodes), 0}, awaited);
}

/* ---- the oracle ---- */

/* Returns the node that casts the next vote: the order must not matter. */
typedef uint32_t node_order(uint32_t nodes, uint32_t cast);

static uint32_t upwards(uint32_t nodes, uint32_t cast) {
    (void)nodes;
    return cast;
}

static uint32_t downwards(uint32_t nodes, uint32_t cast) {
    return nodes - 1 - cast;
}

/* The votes of one round, in the order of their arrival. */
struct history {
    enum round_kind kind;
    struct quorum_lists lists; /* masks of the first `nodes` nodes */
    uint32_t nodes;
    node_order *order;
    uint32_t cast;
    redlock_vote votes[REDLOCK_MAX_NODES];
};

static uint32_t voter(const struct history *history, uint32_t cast) {
    return history->order(history->nodes, cast);
}

static bool is_in(uint32_t list, uint32_t node) {
    return (list & UINT32_C(1) << node) != 0;
}

static uint32_t size_of(const struct history *history, uint32_t list) {
    uint32_t size = 0;
    for (uint32_t node = 0; node < history->nodes; node++) {
        size += is_in(list, node);
    }
    return size;
}

static uint32_t count_granted(const struct history *history, uint32_t list) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < history->cast; i++) {
        count += is_in(list, voter(history, i)) && history->votes[i] == REDLOCK_VOTE_GRANTED;
    }
    return count;
}

/* Returns how many nodes said that the key is not ours: another's, no lock at all, or missing. */
static uint32_t count_not_ours(const struct history *history, uint32_t list) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < history->cast; i++) {
        redlock_vote vote = history->votes[i];
        count += is_in(list, voter(history, i)) &&
                 (vote == REDLOCK_VOTE_DENIED || vote == REDLOCK_VOTE_WRONG_TYPE ||
                  vote == REDLOCK_VOTE_NO_EXPIRY || vote == REDLOCK_VOTE_MISSING);
    }
    return count;
}

static bool has_majority(const struct history *history, uint32_t list) {
    return 2 * count_granted(history, list) > size_of(history, list);
}

/*
 * Returns the outcome of these votes alone: yes by majorities, no if the other nodes are no
 * majority, or neither.
 */
static enum round_verdict outcome(const struct history *history) {
    uint32_t list = history->lists.now;
    uint32_t next = history->kind == ROUND_RELEASE ? 0 : history->lists.next;
    if (has_majority(history, list) && (next == 0 || has_majority(history, next))) {
        return ROUND_YES;
    }
    uint32_t size = size_of(history, list);
    return 2 * (size - count_not_ours(history, list)) <= size ? ROUND_GONE : ROUND_NO;
}

/* Returns a mask of the outcomes that are still possible, over all remaining votes. */
static unsigned possible_outcomes(const struct history *history) {
    static const redlock_vote rest[] = {REDLOCK_VOTE_GRANTED, REDLOCK_VOTE_MISSING,
                                        REDLOCK_VOTE_ERROR};
    if (history->cast == history->nodes) {
        return 1u << outcome(history);
    }
    unsigned possible = 0;
    for (size_t i = 0; i < COUNT_OF(rest); i++) {
        struct history next = *history;
        next.votes[next.cast++] = rest[i];
        possible |= possible_outcomes(&next);
    }
    return possible;
}

/*
 * Returns the verdict of a QUEUE: open as long as nodes that denied may turn it into a yes by a
 * push.
 */
static enum round_verdict expected_in_queue(const struct history *history) {
    struct history best = *history;
    while (best.cast < best.nodes) {
        best.votes[best.cast++] = REDLOCK_VOTE_GRANTED;
    }
    if (outcome(history) == ROUND_YES) {
        return ROUND_YES;
    }
    for (uint32_t i = 0; i < best.cast; i++) {
        bool may_still_grant =
            best.votes[i] == REDLOCK_VOTE_DENIED || best.votes[i] == REDLOCK_VOTE_TIMEOUT;
        if (may_still_grant) {
            best.votes[i] = REDLOCK_VOTE_GRANTED;
        }
    }
    return outcome(&best) == ROUND_YES ? ROUND_OPEN : ROUND_NO;
}

/* Returns the earliest verdict. An acquisition is decided as soon as a yes is impossible. */
static enum round_verdict expected_verdict(const struct history *history) {
    if (history->kind == ROUND_QUEUE) {
        return expected_in_queue(history);
    }
    unsigned possible = possible_outcomes(history);
    bool acquires = history->kind == ROUND_ACQUIRE || history->kind == ROUND_RAISE;
    if (acquires && (possible & 1u << ROUND_YES) == 0) {
        return outcome(history);
    }
    switch (possible) {
    case 1u << ROUND_YES:
        return ROUND_YES;
    case 1u << ROUND_GONE:
        return ROUND_GONE;
    case 1u << ROUND_NO:
        return ROUND_NO;
    default:
        return ROUND_OPEN;
    }
}

/* ---- decisions ---- */

/* Continues with each possible next vote from `round`, which has seen `history`. */
static void explore(const struct round *round, const struct history *history) {
    if (history->cast == history->nodes) {
        assert_int_equal(round->silent, 0);
        assert_true(round->verdict != ROUND_OPEN || round->kind == ROUND_QUEUE);
        return;
    }
    for (size_t i = 0; i < COUNT_OF(alphabet); i++) {
        struct round after = *round;
        struct history longer = *history;
        uint32_t node = voter(history, history->cast);
        longer.votes[longer.cast++] = alphabet[i];
        bool decided = round_vote(&after, node, alphabet[i], 5);
        assert_int_equal(after.votes[node], alphabet[i]);
        if (round->verdict != ROUND_OPEN) {
            assert_false(decided);
            assert_int_equal(after.verdict, round->verdict);
        } else {
            assert_int_equal(after.verdict, expected_verdict(&longer));
            assert_int_equal(decided, after.verdict != ROUND_OPEN);
        }
        explore(&after, &longer);
    }
}

static void explore_kind(enum round_kind kind) {
    for (uint32_t nodes = 1; nodes <= 5; nodes++) {
        struct history history = {
            .kind = kind, .lists = {first(nodes), 0}, .nodes = nodes, .order = upwards};
        struct round round = begin(kind, nodes, 0);
        assert_int_equal(round.verdict, ROUND_OPEN);
        explore(&round, &history);
        if (nodes < 5) {
            history.order = downwards;
            explore(&round, &history);
        }
    }
}

/* Two lists at once: disjoint, overlapping, equal, one within the other. */
static void test_every_sequence_of_votes_of_two_lists(void **state) {
    (void)state;
    static const struct {
        uint32_t nodes;
        struct quorum_lists lists;
    } rows[] = {{2, {0x1, 0x2}}, {2, {0x1, 0x3}}, {3, {0x7, 0x7}}, {3, {0x3, 0x6}},
                {4, {0x7, 0xe}}, {4, {0x3, 0xc}}, {4, {0xf, 0x4}}, {5, {0x7, 0x1c}}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        for (int kind = ROUND_ACQUIRE; kind <= ROUND_RELEASE; kind++) {
            struct history history = {.kind = (enum round_kind)kind,
                                      .lists = rows[i].lists,
                                      .nodes = rows[i].nodes,
                                      .order = i % 2 == 0 ? upwards : downwards};
            struct round round = begin_at(history.kind, rows[i].lists, 0);
            assert_int_equal(round.verdict, ROUND_OPEN);
            explore(&round, &history);
        }
    }
}

/* The order of the majorities of both lists does not matter. */
static void test_whether_it_is_kept_is_the_lists_word_alone(void **state) {
    (void)state;
    struct round round = begin_at(ROUND_RENEW, (struct quorum_lists){0x07, 0x38}, 0);
    for (uint32_t i = 3; i < 6; i++) {
        assert_false(round_vote(&round, i, REDLOCK_VOTE_GRANTED, 0));
        assert_false(round_was_kept(&round));
    }
    assert_false(round_vote(&round, 0, REDLOCK_VOTE_GRANTED, 0));
    assert_false(round_was_kept(&round));
    assert_true(round_vote(&round, 1, REDLOCK_VOTE_GRANTED, 0));
    assert_int_equal(round.verdict, ROUND_YES);
    round = begin_at(ROUND_RENEW, (struct quorum_lists){0x07, 0x38}, 0);
    for (uint32_t i = 5; i > 1; i--) {
        assert_false(round_vote(&round, i, i > 2 ? REDLOCK_VOTE_MISSING : REDLOCK_VOTE_GRANTED, 0));
    }
    assert_true(round_vote(&round, 1, REDLOCK_VOTE_GRANTED, 0));
    assert_int_equal(round.verdict, ROUND_NO); /* not gone: no other client can have it */
    assert_true(round_was_kept(&round));
}

/* Votes of a node that is in neither list do not count. */
static void test_a_node_that_is_not_asked_has_no_vote(void **state) {
    (void)state;
    struct round round = begin_at(ROUND_ACQUIRE, (struct quorum_lists){0x05, 0x0c}, 0);
    assert_int_equal(round.members, 0x0d);
    assert_false(round_vote(&round, 1, REDLOCK_VOTE_GRANTED, 0));
    assert_int_equal(round_voters(&round, REDLOCK_VOTE_GRANTED), 0);
    assert_int_equal(round_possible_holders(&round), 0x0d);
    struct round diagnosing = begin_at(ROUND_DIAGNOSE, (struct quorum_lists){0x05, 0}, 0x0a);
    assert_int_equal(diagnosing.verdict, ROUND_YES); /* none of the awaited nodes is in the round */
}

static void test_every_sequence_of_votes_to_acquire(void **state) {
    (void)state;
    explore_kind(ROUND_ACQUIRE);
}

static void test_every_sequence_of_votes_to_queue(void **state) {
    (void)state;
    explore_kind(ROUND_QUEUE);
}

static void test_every_sequence_of_votes_to_raise(void **state) {
    (void)state;
    explore_kind(ROUND_RAISE);
}

static void test_every_sequence_of_votes_to_renew(void **state) {
    (void)state;
    explore_kind(ROUND_RENEW);
}

static void test_every_sequence_of_votes_to_release(void **state) {
    (void)state;
    explore_kind(ROUND_RELEASE);
}

/* The quorum is of the configured nodes, not of the reachable ones. */
static void test_unreachable_nodes_count(void **state) {
    (void)state;
    for (uint32_t nodes = 1; nodes <= 9; nodes++) {
        for (uint32_t down = 0; down <= nodes; down++) {
            struct round round = begin(ROUND_ACQUIRE, nodes, 0);
            for (uint32_t i = 0; i < nodes; i++) {
                round_vote(&round, i, i < down ? REDLOCK_VOTE_UNREACHABLE : REDLOCK_VOTE_GRANTED,
                           0);
            }
            assert_int_equal(round.verdict, nodes - down >= nodes / 2 + 1 ? ROUND_YES : ROUND_NO);
        }
    }
}

/* ---- fences ---- */

static void test_the_fence_is_the_largest_that_was_granted(void **state) {
    (void)state;
    struct round round = begin(ROUND_ACQUIRE, 5, 0);
    assert_int_equal(round_fence(&round), 0);
    round_grant(&round, 3, 7);
    round_vote(&round, 0, REDLOCK_VOTE_DENIED, 900);
    round_grant(&round, 4, 5);
    assert_int_equal(round_fence(&round), 7);
    round_grant(&round, 4, 99); /* a node votes once */
    assert_int_equal(round_fence(&round), 7);
    assert_true(round_grant(&round, 1, 6));
    assert_int_equal(round.verdict, ROUND_YES);
    round_grant(&round, 2, 8); /* late, but recorded */
    assert_int_equal(round_fence(&round), 8);
}

/* A counter beyond the limit is used only if there is no other, and then the smallest. */
static void test_a_fence_beyond_the_limit_is_the_smallest(void **state) {
    (void)state;
    struct round round = begin(ROUND_ACQUIRE, 5, 0);
    round.fence_limit = 10;
    round_grant(&round, 0, 90);
    assert_int_equal(round_fence(&round), 90);
    round_grant(&round, 1, 80);
    assert_int_equal(round_fence(&round), 80);
    round_grant(&round, 2, 9);
    assert_int_equal(round_fence(&round), 9);
    round_grant(&round, 3, 10);
    assert_int_equal(round_fence(&round), 10);
}

static void test_what_was_beyond_is_reported(void **state) {
    (void)state;
    struct round round = begin(ROUND_RAISE, 3, 0);
    assert_int_equal(round_fence_beyond(&round), 0);
    round_grant(&round, 0, 7);
    round_record_fence(&round, 1, 90);
    round_vote(&round, 1, REDLOCK_VOTE_ERROR, 0);
    assert_int_equal(round_fence_beyond(&round), 90);
    round_record_fence(&round, 2, 80);
    round_vote(&round, 2, REDLOCK_VOTE_ERROR, 0);
    assert_int_equal(round.verdict, ROUND_NO);
    assert_int_equal(round_fence_beyond(&round), 80);
    assert_int_equal(round_fence(&round), 7);
}

static void test_a_quorum_agrees_on_a_fence(void **state) {
    (void)state;
    struct round round = begin(ROUND_ACQUIRE, 5, 0);
    round_grant(&round, 0, 7);
    round_grant(&round, 1, 7);
    round_grant(&round, 2, 6);
    assert_int_equal(round.verdict, ROUND_YES);
    assert_false(round_agrees(&round, 7));
    round_grant(&round, 3, 7);
    assert_true(round_agrees(&round, 7));
    assert_false(round_agrees(&round, 6));
}

static void test_a_fence_of_two_lists(void **state) {
    (void)state;
    struct round round = begin_at(ROUND_ACQUIRE, (struct quorum_lists){0x07, 0x1c}, 0);
    round_grant(&round, 0, 7);
    round_grant(&round, 1, 7);
    round_grant(&round, 3, 7);
    round_grant(&round, 4, 6);
    assert_int_equal(round.verdict, ROUND_YES);
    assert_false(round_agrees(&round, 7));
    round_grant(&round, 2, 7);
    assert_true(round_agrees(&round, 7));
}

/* ---- votes that do not count any more ---- */

static void test_votes_after_the_verdict_are_only_written_down(void **state) {
    (void)state;
    struct round round = begin(ROUND_RENEW, 5, 0);
    assert_false(round_vote(&round, 4, REDLOCK_VOTE_GRANTED, 0));
    assert_false(round_vote(&round, 2, REDLOCK_VOTE_GRANTED, 0));
    assert_true(round_vote(&round, 0, REDLOCK_VOTE_GRANTED, 0));
    assert_int_equal(round.silent, 1u << 1 | 1u << 3);
    assert_false(round_vote(&round, 1, REDLOCK_VOTE_MISSING, 0));
    assert_false(round_vote(&round, 3, REDLOCK_VOTE_DENIED, 77));
    assert_int_equal(round.verdict, ROUND_YES);
    assert_int_equal(round.silent, 0);
    assert_int_equal(round_voters(&round, REDLOCK_VOTE_MISSING), 1u << 1);
    assert_int_equal(round_voters(&round, REDLOCK_VOTE_DENIED), 1u << 3);
    assert_int_equal(round_answer(&round, 3).other_ttl_ms, 77);
}

/* Only a timeout is replaced, as it only says that the node was slow. */
static void test_a_node_votes_once(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(alphabet); i++) {
        struct round round = begin(ROUND_ACQUIRE, 5, 0);
        round_vote(&round, 3, alphabet[i], 11);
        struct round before = round;
        assert_false(round_vote(&round, 3, REDLOCK_VOTE_GRANTED, 22));
        if (alphabet[i] == REDLOCK_VOTE_TIMEOUT) {
            assert_int_equal(round.votes[3], REDLOCK_VOTE_GRANTED);
            assert_int_equal(round.tallies[0].granted, 1);
            assert_int_equal(round_answer(&round, 3).other_ttl_ms, 22);
        } else {
            assert_int_equal(round.votes[3], alphabet[i]);
            assert_int_equal(round_answer(&round, 3).other_ttl_ms, 11);
            assert_int_equal(round.tallies[0].granted, before.tallies[0].granted);
        }
        assert_int_equal(round.silent, 0x1f & ~(1u << 3));
        assert_int_equal(round.verdict, ROUND_OPEN);
    }
}

/* Nodes that were late and have then gone are as late as before: the others may be a quorum. */
static void test_a_connection_that_breaks_after_a_timeout_changes_nothing(void **state) {
    (void)state;
    struct round round = begin(ROUND_RELEASE, 5, 0);
    round_vote(&round, 0, REDLOCK_VOTE_GRANTED, 0);
    round_vote(&round, 1, REDLOCK_VOTE_GRANTED, 0);
    round_expire(&round, 1U << 2 | 1U << 3, MS(50));
    assert_false(round_vote(&round, 2, REDLOCK_VOTE_BROKEN, 0));
    assert_false(round_vote(&round, 3, REDLOCK_VOTE_BROKEN, 0));
    assert_int_equal(round.verdict, ROUND_OPEN);
    assert_true(round_vote(&round, 4, REDLOCK_VOTE_GRANTED, 0));
    assert_int_equal(round.verdict, ROUND_YES);
}

static void test_one_node_is_no_quorum_however_often_it_answers(void **state) {
    (void)state;
    struct round round = begin(ROUND_ACQUIRE, 3, 0);
    for (unsigned i = 0; i < 5; i++) {
        assert_false(round_vote(&round, 1, REDLOCK_VOTE_GRANTED, 0));
    }
    assert_int_equal(round.tallies[0].granted, 1);
    assert_int_equal(round.verdict, ROUND_OPEN);
}

/* ---- the deadline ---- */

static void test_the_deadline_is_the_vote_of_the_silent(void **state) {
    (void)state;
    struct round round = begin(ROUND_ACQUIRE, 5, 0);
    round_vote(&round, 0, REDLOCK_VOTE_GRANTED, 0);
    round_vote(&round, 4, REDLOCK_VOTE_DENIED, 0);
    round_expire(&round, round.silent, MS(50));
    assert_int_equal(round.verdict, ROUND_NO);
    assert_int_equal(round.silent, 0);
    assert_int_equal(round_voters(&round, REDLOCK_VOTE_TIMEOUT), 0x0e);
    assert_false(
        round_vote(&round, 1, REDLOCK_VOTE_GRANTED, 0)); /* late: recorded, but the no stays */
    assert_false(round_vote(&round, 2, REDLOCK_VOTE_GRANTED, 0));
    assert_int_equal(round.verdict, ROUND_NO);
    assert_int_equal(round_voters(&round, REDLOCK_VOTE_GRANTED), 0x01);
    assert_int_equal(round_voters(&round, REDLOCK_VOTE_LATE), 0x06);
    assert_int_equal(round_possible_holders(&round), 0x0f);
}

/* Late grants may turn a renewal into a yes; a quorum of one list is no quorum of both. */
static void test_late_grants_may_be_a_quorum(void **state) {
    (void)state;
    struct round round = begin(ROUND_RENEW, 5, 0);
    round_vote(&round, 0, REDLOCK_VOTE_GRANTED, 0);
    assert_false(round_was_granted_late(&round));
    round_expire(&round, round.silent, MS(50));
    round_vote(&round, 1, REDLOCK_VOTE_GRANTED, 0);
    round_vote(&round, 2, REDLOCK_VOTE_MISSING, 0);
    assert_false(round_was_granted_late(&round));
    round_vote(&round, 4, REDLOCK_VOTE_GRANTED, 0);
    assert_true(round_was_granted_late(&round));
    round_begin(&round, answers, ROUND_RENEW, (struct quorum_lists){0x07, 0x38}, 0, MS(10000), 0);
    round_expire(&round, round.silent, MS(50));
    for (uint32_t node = 0; node < 4; node++) {
        round_vote(&round, node, REDLOCK_VOTE_GRANTED, 0);
    }
    assert_false(round_was_granted_late(&round));
    round_vote(&round, 5, REDLOCK_VOTE_GRANTED, 0);
    assert_true(round_was_granted_late(&round));
}

/* A QUEUE, however, keeps waiting: the nodes will answer, and may push. */
static void test_the_deadline_decides_rounds(void **state) {
    (void)state;
    for (uint32_t nodes = 1; nodes <= REDLOCK_MAX_NODES; nodes++) {
        for (int kind = ROUND_ACQUIRE; kind <= ROUND_DIAGNOSE; kind++) {
            struct round round = begin((enum round_kind)kind, nodes, 1);
            round_expire(&round, round.silent, MS(50));
            assert_int_equal(round.verdict, kind == ROUND_DIAGNOSE ? ROUND_YES
                                            : kind == ROUND_QUEUE  ? ROUND_OPEN
                                                                   : ROUND_NO);
            round_expire(&round, round.silent, MS(50)); /* a second time, without effect */
            assert_int_equal(round_voters(&round, REDLOCK_VOTE_TIMEOUT), first(nodes));
        }
    }
}

static void test_a_timeout_is_no_proof_of_loss(void **state) {
    (void)state;
    struct round round = begin(ROUND_RENEW, 5, 0);
    round_vote(&round, 0, REDLOCK_VOTE_MISSING, 0);
    round_vote(&round, 1, REDLOCK_VOTE_MISSING, 0);
    round_expire(&round, round.silent, MS(50));
    assert_int_equal(round.verdict, ROUND_NO);
}

/* ---- diagnosing ---- */

/*
 * Votes for the silent nodes in each order: the round is over exactly when all awaited votes have
 * come.
 */
static void decide_in_every_order(const struct round *round, uint32_t awaited) {
    for (uint32_t node = 0; node < round->tallies[0].size; node++) {
        if ((round->silent & 1u << node) == 0) {
            continue;
        }
        struct round after = *round;
        redlock_vote vote = alphabet[(node + awaited) % COUNT_OF(alphabet)];
        bool decided = round_vote(&after, node, vote, 0);
        bool is_over = (after.silent & awaited) == 0;
        assert_int_equal(after.verdict, is_over ? ROUND_YES : ROUND_OPEN);
        assert_int_equal(decided, is_over && round->verdict == ROUND_OPEN);
        decide_in_every_order(&after, awaited);
    }
}

static void test_diagnosing_waits_for_the_awaited(void **state) {
    (void)state;
    for (uint32_t nodes = 1; nodes <= 5; nodes++) {
        for (uint32_t awaited = 0; awaited <= first(nodes); awaited++) {
            struct round round = begin(ROUND_DIAGNOSE, nodes, awaited);
            assert_int_equal(round.verdict, awaited == 0 ? ROUND_YES : ROUND_OPEN);
            decide_in_every_order(&round, awaited);
        }
    }
}

/* ---- masks ---- */

static void test_who_voted_what(void **state) {
    (void)state;
    struct round round = begin(ROUND_ACQUIRE, 32, 0);
    const uint32_t kinds = COUNT_OF(alphabet);
    for (uint32_t i = 0; i < 3 * kinds; i++) {
        round_vote(&round, i, alphabet[i % kinds], i);
    }
    round_vote(&round, 31, REDLOCK_VOTE_DENIED, 9);
    uint32_t seen = 0;
    for (uint32_t i = 0; i < COUNT_OF(alphabet); i++) {
        uint32_t expected = (1u << i) * (1 | 1u << kinds | 1u << 2 * kinds);
        expected |= alphabet[i] == REDLOCK_VOTE_DENIED ? UINT32_C(1) << 31 : 0;
        assert_int_equal(round_voters(&round, alphabet[i]), expected);
        seen |= expected;
    }
    assert_int_equal(round_voters(&round, REDLOCK_VOTE_NONE), ~seen);
    assert_int_equal(round.silent, ~seen);
}

static void test_deniers_and_possible_holders(void **state) {
    (void)state;
    static const struct {
        redlock_vote vote;
        bool denies, may_hold;
    } rows[] = {
        {REDLOCK_VOTE_NONE, false, true},         {REDLOCK_VOTE_GRANTED, false, true},
        {REDLOCK_VOTE_DENIED, true, false},       {REDLOCK_VOTE_WRONG_TYPE, true, false},
        {REDLOCK_VOTE_NO_EXPIRY, true, false},    {REDLOCK_VOTE_ERROR, false, true},
        {REDLOCK_VOTE_TIMEOUT, false, true},      {REDLOCK_VOTE_BROKEN, false, true},
        {REDLOCK_VOTE_UNREACHABLE, false, false}, {REDLOCK_VOTE_REFUSED, false, false},
    };
    for (uint32_t node = 0; node < 32; node++) {
        for (size_t i = 0; i < COUNT_OF(rows); i++) {
            struct round round = begin(ROUND_ACQUIRE, 32, 0);
            if (rows[i].vote != REDLOCK_VOTE_NONE) {
                round_vote(&round, node, rows[i].vote, 0);
            }
            uint32_t bit = UINT32_C(1) << node;
            bool was_sent = rows[i].denies || rows[i].may_hold;
            assert_int_equal(round_unsent(&round), was_sent ? 0 : bit);
            assert_int_equal(round_deniers(&round), rows[i].denies ? bit : 0);
            assert_int_equal(round_possible_holders(&round), rows[i].may_hold ? UINT32_MAX : ~bit);
        }
    }
}

/* A push counts in place of a denial, once, and only in an open QUEUE. */
static void test_pushes(void **state) {
    (void)state;
    struct round round = begin(ROUND_QUEUE, 3, 0);
    for (uint32_t node = 0; node < 3; node++) {
        round_mark_queued(&round, node, 0);
        assert_false(round_vote(&round, node, REDLOCK_VOTE_DENIED, 100));
    }
    assert_false(round_awaits_push(&round, 3)); /* not asked */
    assert_false(round_push(&round, 0, 0, START + MS(900)));
    assert_false(round_awaits_push(&round, 0)); /* has granted */
    assert_int_equal(round_voters(&round, REDLOCK_VOTE_GRANTED), 1);
    assert_true(round_push(&round, 1, 0, START + MS(800)));
    assert_int_equal(round.verdict, ROUND_YES);
    assert_int_equal(round.pushed, 3);
    assert_false(round_awaits_push(&round, 2));
    assert_int_equal(round_certain_until(&round, START + TTL), START + MS(800));
    round = begin(ROUND_ACQUIRE, 3, 0);
    assert_false(round_awaits_push(&round, 0));
}

/* The quorum that lasts longest counts, of grants of both kinds. */
static void test_how_long_a_quorum_is_certain(void **state) {
    (void)state;
    struct round round = begin(ROUND_QUEUE, 5, 0);
    round_push(&round, 4, 0, START + MS(100));
    round_push(&round, 1, 0, START + MS(700));
    round_grant(&round, 0, 0);
    assert_int_equal(round.verdict, ROUND_YES);
    assert_int_equal(round_certain_until(&round, START + MS(900)), START + MS(100));
    round_grant(&round, 2, 0);
    assert_int_equal(round_certain_until(&round, START + MS(900)), START + MS(700));
    round_grant(&round, 3, 0);
    assert_int_equal(round_certain_until(&round, START + MS(900)), START + MS(900));
    assert_int_equal(round_certain_until(&round, START + MS(600)), START + MS(600));
}

/* As many keys must expire as the quorum lacks; silent nodes have reported nothing. */
static void test_when_a_quorum_is_free(void **state) {
    (void)state;
    struct round round = begin(ROUND_QUEUE, 5, 0);
    assert_int_equal(round_free_in_ms(&round), UINT32_MAX);
    round_vote(&round, 0, REDLOCK_VOTE_DENIED, 300);
    round_vote(&round, 1, REDLOCK_VOTE_DENIED, 100);
    assert_int_equal(round_free_in_ms(&round), UINT32_MAX);
    round_vote(&round, 2, REDLOCK_VOTE_DENIED, 200);
    assert_int_equal(round_free_in_ms(&round), 300);
    round_push(&round, 3, 0, START + MS(900));
    assert_int_equal(round_free_in_ms(&round), 200);
    round_push(&round, 4, 0, START + MS(900));
    assert_int_equal(round_free_in_ms(&round), 100);
    round_push(&round, 0, 0, START + MS(900));
    assert_int_equal(round_free_in_ms(&round), 0);
}

static void test_which_votes_leave_a_command_undone(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(alphabet); i++) {
        bool is_undone = alphabet[i] == REDLOCK_VOTE_ERROR || alphabet[i] == REDLOCK_VOTE_BROKEN ||
                         alphabet[i] == REDLOCK_VOTE_UNREACHABLE;
        assert_int_equal(round_vote_leaves_undone(alphabet[i]), is_undone);
    }
}

static void test_32_nodes_need_17(void **state) {
    (void)state;
    struct round round = begin(ROUND_ACQUIRE, 32, 0);
    for (uint32_t i = 31; i > 15; i--) {
        assert_false(round_vote(&round, i, REDLOCK_VOTE_GRANTED, 0));
    }
    assert_true(round_vote(&round, 15, REDLOCK_VOTE_GRANTED, 0));
    assert_int_equal(round.verdict, ROUND_YES);
    assert_int_equal(round.silent, 0x7fff);
}

/* A grant that replicas have to confirm reports its fence before it counts. */
static void test_a_fence_may_come_before_its_vote(void **state) {
    (void)state;
    struct round round = begin(ROUND_ACQUIRE, 5, 0);
    round_record_fence(&round, 2, 7);
    assert_int_equal(round_answer(&round, 2).fence, 7);
    assert_int_equal(round_fence(&round), 0);
    round_grant(&round, 2, round_answer(&round, 2).fence);
    assert_int_equal(round_fence(&round), 7);
    round_record_fence(&round, 3, 9);
    round_vote(&round, 3, REDLOCK_VOTE_UNTRUSTED, 0);
    assert_int_equal(round_fence(&round), 7);
}

/* A void grant does not count for a later decision, and does not change an earlier one. */
static void test_a_grant_may_be_void(void **state) {
    (void)state;
    struct round round = begin(ROUND_ACQUIRE, 3, 0);
    round_grant(&round, 2, 0);
    assert_int_equal(round_grants(&round), 1U << 2);
    assert_false(round_void(&round, 2));
    assert_int_equal(round_grants(&round), 0);
    assert_false(round_grant(&round, 1, 0));
    assert_true(round_grant(&round, 0, 0));
    assert_int_equal(round.verdict, ROUND_YES);
    assert_int_equal(round_grants(&round), 0); /* too late to take them back */
    assert_int_equal(round.votes[2], REDLOCK_VOTE_UNTRUSTED);
}

static void test_a_void_grant_may_be_the_one_that_was_needed(void **state) {
    (void)state;
    struct round round = begin(ROUND_ACQUIRE, 3, 0);
    round_grant(&round, 2, 0);
    round_vote(&round, 1, REDLOCK_VOTE_DENIED, 0);
    assert_true(round_void(&round, 2));
    assert_int_equal(round.verdict, ROUND_NO);
    assert_false(round_grant(&round, 0, 0));
    assert_false(round_void(&round, 0)); /* it was decided before */
}

/* Begins a round in which all of three nodes have denied and given an entry. */
static struct round begin_in_queue(void) {
    struct round round = begin(ROUND_QUEUE, 3, 0);
    for (uint32_t i = 0; i < 3; i++) {
        round_mark_queued(&round, i, 1);
        round_vote(&round, i, REDLOCK_VOTE_DENIED, 1000);
    }
    return round;
}

/* A node whose push is void may push again. */
static void test_a_pushed_grant_may_be_void(void **state) {
    (void)state;
    struct round round = begin_in_queue();
    assert_false(round_push(&round, 2, 0, START + MS(100)));
    assert_false(round_void(&round, 2));
    assert_false(round_push(&round, 1, 0, START + MS(100)));
    assert_true(round_push(&round, 0, 0, START + MS(100)));
    assert_int_equal(round.verdict, ROUND_YES);
}

/* The vote that a push casts instead is the node's, with its own TTL. */
static void test_a_push_that_does_not_count_is_a_vote(void **state) {
    (void)state;
    struct round round = begin_in_queue();
    round_withdraw(&round, 1);
    assert_int_equal(round.votes[1], REDLOCK_VOTE_NONE);
    assert_int_equal(round.silent, 1 << 1);
    assert_false(round_vote(&round, 1, REDLOCK_VOTE_UNTRUSTED, 5000));
    assert_int_equal(round.votes[1], REDLOCK_VOTE_UNTRUSTED);
    assert_int_equal(round_answer(&round, 1).other_ttl_ms, 5000);
    round_withdraw(&round, 2);
    assert_true(round_vote(&round, 2, REDLOCK_VOTE_ERROR, 0)); /* one node may still grant */
    assert_int_equal(round.verdict, ROUND_NO);
}

/* A renewal that was granted late counts only while its grants do. */
static void test_a_late_grant_may_be_void(void **state) {
    (void)state;
    struct round round = begin(ROUND_RENEW, 3, 0);
    round_expire(&round, round.silent, MS(50));
    round_grant(&round, 0, 0);
    round_grant(&round, 1, 0);
    assert_true(round_was_granted_late(&round));
    assert_false(round_void(&round, 1));
    assert_false(round_was_granted_late(&round));
}

static void test_a_round_begins_empty(void **state) {
    (void)state;
    struct round round = begin(ROUND_RENEW, 32, 0);
    assert_int_equal(round.kind, ROUND_RENEW);
    assert_int_equal(round.start, START);
    assert_int_equal(round.ttl, TTL);
    assert_int_equal(round.tallies[0].granted + round.tallies[0].gone, 0);
    assert_int_equal(round.silent, UINT32_MAX);
    assert_int_equal(round_voters(&round, REDLOCK_VOTE_NONE), UINT32_MAX);
    for (uint32_t i = 0; i < 32; i++) {
        assert_int_equal(round_answer(&round, i).other_ttl_ms, 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_sequence_of_votes_to_acquire),
        cmocka_unit_test(test_every_sequence_of_votes_to_queue),
        cmocka_unit_test(test_every_sequence_of_votes_to_raise),
        cmocka_unit_test(test_every_sequence_of_votes_to_renew),
        cmocka_unit_test(test_the_fence_is_the_largest_that_was_granted),
        cmocka_unit_test(test_a_fence_beyond_the_limit_is_the_smallest),
        cmocka_unit_test(test_what_was_beyond_is_reported),
        cmocka_unit_test(test_a_quorum_agrees_on_a_fence),
        cmocka_unit_test(test_a_fence_of_two_lists),
        cmocka_unit_test(test_every_sequence_of_votes_to_release),
        cmocka_unit_test(test_every_sequence_of_votes_of_two_lists),
        cmocka_unit_test(test_whether_it_is_kept_is_the_lists_word_alone),
        cmocka_unit_test(test_a_node_that_is_not_asked_has_no_vote),
        cmocka_unit_test(test_unreachable_nodes_count),
        cmocka_unit_test(test_votes_after_the_verdict_are_only_written_down),
        cmocka_unit_test(test_a_node_votes_once),
        cmocka_unit_test(test_a_connection_that_breaks_after_a_timeout_changes_nothing),
        cmocka_unit_test(test_one_node_is_no_quorum_however_often_it_answers),
        cmocka_unit_test(test_the_deadline_is_the_vote_of_the_silent),
        cmocka_unit_test(test_late_grants_may_be_a_quorum),
        cmocka_unit_test(test_the_deadline_decides_rounds),
        cmocka_unit_test(test_a_timeout_is_no_proof_of_loss),
        cmocka_unit_test(test_diagnosing_waits_for_the_awaited),
        cmocka_unit_test(test_who_voted_what),
        cmocka_unit_test(test_deniers_and_possible_holders),
        cmocka_unit_test(test_pushes),
        cmocka_unit_test(test_how_long_a_quorum_is_certain),
        cmocka_unit_test(test_when_a_quorum_is_free),
        cmocka_unit_test(test_which_votes_leave_a_command_undone),
        cmocka_unit_test(test_32_nodes_need_17),
        cmocka_unit_test(test_a_fence_may_come_before_its_vote),
        cmocka_unit_test(test_a_grant_may_be_void),
        cmocka_unit_test(test_a_void_grant_may_be_the_one_that_was_needed),
        cmocka_unit_test(test_a_pushed_grant_may_be_void),
        cmocka_unit_test(test_a_push_that_does_not_count_is_a_vote),
        cmocka_unit_test(test_a_late_grant_may_be_void),
        cmocka_unit_test(test_a_round_begins_empty),
    };
    return cmocka_run_group_tests_name("round", tests, NULL, NULL);
}
