/*
 * Tests lean requests: rounds that leave nodes out, leases whose key a part of the nodes has, and
 * the usual time of an answer.
 */
#include "base/latency.h"
#include "base/nanos.h"
#include "core/tries.h"
#include "rig.h"
#include "unit.h"

#define OTHERS 0x18 /* mask: the nodes that are left out */

/* ---- rounds ---- */

static struct round_answer answers[REDLOCK_MAX_NODES];

static struct round begin(enum round_kind kind) {
    struct round round;
    round_begin(&round, answers, kind, (struct quorum_lists){0x1f, 0}, T0, MS(10000), 0);
    round_leave_out(&round, OTHERS);
    return round;
}

/* Votes for the first nodes: G granted, D denied, M missing, U unreachable; a space: none yet. */
static void vote(struct round *round, const char *votes) {
    for (uint32_t i = 0; votes[i] != '\0'; i++) {
        switch (votes[i]) {
        case 'G':
            round_grant(round, i, 0);
            break;
        case 'D':
            round_vote(round, i, REDLOCK_VOTE_DENIED, 1000);
            break;
        case 'M':
            round_vote(round, i, REDLOCK_VOTE_MISSING, 0);
            break;
        case 'U':
            round_vote(round, i, REDLOCK_VOTE_UNREACHABLE, 0);
            break;
        default:
            break;
        }
    }
}

/* Returns whether the votes of an ACQUIRE have the others asked, and checks its verdict. */
static bool wants_others(const char *votes, enum round_verdict verdict) {
    struct round round = begin(ROUND_ACQUIRE);
    vote(&round, votes);
    assert_int_equal(round.verdict, verdict);
    return round_wants_others(&round);
}

static void test_the_others_are_asked_when_the_first_do_not_suffice(void **state) {
    (void)state;
    assert_false(wants_others("", ROUND_OPEN));
    assert_false(wants_others("GG", ROUND_OPEN));
    assert_false(wants_others("GGG", ROUND_YES));
    assert_true(wants_others("U", ROUND_OPEN));
    assert_true(wants_others("GGU", ROUND_OPEN));
    assert_false(wants_others("D", ROUND_OPEN)); /* most denials come from all of them */
    assert_false(wants_others("DU", ROUND_OPEN));
    assert_true(wants_others("DGG", ROUND_OPEN));
    assert_true(wants_others("DUG", ROUND_OPEN));
    assert_false(wants_others("DDD", ROUND_GONE));
}

static void test_the_others_complete_the_quorum(void **state) {
    (void)state;
    struct round round = begin(ROUND_ACQUIRE);
    vote(&round, "GUG");
    assert_int_equal(round_possible_holders(&round), 0x05);
    assert_int_equal(round_ask_others(&round), OTHERS);
    assert_int_equal(round_ask_others(&round), 0);
    assert_false(round_wants_others(&round));
    assert_int_equal(round_possible_holders(&round), 0x1d);
    round_grant(&round, 4, 0);
    assert_int_equal(round.verdict, ROUND_YES);
    assert_int_equal(round.silent, 0x08);
}

static void test_who_was_not_asked_has_nothing(void **state) {
    (void)state;
    struct round round = begin(ROUND_ACQUIRE);
    vote(&round, "GGG");
    assert_int_equal(round.silent, 0);
    assert_int_equal(round_possible_holders(&round), 0x07);
    round = begin(ROUND_ACQUIRE);
    vote(&round, "DDD");
    assert_int_equal(tries_failure(&round), REDLOCK_EHELD);
    assert_int_equal(round_possible_holders(&round), 0);
}

/* Nobody waits for nodes that were never asked. */
static void test_a_deadline_ends_the_round_without_them(void **state) {
    (void)state;
    struct round round = begin(ROUND_ACQUIRE);
    vote(&round, "GG");
    round_expire(&round);
    assert_int_equal(round.verdict, ROUND_NO);
    assert_int_equal(round_voters(&round, REDLOCK_VOTE_TIMEOUT), 0x04);
    round = begin(ROUND_ACQUIRE);
    vote(&round, "DDG");
    assert_int_equal(round.verdict, ROUND_OPEN);
    round_expire(&round);
    assert_int_equal(round.verdict, ROUND_NO);
    round_expire(&round);
    assert_int_equal(round_voters(&round, REDLOCK_VOTE_TIMEOUT), 0);
}

static enum round_verdict verdict_of(enum round_kind kind, const char *votes) {
    struct round round = begin(kind);
    assert_int_equal(round.silent, 0x07);
    vote(&round, votes);
    assert_false(round_wants_others(&round));
    return (enum round_verdict)round.verdict;
}

static void test_other_rounds_are_decided_without_them(void **state) {
    (void)state;
    struct round renewal = begin(ROUND_RENEW);
    assert_false(round_wants_others(&renewal));
    assert_int_equal(verdict_of(ROUND_RENEW, "GGG"), ROUND_YES);
    assert_int_equal(verdict_of(ROUND_RENEW, "GGU"), ROUND_NO);
    assert_int_equal(verdict_of(ROUND_RENEW, "GGM"), ROUND_GONE);
    assert_int_equal(verdict_of(ROUND_RENEW, "M"), ROUND_GONE); /* no quorum can have it */
    assert_int_equal(verdict_of(ROUND_RELEASE, "GGG"), ROUND_YES);
    assert_int_equal(verdict_of(ROUND_RELEASE, "GGU"), ROUND_NO);
    assert_int_equal(verdict_of(ROUND_RELEASE, "M"), ROUND_GONE); /* no quorum can have had it */
}

/* ---- leases ---- */

static struct lease_terms watched(void) {
    struct lease_terms terms = rig_terms();
    terms.watchdog = true;
    return terms;
}

/* Holds a lock that the first three nodes have granted. */
static void hold(struct rig *rig, const struct lease_terms *terms) {
    rig_start_lean(rig, terms);
    rig_votes(rig, "GGG");
    assert_state(rig, LEASE_HELD);
    assert_int_equal(rig->lease.may_hold, 0x07);
    assert_int_equal(lease_spare(&rig->lease), OTHERS);
    rig_renew_at_the_end(rig);
}

/* Asserts that the others are given the key, for as long as it is valid, and all renew it. */
static void assert_widened(const struct rig *rig) {
    assert_sent(rig, ROUND_RENEW);
    assert_state(rig, LEASE_RENEWING);
    assert_int_equal(rig->update.top_up, OTHERS);
    assert_int_equal(rig->update.top_up_ttl, rig->lease.holding.validity_end - rig->now);
    assert_int_equal(rig->lease.may_hold, 0x1f);
    assert_int_equal(rig->round.unasked, 0);
}

static void test_it_is_renewed_where_it_is(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = watched();
    hold(&rig, &terms);
    rig_wake_on_time(&rig);
    assert_sent(&rig, ROUND_RENEW);
    assert_int_equal(rig.round.silent, 0x07);
    rig_votes(&rig, "GGG");
    assert_state(&rig, LEASE_HELD);
    assert_nothing_sent(&rig);
}

static void test_a_node_that_fails_gives_the_others_the_key(void **state) {
    (void)state;
    static const char *const failures[] = {"GGU", "G-G", "EGG"};
    struct lease_terms terms = watched();
    for (size_t i = 0; i < COUNT_OF(failures); i++) {
        struct rig rig;
        hold(&rig, &terms);
        rig_wake_on_time(&rig);
        rig_votes(&rig, failures[i]);
        assert_widened(&rig);
        rig_votes(&rig, failures[i]);
        rig_votes(&rig, "   GG");
        assert_state(&rig, LEASE_HELD);
        assert_false(rig.lease.is_unrenewed);
    }
}

/* A node that does not answer is not waited for as long as where no others are left. */
static void test_a_silent_node_gives_the_others_the_key(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = watched();
    hold(&rig, &terms);
    rig_wake_on_time(&rig);
    rig_votes(&rig, "GG");
    assert_int_equal(rig.lease.wake_at, rig.now + terms.node_timeout);
    rig_wake_on_time(&rig);
    assert_widened(&rig);
    assert_true(rig.lease.wake_at > rig.now + 10 * terms.node_timeout);
    rig_votes(&rig, "GG");
    rig_wake_on_time(&rig);
    assert_state(&rig, LEASE_RENEWING); /* it waits on: a quorum is still to answer */
    rig_votes(&rig, "   G");
    assert_state(&rig, LEASE_HELD);
}

static void test_an_extension_succeeds_with_the_others(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = rig_terms();
    hold(&rig, &terms);
    rig_pass(&rig, MS(100));
    assert_int_equal(rig_extend(&rig, MS(5000)), REDLOCK_OK);
    rig_votes(&rig, "GUG");
    assert_widened(&rig);
    assert_int_equal(rig.update.ttl, MS(5000));
    assert_int_equal(rig.extended, 0);
    rig_votes(&rig, "GUGGG");
    assert_state(&rig, LEASE_HELD);
    assert_int_equal(rig.update.extended, REDLOCK_OK);
    assert_int_equal(rig.lease.ttl, MS(5000));
}

static void test_it_is_too_late_for_the_others(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = watched();
    terms.max_hold = MS(3335);
    hold(&rig, &terms);
    rig_wake_on_time(&rig);
    assert_sent(&rig, ROUND_RENEW);
    rig_pass(&rig, MS(10));
    rig_votes(&rig, "GGU"); /* max_hold is over */
    assert_state(&rig, LEASE_HELD);
    assert_nothing_sent(&rig);

    terms = rig_terms();
    hold(&rig, &terms);
    rig.now = rig.lease.holding.lost_at - MS(5);
    assert_int_equal(rig_extend(&rig, MS(5000)), REDLOCK_OK);
    rig.now = rig.lease.holding.lost_at;
    rig_votes(&rig, "GGU");
    assert_int_equal(rig.update.extended, REDLOCK_ENOQUORUM);
    assert_nothing_sent(&rig);
}

static void assert_lost(const struct rig *rig) {
    assert_state(rig, LEASE_LOST);
    assert_int_equal(rig->update.loss, REDLOCK_ELOST);
}

/* Of a bare quorum one without the key is enough: somebody else may have had a quorum since. */
static void test_it_is_lost_where_one_node_lacks_it(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = watched();
    hold(&rig, &terms);
    rig_wake_on_time(&rig);
    rig_votes(&rig, "GM");
    assert_lost(&rig);
}

static redlock_status release_with(struct rig *rig, const char *votes) {
    rig_release(rig);
    rig_votes(rig, votes);
    assert_state(rig, LEASE_OVER);
    return rig->update.released;
}

/* A release tells the loss, also where those who stood in have the key. */
static void test_a_release_tells_what_became_of_it(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = watched();
    hold(&rig, &terms);
    assert_int_equal(release_with(&rig, "GGG"), REDLOCK_OK);
    hold(&rig, &terms);
    rig_wake_on_time(&rig);
    rig_votes(&rig, "GGU");
    rig_votes(&rig, "GGMG");
    assert_lost(&rig);
    assert_int_equal(release_with(&rig, "GGMGG"), REDLOCK_ELOST);
}

/* So it is where the others have stood in for that node, however late it says so. */
static void test_it_is_lost_where_one_node_had_lacked_it(void **state) {
    (void)state;
    struct lease_terms terms = watched();
    static const char *const votes[] = {"GGM", "GMG", "GGD"};
    for (size_t i = 0; i < COUNT_OF(votes); i++) {
        struct rig rig;
        hold(&rig, &terms);
        rig_wake_on_time(&rig);
        rig_votes(&rig, "GGU");
        assert_widened(&rig);
        rig_votes(&rig, votes[i]);
        rig_votes(&rig, "   GG");
        assert_lost(&rig);
    }
}

static void test_it_is_lost_where_one_node_says_so_late(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = watched();
    hold(&rig, &terms);
    rig_wake_on_time(&rig);
    rig_votes(&rig, "GGU");
    rig_votes(&rig, "GG G");
    assert_state(&rig, LEASE_HELD);
    rig_votes(&rig, "  M");
    assert_lost(&rig);
}

/* The next renewal is one of a lock that all have. */
static void test_those_who_stood_in_count_from_the_next_renewal_on(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = watched();
    hold(&rig, &terms);
    rig_wake_on_time(&rig);
    rig_votes(&rig, "GGU");
    rig_votes(&rig, "GGUGG");
    rig_renew_at_the_end(&rig);
    rig_wake_on_time(&rig);
    rig_votes(&rig, "GGMGG");
    assert_state(&rig, LEASE_HELD);
}

/* A denial leaves the others: with their grants the lock stands at them, too. */
static void test_a_split_vote_is_completed_by_the_others(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = rig_terms();
    rig_start_lean(&rig, &terms);
    rig_votes(&rig, "GDG");
    assert_true(round_wants_others(&rig.round));
    round_ask_others(&rig.round);
    rig_votes(&rig, "   G");
    assert_state(&rig, LEASE_HELD);
    assert_int_equal(rig.lease.may_hold, 0x1d);
    assert_int_equal(rig_release(&rig), REDLOCK_OK);
    assert_int_equal(rig.round.silent, 0x1d);
}

/* ---- the usual time of an answer ---- */

static void test_the_usual_time_follows_the_answers(void **state) {
    (void)state;
    struct latency latency = {0};
    assert_int_equal(latency_bound(&latency), 0);
    latency_note(&latency, MS(8));
    assert_int_equal(latency_bound(&latency), MS(24));
    for (unsigned i = 0; i < 100; i++) {
        latency_note(&latency, MS(8));
    }
    assert_int_in_range(latency_bound(&latency), MS(8), MS(9)); /* they do not vary */
    latency_note(&latency, MS(40));
    assert_int_in_range(latency_bound(&latency), MS(40), MS(50));
    for (unsigned i = 0; i < 100; i++) {
        latency_note(&latency, i % 2 == 0 ? MS(1) : MS(3));
    }
    assert_int_in_range(latency_bound(&latency), MS(3), MS(8));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_others_are_asked_when_the_first_do_not_suffice),
        cmocka_unit_test(test_the_others_complete_the_quorum),
        cmocka_unit_test(test_who_was_not_asked_has_nothing),
        cmocka_unit_test(test_a_deadline_ends_the_round_without_them),
        cmocka_unit_test(test_other_rounds_are_decided_without_them),
        cmocka_unit_test(test_it_is_renewed_where_it_is),
        cmocka_unit_test(test_a_node_that_fails_gives_the_others_the_key),
        cmocka_unit_test(test_a_silent_node_gives_the_others_the_key),
        cmocka_unit_test(test_an_extension_succeeds_with_the_others),
        cmocka_unit_test(test_it_is_too_late_for_the_others),
        cmocka_unit_test(test_it_is_lost_where_one_node_lacks_it),
        cmocka_unit_test(test_a_release_tells_what_became_of_it),
        cmocka_unit_test(test_it_is_lost_where_one_node_had_lacked_it),
        cmocka_unit_test(test_it_is_lost_where_one_node_says_so_late),
        cmocka_unit_test(test_those_who_stood_in_count_from_the_next_renewal_on),
        cmocka_unit_test(test_a_split_vote_is_completed_by_the_others),
        cmocka_unit_test(test_the_usual_time_follows_the_answers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
