/* Tests the choice of the next permit, by the nodes' answers about free permits. */
#include "core/permits.h"

#include "unit.h"

#include <string.h>

#define TRIED 0

struct votes {
    const char *votes; /* a letter a node: G granted, D denied, U unreachable, - no answer yet */
    uint32_t free_at[4];
    uint32_t next; /* second list; 0: none */
};

static struct round_answer answers[REDLOCK_MAX_NODES];

static void ask(struct round *round, struct permits *permits, const struct votes *said,
                uint32_t count) {
    uint32_t nodes = (1u << strlen(said->votes)) - 1;
    struct quorum_lists lists = {nodes & ~said->next, said->next};
    round_begin(round, answers, ROUND_ACQUIRE, lists, 1, 1, 0);
    permits_begin(permits, count);
    round->permits = permits;
    for (uint32_t i = 0; said->votes[i] != '\0'; i++) {
        if (said->votes[i] != '-') {
            round_vote(round, i,
                       said->votes[i] == 'G'   ? REDLOCK_VOTE_GRANTED
                       : said->votes[i] == 'D' ? REDLOCK_VOTE_DENIED
                                               : REDLOCK_VOTE_UNREACHABLE,
                       0);
        }
        for (uint32_t permit = 0; permit < count && permit < 4; permit++) {
            if (said->free_at[permit] >> i & 1) {
                permits_record(permits, i, permit);
            }
        }
    }
}

/*
 * Asserts, over many seeds, that the permits of a mask are chosen, and whether they are promising.
 */
static void assert_chosen(const struct votes *said, uint32_t expected, bool is_promising) {
    struct round round;
    struct permits permits;
    uint32_t chosen = 0;
    ask(&round, &permits, said, 4);
    for (uint64_t seed = 1; seed <= 100; seed++) {
        uint64_t state = seed;
        struct permit_choice choice = permits_choose(&round, TRIED, &state);
        assert_int_equal(choice.is_promising, is_promising);
        chosen |= 1u << choice.permit;
    }
    assert_int_equal(chosen, expected);
}

static void test_one_that_is_free_at_a_quorum_is_next(void **state) {
    (void)state;
    static const struct votes rows[] = {
        {"DDD--", {0, 0, 0x07, 0}, 0},
        {"DDDDD", {0, 0, 0x1c, 0}, 0},
        {"DDDUU", {0, 0, 0x07, 0}, 0},
        {"DDDDD", {0x1f, 0x03, 0x1f, 0x18}, 0}, /* a permit that was tried is not tried again */
        {"DDD", {0, 0x06, 0x07, 0x03}, 0},      /* at most nodes */
        {"D", {0, 0, 1, 0}, 0},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        assert_chosen(&rows[i], 1u << 2, true);
    }
}

/*
 * Such a node granted the tried permit, which it no longer counts as free; or its answer is still
 * to come.
 */
static void test_who_did_not_say_what_is_free_is_hoped_for(void **state) {
    (void)state;
    static const struct votes rows[] = {
        {"GGDDU", {0, 0, 0x0c, 0}, 0}, {"GDD", {0, 0, 0x02, 0}, 0}, {"DD--", {0, 0, 0x03, 0}, 0},
        {"D-", {0, 0, 0x01, 0}, 0},    {"GD", {0, 0, 0x02, 0}, 0},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        assert_chosen(&rows[i], 1u << 2, true);
    }
}

static void test_any_of_several_is_next(void **state) {
    (void)state;
    assert_chosen(&(struct votes){"DDD--", {0, 0x07, 0x03, 0x07}, 0}, 1u << 1 | 1u << 3, true);
    assert_chosen(&(struct votes){"DDD--", {0, 0x07, 0x07, 0x07}, 0}, 0x0e, true);
}

/* Without a quorum, a later try is for any other permit. */
static void test_without_a_quorum_none_is_promising(void **state) {
    (void)state;
    static const struct votes rows[] = {
        {"DDDDD", {0, 0, 0, 0}, 0},        {"DDDDD", {0, 0x03, 0x11, 0x0a}, 0},
        {"DUU", {0, 0x01, 0x01, 0x01}, 0}, /* free, but two nodes needed for a quorum do not answer
                                            */
        {"GGDUU", {0, 0, 0, 0}, 0},        /* no node knows of a free one */
        {"UUU", {0, 0, 0, 0}, 0},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        assert_chosen(&rows[i], 0x0e, false);
    }
}

static void test_both_lists_have_to_have_a_quorum(void **state) {
    (void)state;
    const uint32_t next = 0x38;
    assert_chosen(&(struct votes){"DDDDDD", {0, 0x1f, 0x33, 0x3b}, next}, 1u << 1 | 1u << 3, true);
    assert_chosen(&(struct votes){"DDDDDD", {0, 0x07, 0x38, 0x0f}, next}, 0x0e, false);
}

static void test_a_node_that_is_not_asked_does_not_count(void **state) {
    (void)state;
    struct round round;
    struct permits permits;
    uint64_t seed = 1;
    ask(&round, &permits, &(struct votes){"DDD", {0, 0x01, 0, 0}, 0}, 4);
    permits_record(&permits, 30, 1);
    permits_record(&permits, 31, 1);
    assert_false(permits_choose(&round, TRIED, &seed).is_promising);
}

static void test_of_one_there_is_no_other(void **state) {
    (void)state;
    struct round round;
    struct permits permits;
    uint64_t seed = 1;
    ask(&round, &permits, &(struct votes){"DDD", {0x07, 0, 0, 0}, 0}, 1);
    struct permit_choice choice = permits_choose(&round, 0, &seed);
    assert_int_equal(choice.permit, 0);
    assert_false(choice.is_promising);
    round_begin(&round, answers, ROUND_ACQUIRE, (struct quorum_lists){7, 0}, 1, 1,
                0); /* of a lock */
    choice = permits_choose(&round, 7, &seed);
    assert_int_equal(choice.permit, 7);
    assert_false(choice.is_promising);
    assert_int_equal(seed, 1);
}

static void test_the_last_of_the_most(void **state) {
    (void)state;
    struct round round;
    struct permits permits;
    uint64_t seed = 1;
    ask(&round, &permits, &(struct votes){"DDD", {0}, 0}, REDLOCK_MAX_PERMITS);
    for (uint32_t i = 0; i < REDLOCK_MAX_PERMITS; i++) {
        assert_int_equal(permits.free_at[i], 0);
    }
    permits_record(&permits, 0, REDLOCK_MAX_PERMITS - 1);
    permits_record(&permits, 2, REDLOCK_MAX_PERMITS - 1);
    struct permit_choice choice = permits_choose(&round, TRIED, &seed);
    assert_int_equal(choice.permit, REDLOCK_MAX_PERMITS - 1);
    assert_true(choice.is_promising);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_that_is_free_at_a_quorum_is_next),
        cmocka_unit_test(test_who_did_not_say_what_is_free_is_hoped_for),
        cmocka_unit_test(test_any_of_several_is_next),
        cmocka_unit_test(test_without_a_quorum_none_is_promising),
        cmocka_unit_test(test_both_lists_have_to_have_a_quorum),
        cmocka_unit_test(test_a_node_that_is_not_asked_does_not_count),
        cmocka_unit_test(test_of_one_there_is_no_other),
        cmocka_unit_test(test_the_last_of_the_most),
    };
    return cmocka_run_group_tests_name("permits", tests, NULL, NULL);
}
