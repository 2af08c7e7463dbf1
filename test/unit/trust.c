/* Tests whose votes count: restarts, memory, roles and clocks, to the nanosecond. */
#include "core/trust.h"
#include "unit.h"

#include <string.h>

#define S(seconds) MS(1000 * (seconds))
#define MAX_TTL S(30)
#define DRIFT 0.01
#define US_PER_S UINT64_C(1000000)

/* Start of the tests by the client's clock; by the node's clock. */
#define START S(1000)
#define WALL_US (UINT64_C(1700000000) * US_PER_S)

/* Answers stay valid forever, except in the tests of their age. */
static const struct trust_terms usual = {
    .guards = REDLOCK_GUARDS_ON, .max_ttl = MAX_TTL, .max_age = UINT64_MAX};

static struct trust begin(const struct trust_terms *terms) {
    struct trust trust;
    memset(&trust, 0xa5, sizeof(trust));
    trust_init(&trust, terms);
    trust_connected(&trust);
    return trust;
}

/*
 * Returns a heartbeat answer of a node whose clock agrees with the client's, with an old marker;
 * the answer takes no time.
 */
static struct trust_beat beat_at(uint64_t at) {
    return (struct trust_beat){.sent_at = at,
                               .received_at = at,
                               .time_us = WALL_US + (at - START) / 1000,
                               .age_us = 1000 * US_PER_S,
                               .last_us = WALL_US};
}

static bool feel(struct trust *trust, uint64_t at) {
    struct trust_beat beat = beat_at(at);
    return trust_beat(trust, &beat);
}

/* Gives faultless answers. */
static void answer_all(struct trust *trust, uint64_t at) {
    trust_server(trust, "run-1", 1000, at);
    trust_role(trust, true, at);
    assert_true(feel(trust, at));
}

static struct trust sound(const struct trust_terms *terms) {
    struct trust trust = begin(terms);
    answer_all(&trust, START);
    return trust;
}

static void assert_view(const struct trust *trust, uint64_t now, enum trust_fault fault,
                        uint64_t until) {
    struct trust_view view = trust_judge(trust, now);
    assert_int_equal(view.fault, fault);
    assert_int_equal(view.until, until);
}

#define assert_sound(trust, now) assert_view(trust, now, TRUST_NO_FAULT, 0)

/* Asserts that the node is young until then, and not one nanosecond longer. */
static void assert_young(const struct trust *trust, enum trust_fault fault, uint64_t until) {
    assert_view(trust, until - 1, fault, until);
    assert_sound(trust, until);
}

static void test_a_node_must_have_answered_everything(void **state) {
    (void)state;
    struct trust trust = begin(&usual);
    assert_view(&trust, START, TRUST_NOT_ASKED, 0);
    trust_server(&trust, "run-1", 1000, START);
    assert_view(&trust, START, TRUST_NOT_ASKED, 0);
    trust_role(&trust, true, START);
    assert_view(&trust, START, TRUST_NOT_ASKED, 0);
    assert_true(feel(&trust, START));
    assert_sound(&trust, START);
    trust_connected(&trust); /* another server may have replaced the node */
    assert_view(&trust, START, TRUST_NOT_ASKED, 0);
}

static void test_a_restart_is_over_after_max_ttl(void **state) {
    (void)state;
    static const struct {
        uint64_t uptime_s, missing_s; /* rest of max_ttl, 30 s */
    } rows[] = {{0, 30}, {1, 30}, {2, 29}, {30, 1}, {31, 0}, {32, 0}, {UINT64_MAX, 0}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct trust trust = begin(&usual);
        answer_all(&trust, START);
        trust = begin(&usual);
        trust_server(&trust, "run-1", rows[i].uptime_s, START);
        trust_role(&trust, true, START);
        assert_true(feel(&trust, START));
        if (rows[i].missing_s == 0) {
            assert_sound(&trust, START);
        } else {
            assert_young(&trust, TRUST_RESTARTED, START + S(rows[i].missing_s));
        }
    }
}

/* A second of the server may be 1/100 shorter than one of the client. */
static void test_its_clock_counts_for_no_more_than_drift_allows(void **state) {
    (void)state;
    struct trust_terms terms = usual;
    terms.drift = 0.5;
    struct trust trust = begin(&terms);
    trust_server(&trust, "run-1", 21, START);
    trust_role(&trust, true, START);
    struct trust_beat beat = beat_at(START);
    beat.age_us = 20 * US_PER_S + 1;
    assert_true(trust_beat(&trust, &beat));
    assert_int_equal(trust.until[TRUST_RESTARTED], START + S(20));
    assert_int_equal(trust.until[TRUST_FORGETFUL], START + S(20));
}

static void test_the_same_run_does_not_grow_young(void **state) {
    (void)state;
    struct trust trust = sound(&usual);
    trust_connected(&trust);
    answer_all(&trust, START + S(5));
    trust_server(&trust, "run-1", 0, START + S(5)); /* whatever the uptime is now */
    assert_sound(&trust, START + S(5));
}

static void test_another_run_is_as_old_as_it_says(void **state) {
    (void)state;
    struct trust trust = sound(&usual);
    uint64_t later = START + S(100);
    trust_connected(&trust);
    trust_server(&trust, "run-2", 11, later);
    trust_role(&trust, true, later);
    assert_true(feel(&trust, later));
    assert_young(&trust, TRUST_RESTARTED, later + S(20));
}

/* A run cannot have been up when the client last had an answer of the previous run. */
static void test_another_run_that_lies_is_young(void **state) {
    (void)state;
    struct trust trust = sound(&usual);
    uint64_t later = START + S(10);
    trust_connected(&trust);
    trust_server(&trust, "run-2", 12, later);
    trust_role(&trust, true, later);
    assert_true(feel(&trust, later));
    assert_young(&trust, TRUST_RESTARTED, later + MAX_TTL);
    trust = sound(&usual);
    trust_server(&trust, "run-2", 11, later); /* the longest possible uptime */
    assert_int_equal(trust.until[TRUST_RESTARTED], later + S(20));
}

static void test_a_long_run_id_is_cut_and_still_known(void **state) {
    (void)state;
    char id[100];
    memset(id, 'x', sizeof(id) - 1);
    id[sizeof(id) - 1] = '\0';
    struct trust trust = begin(&usual);
    trust_server(&trust, id, 1000, START);
    trust_server(&trust, id, 0, START);
    assert_int_equal(strlen(trust.run_id), TRUST_RUN_ID_MAX);
    assert_int_equal(trust.until[TRUST_RESTARTED], START);
}

static void test_a_memory_is_as_old_as_its_marker(void **state) {
    (void)state;
    static const struct {
        uint64_t age_us, missing;
    } rows[] = {{0, S(30)},
                {1, S(30)},
                {2, S(30) - 1000},
                {30 * US_PER_S, 1000},
                {30 * US_PER_S + 1, 0},
                {(UINT64_C(1) << 53) - 1, 0}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct trust trust = sound(&usual);
        struct trust_beat beat = beat_at(START + S(1));
        beat.age_us = rows[i].age_us;
        assert_true(trust_beat(&trust, &beat));
        if (rows[i].missing == 0) {
            assert_sound(&trust, START + S(1));
        } else {
            assert_young(&trust, TRUST_FORGETFUL, START + S(1) + rows[i].missing);
        }
    }
}

/* Returns a heartbeat answer of a node whose marker was begun at `begun`. */
static struct trust_beat beat_of_memory(uint64_t at, uint64_t begun) {
    struct trust_beat beat = beat_at(at);
    beat.age_us = (at - begun) / 1000;
    beat.last_us = beat.time_us;
    return beat;
}

/* Returns the trust in a node that has identified itself, and was not sent a heartbeat yet. */
static struct trust introduced(double drift) {
    struct trust_terms terms = usual;
    terms.drift = drift;
    struct trust trust = begin(&terms);
    trust_server(&trust, "run-1", 1000, START);
    trust_role(&trust, true, START);
    return trust;
}

/* Drift weakens what later heartbeats prove; what an earlier one has proven remains. */
static void test_a_memory_that_is_old_enough_stays_so(void **state) {
    (void)state;
    struct trust trust = introduced(0.01);
    for (uint64_t at = START; at < START + 2 * MAX_TTL; at += S(1)) {
        struct trust_beat beat = beat_of_memory(at, START);
        assert_true(trust_beat(&trust, &beat));
        assert_int_equal(trust_judge(&trust, at).fault,
                         at < START + MAX_TTL ? TRUST_FORGETFUL : TRUST_NO_FAULT);
    }
    uint64_t emptied = START + 2 * MAX_TTL;
    struct trust_beat beat = beat_of_memory(emptied + S(1), emptied);
    assert_true(trust_beat(&trust, &beat));
    assert_true(trust_judge(&trust, emptied + S(1)).until > emptied + MAX_TTL);
}

/* A marker that began at the same instant proves nothing for another run. */
static void test_another_run_proves_its_memory_anew(void **state) {
    (void)state;
    struct trust trust = introduced(0.01);
    struct trust_beat first = beat_of_memory(START, START);
    assert_true(trust_beat(&trust, &first));
    trust_server(&trust, "run-2", 1000, START + S(1));
    struct trust_beat second = beat_of_memory(START + S(20), START);
    assert_true(trust_beat(&trust, &second));
    assert_true(trust_judge(&trust, START + S(20)).until > START + MAX_TTL);
}

static void test_the_longest_fault_is_reported(void **state) {
    (void)state;
    struct trust trust = begin(&usual);
    trust_server(&trust, "run-1", 11, START);
    trust_role(&trust, true, START);
    struct trust_beat beat = beat_at(START);
    beat.age_us = 5 * US_PER_S + 1;
    assert_true(trust_beat(&trust, &beat));
    assert_young(&trust, TRUST_FORGETFUL, START + S(25));
    beat.age_us = 15 * US_PER_S + 1;
    assert_true(trust_beat(&trust, &beat));
    assert_young(&trust, TRUST_RESTARTED, START + S(20));
}

static void test_a_durable_node_may_be_young(void **state) {
    (void)state;
    struct trust_terms terms = usual;
    terms.is_durable = true;
    struct trust trust = begin(&terms);
    trust_server(&trust, "run-1", 0, START);
    trust_role(&trust, true, START);
    struct trust_beat beat = beat_at(START);
    beat.age_us = 0;
    assert_true(trust_beat(&trust, &beat));
    assert_sound(&trust, START);
    trust_role(&trust, false, START); /* not a replica, now or lately */
    assert_view(&trust, START, TRUST_REPLICA, 0);
    trust_role(&trust, true, START);
    assert_young(&trust, TRUST_PROMOTED, START + MAX_TTL);
}

static void test_a_replica_never_counts(void **state) {
    (void)state;
    struct trust trust = sound(&usual);
    trust_role(&trust, false, START + S(1));
    trust_role(&trust, false, START + S(2)); /* still a replica */
    assert_view(&trust, START + S(100), TRUST_REPLICA, 0);
    trust_role(&trust, true, START + S(200));
    assert_true(feel(&trust, START + S(200)));
    assert_young(&trust, TRUST_PROMOTED, START + S(230));
}

static void test_a_duplicate_never_counts(void **state) {
    (void)state;
    struct trust_terms terms = usual;
    for (int guards = REDLOCK_GUARDS_ON; guards <= REDLOCK_GUARDS_OFF; guards++) {
        terms.guards = (redlock_guards)guards;
        struct trust trust = sound(&terms);
        trust.original = "10.0.0.1:6379";
        assert_view(&trust, START, TRUST_DUPLICATE, 0);
    }
}

static void test_guards_may_be_off(void **state) {
    (void)state;
    struct trust_terms terms = usual;
    terms.guards = REDLOCK_GUARDS_OFF;
    struct trust trust = begin(&terms);
    assert_sound(&trust, START);
    trust_server(&trust, "run-1", 0, START);
    trust_refused(&trust, TRUST_ROLE, true, "NOPERM");
    assert_sound(&trust, START);
    trust_role(&trust, false, START);
    assert_view(&trust, START, TRUST_REPLICA, 0);
    trust_role(&trust, true, START);
    assert_sound(&trust, START);
}

static void test_who_refuses_to_answer_is_not_trusted(void **state) {
    (void)state;
    for (int topic = 0; topic < TRUST_TOPIC_COUNT; topic++) {
        struct trust trust = sound(&usual);
        trust_refused(&trust, (enum trust_topic)topic, topic % 2 == 0, "LOADING");
        assert_view(&trust, START, TRUST_REFUSED, 0);
        answer_all(&trust, START);
        assert_sound(&trust, START);
    }
}

static void test_what_is_forbidden_may_be_waived(void **state) {
    (void)state;
    struct trust_terms terms = usual;
    terms.guards = REDLOCK_GUARDS_LENIENT;
    struct trust trust = begin(&terms);
    for (int topic = 0; topic < TRUST_TOPIC_COUNT; topic++) {
        assert_view(&trust, START, TRUST_NOT_ASKED, 0);
        trust_refused(&trust, (enum trust_topic)topic, true, "NOPERM");
    }
    assert_sound(&trust, START);
    trust_refused(&trust, TRUST_BEAT, false, "OOM"); /* the heartbeat was not forbidden */
    assert_view(&trust, START, TRUST_REFUSED, 0);
}

/* ---- clocks ---- */

/*
 * Gives a heartbeat answer after `passed` by the client's clock, in which the node's clock advanced
 * by `went_us`; the answer takes `rtt`.
 */
static bool pass(struct trust *trust, uint64_t passed, int64_t went_us, uint64_t rtt) {
    struct trust_beat beat = beat_at(START);
    beat.sent_at = START + passed;
    beat.received_at = beat.sent_at + rtt;
    beat.time_us = WALL_US + (uint64_t)went_us;
    return trust_beat(trust, &beat);
}

static void test_a_jump_is_reported_with_its_figures(void **state) {
    (void)state;
    struct trust trust = sound(&usual);
    assert_false(pass(&trust, S(1), 6000000, 0));
    assert_int_equal(trust.clock_moved, MS(5000));
    assert_int_equal(trust.clock_took, S(1));
    assert_view(&trust, START + S(1), TRUST_CLOCK, START + S(31));
    assert_sound(&trust, START + S(31));
    trust = sound(&usual);
    assert_false(pass(&trust, S(1), -4000000, 0));
    assert_int_equal(trust.clock_moved, -(int64_t)MS(5000));
}

static void test_what_drift_and_grain_allow_is_no_jump(void **state) {
    (void)state;
    struct trust_terms terms = usual;
    terms.drift = 0.5; /* a node's clock may run twice as fast, or stand still */
    static const struct {
        uint64_t passed;
        int64_t went_us;
        uint64_t rtt;
        bool is_good;
    } rows[] = {
        {S(1), 1000000, 0, true},      {S(1), 2000000, 0, true},
        {S(1), 2002000, 0, true}, /* the granularity */
        {S(1), 2002001, 0, false},     {S(1), 0, 0, true},
        {S(1), -2000, 0, true},        {S(1), -2001, 0, false},
        {S(1), 22001, S(20), true}, /* read at any time within 20 s */
        {S(1), 42000000, S(20), true}, {0, 2000, 0, true},
        {0, 2001, 0, false},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct trust trust = sound(&terms);
        assert_int_equal(pass(&trust, rows[i].passed, rows[i].went_us, rows[i].rtt),
                         rows[i].is_good);
    }
}

/* Each second is within the granularity, but not their sum. */
static void test_a_rate_beyond_drift_adds_up(void **state) {
    (void)state;
    struct trust_terms terms = usual;
    terms.drift = DRIFT;
    struct trust fast = sound(&terms);
    struct trust allowed = sound(&terms);
    bool is_good = true;
    for (unsigned i = 1; i <= 10; i++) {
        is_good = is_good && pass(&fast, S(i), 1011200 * (int64_t)i, 0);
        assert_true(pass(&allowed, S(i), 1010000 * (int64_t)i, 0));
    }
    assert_false(is_good);
}

/* Without heartbeats the clock is known from the server's own report, and no key may rely on it. */
static void test_the_time_is_reported_without_beats(void **state) {
    (void)state;
    struct trust_terms terms = usual;
    terms.guards = REDLOCK_GUARDS_OFF;
    struct trust trust = begin(&terms);
    int64_t ahead;
    assert_false(trust_clock(&trust, &ahead));

    /* The wall clock is more exact than the answer, unless it is wrong by more than 1 s. */
    int64_t middle = (int64_t)(S(3600) - START - MS(1));
    int64_t edge = (int64_t)(S(1) + MS(1));
    trust_time(&trust, 3600 * US_PER_S, START, START + MS(2), middle + edge);
    assert_true(trust_clock(&trust, &ahead));
    assert_int_equal(ahead, middle + edge);
    trust_time(&trust, 3600 * US_PER_S, START, START + MS(2), middle + edge + 1);
    assert_true(trust_clock(&trust, &ahead));
    assert_int_equal(ahead, middle);
    trust_time(&trust, 3600 * US_PER_S, START, START + MS(2), middle - edge - 1);
    assert_true(trust_clock(&trust, &ahead));
    assert_int_equal(ahead, middle);
    assert_int_equal(trust_key_stands_until(&trust, 3700000, 3600 * US_PER_S, START), 0);
}

/* Quick answers decide a question that slow answers leave open. */
static void test_readings_narrow_each_other(void **state) {
    (void)state;
    struct trust trust = begin(&usual);
    trust_server(&trust, "run-1", 1000, START);
    trust_role(&trust, true, START);
    struct trust_beat beat = beat_at(START);
    beat.received_at = START + S(1);
    assert_true(trust_beat(&trust, &beat));
    assert_true(pass(&trust, S(2), 1500000, MS(100))); /* between 0.5 s and 0.6 s slow */
    assert_false(pass(&trust, S(3), 3000000, 0));
    assert_int_equal(trust.clock_moved, MS(500));
}

/* The clock is the machine's, whichever run of the server reports it. */
static void test_a_clock_outlives_the_run(void **state) {
    (void)state;
    struct trust trust = sound(&usual);
    assert_false(pass(&trust, S(1), 6000000, 0));
    trust_connected(&trust);
    trust_server(&trust, "run-2", 2, START + S(2));
    trust_role(&trust, true, START + S(2));
    assert_int_equal(trust.until[TRUST_CLOCK], START + S(1) + MAX_TTL);
    assert_true(pass(&trust, S(3), 8000000, 0));
    trust_server(&trust, "run-3", 2, START + S(4));
    assert_false(pass(&trust, S(5), 99000000, 0));
}

/*
 * The operator promises that the server loses nothing across a restart, but nothing about its
 * clock.
 */
static void test_a_durable_node_has_a_clock_too(void **state) {
    (void)state;
    struct trust_terms terms = usual;
    terms.is_durable = true;
    struct trust trust = sound(&terms);
    trust_connected(&trust);
    trust_server(&trust, "run-2", 0, START + S(1));
    trust_role(&trust, true, START + S(1));
    assert_false(pass(&trust, S(2), 3602000000, 0));
    assert_view(&trust, START + S(2), TRUST_CLOCK, START + S(2) + MAX_TTL);
}

/* ---- the age of answers ---- */

static void test_an_answer_ages_from_when_it_was_asked_for(void **state) {
    (void)state;
    struct trust_terms terms = usual;
    terms.max_age = S(3);
    struct trust trust = begin(&terms);
    trust_server(&trust, "run-1", 1000, START);
    trust_role(&trust, true, START);
    struct trust_beat beat = beat_at(START);
    beat.received_at = START + S(1);
    assert_true(trust_beat(&trust, &beat));
    assert_int_equal(trust_fresh_until(&trust), START + S(3));
    assert_sound(&trust, START + S(3));
    assert_view(&trust, START + S(3) + 1, TRUST_STALE, 0);
    assert_true(feel(&trust, START + S(5)));
    assert_sound(&trust, START + S(8));
    trust_refused(&trust, TRUST_BEAT, false, "ERR"); /* an error is no answer */
    assert_true(trust.refused & 1U << TRUST_BEAT);
    assert_int_equal(trust_fresh_until(&trust), START + S(8));
}

/* A client that sent nothing has learned nothing: the next command has a heartbeat ahead of it. */
static void test_a_node_that_was_not_asked_is_not_stale(void **state) {
    (void)state;
    struct trust_terms terms = usual;
    terms.max_age = S(3);
    struct trust trust = sound(&terms);
    uint64_t asked_at = START + S(60);
    assert_int_equal(trust_look(&trust, UINT64_MAX, asked_at).fault, TRUST_NO_FAULT);
    assert_int_equal(trust_look(&trust, asked_at, asked_at + S(3)).fault, TRUST_NO_FAULT);
    assert_int_equal(trust_look(&trust, asked_at, asked_at + S(3) + 1).fault, TRUST_STALE);
    assert_int_equal(trust_judge(&trust, asked_at).fault, TRUST_STALE);
    assert_true(feel(&trust, asked_at + S(4)));
    assert_int_equal(trust_look(&trust, UINT64_MAX, asked_at + S(99)).fault, TRUST_NO_FAULT);
    trust_refused(&trust, TRUST_BEAT, false, "ERR");
    assert_int_equal(trust_look(&trust, UINT64_MAX, asked_at + S(99)).fault, TRUST_REFUSED);
}

static void test_a_clock_that_moved_outweighs_age(void **state) {
    (void)state;
    struct trust_terms terms = usual;
    terms.max_age = S(3);
    struct trust trust = sound(&terms);
    assert_false(pass(&trust, S(1), 6000000, 0));
    assert_view(&trust, START + S(9), TRUST_CLOCK, START + S(1) + MAX_TTL);
}

static void test_without_beats_nothing_ages(void **state) {
    (void)state;
    struct trust_terms terms = usual;
    terms.max_age = S(3);
    terms.guards = REDLOCK_GUARDS_LENIENT;
    struct trust trust = sound(&terms);
    trust_refused(&trust, TRUST_SERVER, true, "NOPERM");
    assert_int_equal(trust_fresh_until(&trust), START + S(3));
    trust_refused(&trust, TRUST_BEAT, true, "NOPERM");
    trust_refused(&trust, TRUST_BEAT, true, "NOPERM");
    assert_int_equal(trust_fresh_until(&trust), UINT64_MAX);
    assert_sound(&trust, START + S(999));
    terms.guards = REDLOCK_GUARDS_OFF;
    trust = sound(&terms);
    assert_sound(&trust, START + S(999));
}

/* ---- grants that are lost ---- */

/* A loss voids what was granted before it was learned; the first answers of a node reveal none. */
static void test_a_loss_is_recorded_at_the_time_it_is_learned(void **state) {
    (void)state;
    uint64_t at = START + S(100);
    struct trust trust = begin(&usual);
    trust_server(&trust, "run-1", 0, START);
    trust_role(&trust, true, START);
    struct trust_beat beat = beat_of_memory(START, START);
    assert_true(trust_beat(&trust, &beat));
    assert_int_equal(trust.lost_at, 0); /* it is young, and has granted nothing */
    answer_all(&trust, START + S(40));
    trust_connected(&trust);
    answer_all(&trust, START + S(50));
    assert_int_equal(trust.lost_at, 0);

    struct trust restarted = trust;
    trust_server(&restarted, "run-2", 45, at);
    assert_int_equal(restarted.lost_at, 0); /* long ago */
    trust_server(&restarted, "run-3", 0, at);
    assert_int_equal(restarted.lost_at, at);

    struct trust emptied = trust;
    beat = beat_of_memory(at, at);
    assert_true(trust_beat(&emptied, &beat));
    assert_int_equal(emptied.lost_at, at);
    beat = beat_of_memory(at + S(1), at);
    assert_true(trust_beat(&emptied, &beat));
    assert_int_equal(emptied.lost_at, at); /* once */

    struct trust jumped = trust;
    assert_false(pass(&jumped, S(100), 200000000, 0));
    assert_int_equal(jumped.lost_at, at);

    struct trust replica = trust;
    trust_role(&replica, false, at);
    assert_int_equal(replica.lost_at, at);
}

static void test_without_guards_nothing_is_recorded_as_lost(void **state) {
    (void)state;
    struct trust_terms terms = usual;
    terms.guards = REDLOCK_GUARDS_OFF;
    struct trust trust = begin(&terms);
    trust_server(&trust, "run-1", 1000, START);
    trust_server(&trust, "run-2", 0, START + S(1));
    assert_int_equal(trust.lost_at, 0);
}

static void test_a_beat_reports_the_lineage_or_does_not(void **state) {
    (void)state;
    struct trust trust = begin(&usual);
    struct trust_beat beat = beat_at(START);
    assert_true(trust_beat(&trust, &beat));
    assert_string_equal(trust.lineage, "");
    beat = beat_at(START + S(1));
    beat.lineage = "0123abc";
    assert_true(trust_beat(&trust, &beat));
    assert_string_equal(trust.lineage, "0123abc");
}

static bool beat_with_id(struct trust *trust, uint64_t at, const char *id, uint64_t begun) {
    struct trust_beat beat = beat_at(at);
    beat.age_us = (at - begun) / 1000;
    beat.lineage = id;
    return trust_beat(trust, &beat);
}

/* A first replica may have connected; or the node was a replica, and no longer says so. */
static void test_another_lineage_is_suspicious_where_nobody_looked(void **state) {
    (void)state;
    static const struct {
        const char *id;
        uint64_t gap, begun;
        bool is_durable, is_suspicious;
    } rows[] = {
        {"b", S(12), START - S(99), false, false},
        {"b", S(12) + 1, START - S(99), false, true},
        {"a", S(300), START - S(99), false, false}, /* the same */
        {"b", S(300), START - S(99), true, false},
        /* Another marker, which may have been begun before the id changed. */
        {"b", S(1), START + S(1) / 2, false, true},
        {"b", S(300), START + S(99), false, true},
        {"b", S(300), START + S(99), true, false},
        {"a", S(300), START + S(99), false, false}, /* an old one, and the same memory since */
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct trust_terms terms = usual;
        terms.is_durable = rows[i].is_durable;
        struct trust trust = begin(&terms);
        trust_server(&trust, "run-1", 1000, START);
        trust_role(&trust, true, START);
        assert_true(beat_with_id(&trust, START, "a", START - S(99)));
        assert_sound(&trust, START);
        uint64_t at = START + rows[i].gap;
        assert_true(beat_with_id(&trust, at, rows[i].id, rows[i].begun));
        assert_int_equal(trust.lost_at == at, rows[i].is_suspicious);
        if (rows[i].is_suspicious) {
            assert_true(beat_with_id(&trust, at + S(29), rows[i].id, rows[i].begun));
            assert_young(&trust, TRUST_UNWATCHED, at + S(30));
        } else {
            assert_sound(&trust, at);
        }
    }
}

static void test_a_durable_node_loses_nothing(void **state) {
    (void)state;
    struct trust_terms terms = usual;
    terms.is_durable = true;
    struct trust trust = sound(&terms);
    trust_server(&trust, "run-2", 0, START + S(1));
    struct trust_beat beat = beat_of_memory(START + S(1), START + S(1));
    assert_true(trust_beat(&trust, &beat));
    assert_int_equal(trust.lost_at, 0);
}

/* ---- in words ---- */

static void test_every_fault_has_words(void **state) {
    (void)state;
    struct trust trust = sound(&usual);
    assert_false(pass(&trust, S(1), 6000000, 0));
    trust.original = "10.0.0.1:6379";
    trust_refused(&trust, TRUST_BEAT, true, "NOPERM\r\nof any kind");
    static const char *const words[TRUST_FAULT_COUNT] = {
        [TRUST_NO_FAULT] = "",
        [TRUST_NOT_ASKED] = "it has not said yet who it is",
        [TRUST_REFUSED] = "the beat is refused (its user needs +time and the key redlock:marker): "
                          "NOPERM??of any kind",
        [TRUST_DUPLICATE] = "it is the same server as 10.0.0.1:6379",
        [TRUST_REPLICA] = "it is a replica",
        [TRUST_CLOCK] = "its clock moved by 5000 ms against ours within 1000 ms, beyond what drift "
                        "allows",
        [TRUST_RESTARTED] = "it was restarted",
        [TRUST_PROMOTED] = "it was a replica until lately",
        [TRUST_UNWATCHED] = "its replication id changed while we did not look",
        [TRUST_FORGETFUL] = "its memory is new: it was emptied, or no client came before",
        [TRUST_STALE] = "it is slow: it has answered no heartbeat for too long",
    };
    for (int fault = 0; fault < TRUST_FAULT_COUNT; fault++) {
        char room[200];
        struct text text;
        text_init(&text, room, sizeof(room));
        trust_describe(&trust, (enum trust_fault)fault, &text);
        assert_string_equal(room, words[fault]);
    }
}

/* ---- pushed keys ---- */

/*
 * Returns until when a key is certain to exist that the node, by its clock, set at `at` to expire
 * after `ms`.
 */
static uint64_t stands_until(const struct trust *trust, uint64_t at, uint64_t ms, uint64_t now) {
    uint64_t time_us = WALL_US + (at - START) / 1000;
    return trust_key_stands_until(trust, time_us / 1000 + ms, time_us, now);
}

static void test_a_pushed_key_stands_by_the_nodes_clock(void **state) {
    (void)state;
    struct trust trust = sound(&usual);
    uint64_t now = START + S(1);
    assert_int_equal(stands_until(&trust, now, 1000, now), now + MS(998));
    /* However late the push arrives. */
    assert_int_equal(stands_until(&trust, now, 1000, now + MS(400)), now + MS(998));
    assert_int_equal(stands_until(&trust, now, 3, now), now + MS(1));
    assert_int_equal(stands_until(&trust, now, 2, now), 0);
    assert_int_equal(stands_until(&trust, now, 0, now), 0);
    /* Any expiry that a message can have is in range: for long, but no longer than for ever. */
    assert_in_range(stands_until(&trust, now, UINT64_C(1) << 52, now), now, UINT64_MAX - 1);
}

/* The heartbeat may have been answered at once, and its answer may have been in flight for long. */
static void test_the_latest_time_of_the_nodes_clock_counts(void **state) {
    (void)state;
    struct trust trust = begin(&usual);
    struct trust_beat beat = beat_at(START);
    beat.received_at = START + MS(30);
    trust_server(&trust, "run-1", 1000, START);
    trust_role(&trust, true, START);
    assert_true(trust_beat(&trust, &beat));
    uint64_t now = START + S(1);
    assert_int_equal(stands_until(&trust, now, 1000, now), now + MS(998));
    beat.time_us += 30000; /* or the answer was given just now: the clock is less slow */
    trust = begin(&usual);
    assert_true(trust_beat(&trust, &beat));
    assert_int_equal(stands_until(&trust, now, 1000, now), now + MS(968));
}

static void test_drift_shortens_a_reservation_and_ages_the_clock(void **state) {
    (void)state;
    struct trust_terms terms = usual;
    terms.drift = DRIFT;
    struct trust trust = sound(&terms);
    uint64_t now = START + S(1);
    /* In 1 s the node's clock has gained 10.10 ms; 1 % of the rest is uncertain. */
    assert_int_equal(stands_until(&trust, now, 1000, now), now + 978000001);
    /* The same holds if the second passed between the question and the answer. */
    struct trust_beat beat = beat_at(START);
    beat.received_at = now;
    trust = begin(&terms);
    assert_true(trust_beat(&trust, &beat));
    assert_int_equal(stands_until(&trust, now, 1000, now), now + 978000001);
}

static void test_a_push_of_a_clock_that_jumped_counts_for_nothing(void **state) {
    (void)state;
    struct trust trust = sound(&usual);
    uint64_t now = START + S(1);
    assert_int_equal(stands_until(&trust, now + MS(2), 1000, now), now + MS(1000));
    assert_int_equal(stands_until(&trust, now + MS(2) + 1000, 1000, now), 0);
    struct trust unheard = begin(&usual);
    assert_int_equal(stands_until(&unheard, now, 1000, now), 0);
}

static void test_the_nodes_time_is_the_middle_of_what_is_known(void **state) {
    (void)state;
    struct trust trust = begin(&usual);
    struct trust_beat beat = beat_at(START);
    int64_t ahead;
    assert_false(trust_clock(&trust, &ahead));
    trust_time(&trust, 0, START, START, 0);
    assert_false(trust_clock(&trust, &ahead)); /* the heartbeats will show more */
    beat.received_at = START + MS(10);
    beat.time_us += 5000;
    assert_true(trust_beat(&trust, &beat));
    assert_true(trust_clock(&trust, &ahead));
    assert_int_equal(ahead, WALL_US * 1000 - START);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_node_must_have_answered_everything),
        cmocka_unit_test(test_a_restart_is_over_after_max_ttl),
        cmocka_unit_test(test_its_clock_counts_for_no_more_than_drift_allows),
        cmocka_unit_test(test_the_same_run_does_not_grow_young),
        cmocka_unit_test(test_another_run_is_as_old_as_it_says),
        cmocka_unit_test(test_another_run_that_lies_is_young),
        cmocka_unit_test(test_a_long_run_id_is_cut_and_still_known),
        cmocka_unit_test(test_a_memory_is_as_old_as_its_marker),
        cmocka_unit_test(test_a_memory_that_is_old_enough_stays_so),
        cmocka_unit_test(test_another_run_proves_its_memory_anew),
        cmocka_unit_test(test_the_longest_fault_is_reported),
        cmocka_unit_test(test_a_durable_node_may_be_young),
        cmocka_unit_test(test_a_replica_never_counts),
        cmocka_unit_test(test_a_duplicate_never_counts),
        cmocka_unit_test(test_guards_may_be_off),
        cmocka_unit_test(test_who_refuses_to_answer_is_not_trusted),
        cmocka_unit_test(test_what_is_forbidden_may_be_waived),
        cmocka_unit_test(test_a_jump_is_reported_with_its_figures),
        cmocka_unit_test(test_what_drift_and_grain_allow_is_no_jump),
        cmocka_unit_test(test_a_rate_beyond_drift_adds_up),
        cmocka_unit_test(test_readings_narrow_each_other),
        cmocka_unit_test(test_the_time_is_reported_without_beats),
        cmocka_unit_test(test_a_clock_outlives_the_run),
        cmocka_unit_test(test_a_durable_node_has_a_clock_too),
        cmocka_unit_test(test_an_answer_ages_from_when_it_was_asked_for),
        cmocka_unit_test(test_a_node_that_was_not_asked_is_not_stale),
        cmocka_unit_test(test_a_clock_that_moved_outweighs_age),
        cmocka_unit_test(test_without_beats_nothing_ages),
        cmocka_unit_test(test_a_loss_is_recorded_at_the_time_it_is_learned),
        cmocka_unit_test(test_without_guards_nothing_is_recorded_as_lost),
        cmocka_unit_test(test_a_beat_reports_the_lineage_or_does_not),
        cmocka_unit_test(test_another_lineage_is_suspicious_where_nobody_looked),
        cmocka_unit_test(test_a_durable_node_loses_nothing),
        cmocka_unit_test(test_every_fault_has_words),
        cmocka_unit_test(test_a_pushed_key_stands_by_the_nodes_clock),
        cmocka_unit_test(test_the_latest_time_of_the_nodes_clock_counts),
        cmocka_unit_test(test_drift_shortens_a_reservation_and_ages_the_clock),
        cmocka_unit_test(test_a_push_of_a_clock_that_jumped_counts_for_nothing),
        cmocka_unit_test(test_the_nodes_time_is_the_middle_of_what_is_known),
    };
    return cmocka_run_group_tests_name("trust", tests, NULL, NULL);
}
