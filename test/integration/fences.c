/*
 * Fences: numbers that grow with each acquisition of a key, by any client, valid or expired. The
 * tests set the counters of the fences to different values directly.
 */
#include "clocks.h"
#include "cycles.h"
#include "harness.h"
#include "master_data.h"
#include "proxy.h"
#include "wait_queue.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define KEY "orders:42"
#define COUNTER "orders:42::fence"
#define FIVE 5

/* The length of the range of fences that an acquisition takes. */
#define RANGE 64

/* Ahead of the hints of clients whose clocks are right, and within the bound of counters. */
#define FAR (clock_now_us() + UINT64_C(3600000000))

static uint64_t clock_now_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static int three_masters(void **state) {
    return start_fixture(state, 3, NULL);
}

static redlock_request fenced_request(void) {
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    request.fenced = true;
    return request;
}

static redlock_lock *hold_fenced(struct fixture *f, redlock_client *client) {
    redlock_request request = fenced_request();
    return hold_for(f, client, &request);
}

static uint64_t counter_at(struct fixture *f, size_t master) {
    const char *text = value_at(f, master, COUNTER);
    return text != NULL ? strtoull(text, NULL, 10) : 0;
}

static void set_counter(struct fixture *f, size_t master, uint64_t count) {
    char *answer = masters_query(f->masters, master, "SET " COUNTER " %" PRIu64, count);
    assert_string_equal(answer, "OK");
    free(answer);
}

/* Returns the counter after the acquisition that got the fence: the end of its range. */
static uint64_t range_end(uint64_t fence) {
    return fence + RANGE - 1;
}

/* Returns the number of masters whose counter now is the end of the range that begins at `fence`.
 */
static size_t agreeing(struct fixture *f, uint64_t fence) {
    size_t count = 0;
    for (size_t i = 0; i < FIVE; i++) {
        count += counter_at(f, i) == range_end(fence);
    }
    return count;
}

/* --------------------------------------------------------------------------------- one client */

static void a_fence_grows_with_each_acquisition(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    uint64_t last = 0;

    for (size_t i = 0; i < 20; i++) {
        redlock_lock *lock = hold_fenced(f, client);
        assert_true(redlock_fence(lock) > last);
        last = redlock_fence(lock);
        assert_true(last < UINT64_C(1) << 53);
        assert_int_equal(let_go(f, lock), REDLOCK_OK);
    }
    wait_holders(f, KEY, 0);
    assert_true(agreeing(f, last) >= 3); /* the counter outlives the lock */
}

/* There was no other client, so all counters agree at once. */
static void without_contention_it_takes_one_round_trip(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);

    for (size_t i = 0; i < 20; i++) {
        assert_int_equal(let_go(f, hold_fenced(f, client)), REDLOCK_OK);
    }
    assert_int_equal(log_capture_count(&f->capture, "acquiring -> raising"), 0);
    assert_int_equal(log_capture_count(&f->capture, "acquiring -> held"), 20);
}

static void a_lock_without_a_fence_has_none(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_lock *lock = hold(f, client, KEY, LONG_TTL_MS);

    assert_int_equal(redlock_fence(lock), 0);
    assert_int_equal(redlock_fence(NULL), 0);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    assert_null(value_at(f, 0, COUNTER));
}

static void a_fence_is_reported_to_the_end_of_the_handle(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_request request = request_for(KEY, 60000);
    struct loss *loss = watch_loss(f, &request);
    struct call *call;

    request.fenced = true;
    call = begin_acquire(f, client, &request);
    assert_int_equal(redlock_fence(call->lock), 0); /* not yet */
    assert_int_equal(await(f, call), REDLOCK_OK);
    uint64_t fence = redlock_fence(call->lock);
    assert_true(fence > 0);
    pass_time(60000);
    assert_int_equal(wait_lost(f, loss), REDLOCK_EEXPIRED);
    assert_int_equal(redlock_fence(call->lock), fence);
    let_go(f, call->lock);
}

/*
 * One acquisition serves its client's own requests with the fences of its range, without a message;
 * a round then takes the next range. The next client's range is beyond both.
 */
static void a_client_hands_the_lock_on_with_fences_of_its_range(void **state) {
    struct fixture *f = *state;
    redlock_options options = patient_options(f, masters_uris(f->masters), FIVE);
    options.max_local_handoffs = RANGE + 1;
    redlock_client *client = connect_with(f, &options);
    redlock_request request = fenced_request();
    struct call *calls[RANGE + 2];
    uint64_t first = 0;

    request.wait_ms = REDLOCK_FOREVER;
    for (size_t i = 0; i < RANGE + 2; i++) {
        calls[i] = begin_acquire(f, client, &request);
    }
    for (size_t i = 0; i < RANGE + 2; i++) {
        assert_int_equal(await(f, calls[i]), REDLOCK_OK);
        first = i == 0 ? redlock_fence(calls[i]->lock) : first;
        assert_int_equal(redlock_fence(calls[i]->lock), first + i);
        assert_true(agreeing(f, i < RANGE ? first : first + RANGE) >= 3);
        assert_int_equal(let_go(f, calls[i]->lock), REDLOCK_OK);
    }
    assert_int_equal(log_capture_count(&f->capture, "-> raising"), 1);
    redlock_lock *lock = hold_fenced(f, connect_client(f));
    assert_true(redlock_fence(lock) >= first + 2 * RANGE);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
}

/* ------------------------------------------------------------------------------ counters apart */

/* The largest counter is not on a quorum, which is raised to it before the lock is reported. */
static void the_largest_counter_is_raised_on_a_quorum(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);

    uint64_t far = FAR;
    set_counter(f, 2, far);
    rival_takes(f, 3, FIVE, KEY, LONG_TTL_MS); /* so that node 2 is needed */
    redlock_lock *lock = hold_fenced(f, client);
    assert_int_equal(redlock_fence(lock), far + 1);
    assert_int_equal(agreeing(f, far + 1), 3);
    assert_int_equal(log_capture_count(&f->capture, "acquiring -> raising"), 1);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);

    /* A client that acquires the key at any other quorum sees the counter. */
    rival_frees(f, 3, FIVE, KEY);
    rival_takes(f, 1, 3, KEY, LONG_TTL_MS);
    lock = hold_fenced(f, client);
    assert_true(redlock_fence(lock) > far + 1);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
}

/* At a node where another client now has the key, the counter is not raised. */
static void what_is_taken_meanwhile_is_not_raised(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_lock *lock = hold_fenced(f, client);

    uint64_t fence = redlock_fence(lock);
    wait_holders(f, KEY, FIVE);
    rival_takes(f, 0, 2, KEY, LONG_TTL_MS);
    set_counter(f, 0, 1);
    set_counter(f, 2, 1);
    assert_int_equal(extend(f, lock, LONG_TTL_MS), REDLOCK_OK);
    wait_answered(f, client, 0);
    assert_int_equal(counter_at(f, 0), 1);
    assert_int_equal(counter_at(f, 2), range_end(fence)); /* a renewal carries it */
    let_go(f, lock);
}

static void a_counter_that_is_none_is_named(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_request request = fenced_request();

    for (size_t i = 0; i < 3; i++) {
        free(masters_query(f->masters, i, "LPUSH " COUNTER " x"));
    }
    struct call *call = acquire(f, client, &request);
    assert_ended(call, REDLOCK_ENOQUORUM);
    assert_explained(call, "its counter is used up, or is none: delete the key of the counter");
    wait_holders(f, KEY, 0);
}

#define RUINED "ruined"

/* Asserts that among several locks in one call only the one with a ruined counter fails. */
static void assert_ruins_one_alone(struct fixture *f, redlock_client *client, const char *count) {
    static const char *const keys[] = {"one", RUINED, "two", "three"};
    redlock_request request = fenced_request();
    struct call *calls[4];

    for (size_t i = 0; i < FIVE; i++) {
        free(masters_query(f->masters, i, "SET " RUINED "::fence %s", count));
    }
    for (size_t i = 0; i < 4; i++) {
        request.key = keys[i];
        calls[i] = begin_acquire(f, client, &request);
    }
    assert_int_equal(await(f, calls[1]), REDLOCK_ENOQUORUM);
    assert_explained(calls[1], "counter");
    wait_holders(f, RUINED, 0);
    for (size_t i = 0; i < FIVE; i++) {
        assert_string_equal(value_at(f, i, RUINED "::fence"), count); /* nothing was written */
    }
    for (size_t i = 0; i < 4; i += i == 0 ? 2 : 1) {
        await(f, calls[i]);
        assert_ended(calls[i], REDLOCK_OK);
        assert_int_equal(extend(f, calls[i]->lock, LONG_TTL_MS), REDLOCK_OK);
        assert_int_equal(let_go(f, calls[i]->lock), REDLOCK_OK);
    }
}

static void a_ruined_counter_fails_its_lock_alone(void **state) {
    struct fixture *f = *state;
    static const char *const counts[] = {
        "9007199254740992", "9007199254740991", "1e300", "inf", "nan", "-1", "1.5",
        "-9007199254740993"};
    redlock_client *client = connect_client(f);

    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        assert_ruins_one_alone(f, client, counts[i]);
    }
}

/* The renewals share a call, too. */
static void a_counter_ruined_while_it_is_held_loses_its_lock_alone(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_request request = fenced_request();
    redlock_lock *good = hold_fenced(f, client);
    request.key = RUINED;
    redlock_lock *bad = hold_for(f, client, &request);

    wait_holders(f, RUINED, FIVE);
    send_to(f, 0, FIVE, "SET " RUINED "::fence 1e300");
    struct call *lost = begin_extend(f, bad, LONG_TTL_MS);
    struct call *kept = begin_extend(f, good, LONG_TTL_MS);
    assert_int_equal(await(f, kept), REDLOCK_OK);
    assert_int_not_equal(await(f, lost), REDLOCK_OK);
    assert_explained(lost, "counter");
    assert_int_equal(let_go(f, good), REDLOCK_OK);
    let_go(f, bad);
}

/* ---------------------------------------------------------------- counters that are far ahead */

#define DAY UINT64_C(86400000000)

/*
 * Makes a client acquire KEY; returns its fence. Asserts that no sound counter exceeds its range.
 */
static uint64_t fence_beside_a_liar(struct fixture *f, redlock_client *client) {
    redlock_lock *lock = hold_fenced(f, client);
    uint64_t fence = redlock_fence(lock);

    wait_all_answered(f, client);
    for (size_t i = 1; i < FIVE; i++) {
        assert_true(counter_at(f, i) <= range_end(fence));
    }
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    wait_all_answered(f, client);
    return fence;
}

/*
 * One node has the largest possible counter, set by an outsider: the other counters do not run out.
 */
static void a_counter_at_its_end_at_one_node_is_not_raised_to(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_client *another = connect_client(f);
    uint64_t last = 0;

    for (size_t i = 0; i < 10; i++) {
        set_counter(f, 0, (UINT64_C(1) << 53) - 1 - RANGE);
        uint64_t fence = fence_beside_a_liar(f, i % 2 == 0 ? client : another);
        assert_true(fence > last && fence < FAR);
        last = fence;
    }
    wait_logged(f, "days ahead of the clocks");
    freeze(f, 0); /* the others do not depend on the node */
    assert_true(redlock_fence(hold_fenced(f, client)) > last);
}

/* Node 0 is needed: no counter is raised to its, and its vote states why it does not count. */
static void a_counter_beyond_its_time_does_not_count(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_request request = fenced_request();

    set_counter(f, 0, FAR + 4 * DAY);
    rival_takes(f, 3, FIVE, KEY, LONG_TTL_MS);
    struct call *call = acquire(f, client, &request);
    assert_int_not_equal(call->status, REDLOCK_OK);
    assert_explained(call, "days ahead of the clocks");
    for (size_t i = 1; i < 3; i++) {
        assert_true(counter_at(f, i) < FAR);
    }
    wait_holders(f, KEY, 2);
}

/*
 * A node always answers a counter that is just allowed, or just too large: no client is kept from
 * the key, and fences grow even for clients that know the clocks with different precision.
 */
static void a_liar_at_the_bound_does_no_harm(void **state) {
    struct fixture *f = *state;
    static const uint64_t ahead[] = {2 * DAY, 2 * DAY - 50000, 2 * DAY + 50000,
                                     3 * DAY, 3 * DAY - 50000, 3 * DAY + 50000};
    redlock_client *clients[] = {connect_client(f), connect_client(f)};
    uint64_t last = 0;

    for (size_t i = 0; i < cycles_here(120); i++) {
        set_counter(f, 0, FAR - UINT64_C(3600000000) + ahead[i % 6] - RANGE);
        uint64_t fence = fence_beside_a_liar(f, clients[i / 3 % 2]);
        assert_true(fence > last);
        assert_true(fence < FAR + 2 * DAY);
        last = fence;
    }
}

/* Sound nodes that a client with a better clock has raised beyond this client's limit. */
static void counters_of_a_quorum_within_the_margin_are_accepted(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    uint64_t far = FAR + 2 * DAY;

    set_counter(f, 0, far + DAY / 2); /* no counter is raised to that of a node further ahead */
    for (size_t i = 1; i < FIVE; i++) {
        set_counter(f, i, far + i / 3);
    }
    uint64_t last = 0;
    for (size_t i = 0; i < 5; i++) {
        uint64_t fence = fence_beside_a_liar(f, client);
        assert_true(fence > far && fence > last && fence < far + 10 * RANGE);
        last = fence;
    }
}

/* ------------------------------------------------------------------------ restarts and top-ups */

static void counters_that_are_lost_begin_above_their_past(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_lock *lock = hold_fenced(f, client);
    uint64_t fence = redlock_fence(lock);

    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    wait_holders(f, KEY, 0);
    send_to(f, 0, FIVE, "FLUSHALL");
    lock = hold_fenced(f, client);
    assert_true(redlock_fence(lock) > fence); /* by the wall clock */
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
}

static void an_empty_node_is_topped_up_with_the_fence(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_lock *lock = hold_fenced(f, client);

    wait_holders(f, KEY, FIVE);
    send_to(f, 4, FIVE, "FLUSHALL");
    assert_int_equal(extend(f, lock, LONG_TTL_MS), REDLOCK_OK);
    wait_holders(f, KEY, FIVE);
    assert_int_equal(counter_at(f, 4), range_end(redlock_fence(lock)));
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
}

/*
 * A late top-up finds a key that another holder has acquired and released. The topped-up lock is
 * then handed over inside its client, by a round because the TTLs differ: its new range is beyond
 * that other holder's.
 */
static void a_late_top_up_counts_after_another_holder(void **state) {
    struct fixture *f = *state;
    struct proxy *proxies[3];
    const char *uris[3];
    redlock_request request = fenced_request();

    proxies_create(f, proxies, uris);
    redlock_options options = patient_options(f, uris, 3);
    redlock_client *client = connect_with(f, &options);
    request.wait_ms = REDLOCK_FOREVER;
    struct call *holder = begin_acquire(f, client, &request);
    request.ttl_ms--;
    struct call *next = begin_acquire(f, client, &request);
    assert_int_equal(await(f, holder), REDLOCK_OK);
    wait_holders(f, KEY, 3);
    rival_frees(f, 2, 3, KEY);
    proxy_hold_replies(proxies[2]);
    assert_int_equal(extend(f, holder->lock, LONG_TTL_MS), REDLOCK_OK);
    size_t sent = proxy_arrived(proxies[2], ANY_SCRIPT);
    proxy_hold_requests(proxies[2], NULL);
    proxy_pass_replies(proxies[2]); /* the key is missing: a top-up is sent, and held */
    wait_arrived(f, proxies[2], ANY_SCRIPT, sent + 1);

    rival_frees(f, 1, 2, KEY);
    redlock_client *other = connect_client(f);
    redlock_lock *lock = hold_fenced(f, other);
    uint64_t fence = redlock_fence(lock);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    wait_holders(f, KEY, 1);

    proxy_pass_requests(proxies[2]);
    wait_holders(f, KEY, 2);
    assert_int_equal(let_go(f, holder->lock), REDLOCK_OK);
    assert_int_equal(await(f, next), REDLOCK_OK);
    assert_true(redlock_fence(next->lock) > fence);
    assert_int_equal(let_go(f, next->lock), REDLOCK_OK);
}

static void scripts_that_were_forgotten_cost_nothing(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);

    assert_int_equal(let_go(f, hold_fenced(f, client)), REDLOCK_OK);
    wait_holders(f, KEY, 0);
    send_to(f, 0, FIVE, "SCRIPT FLUSH");
    assert_int_equal(let_go(f, hold_fenced(f, client)), REDLOCK_OK);
    wait_holders(f, KEY, 0);
}

/* The call for many locks is refused, and each lock is then acquired by its own call. */
static void a_forbidden_key_does_not_hinder_others(void **state) {
    struct fixture *f = *state;
    char uris[FIVE][128];
    const char *list[FIVE];

    for (size_t i = 0; i < FIVE; i++) {
        free(masters_query(f->masters, i,
                           "ACL SETUSER some on >some ~orders:* ~redlock:marker +@all"));
        snprintf(uris[i], sizeof(uris[i]), "redis://some:some@127.0.0.1:%d",
                 masters_port(f->masters, i));
        list[i] = uris[i];
    }
    redlock_options options = patient_options(f, list, FIVE);
    redlock_client *client = connect_with(f, &options);
    redlock_request good = fenced_request();
    redlock_request bad = request_for("forbidden", LONG_TTL_MS);
    bad.fenced = true;
    struct call *call = begin_acquire(f, client, &good);
    struct call *refused = begin_acquire(f, client, &bad);
    assert_int_equal(await(f, refused), REDLOCK_EACCESS);
    assert_explained(refused, "NOPERM");
    assert_int_equal(await(f, call), REDLOCK_OK);
    assert_int_equal(let_go(f, call->lock), REDLOCK_OK);
}

/* Connects as a user with rights to the keys of orders and their queues, but to no counter. */
static redlock_client *connect_without_counters(struct fixture *f) {
    char uris[FIVE][128];
    const char *list[FIVE];

    for (size_t i = 0; i < FIVE; i++) {
        free(masters_query(f->masters, i,
                           "ACL SETUSER bare on >bare &redlock:* ~" KEY " ~orders:43 ~orders:44:0 "
                           "~*::queue ~*::permits ~*::readers ~*::writer ~redlock:* +@all"));
        snprintf(uris[i], sizeof(uris[i]), "redis://bare:bare@127.0.0.1:%d",
                 masters_port(f->masters, i));
        list[i] = uris[i];
    }
    redlock_options options = patient_options(f, list, FIVE);
    return connect_with(f, &options);
}

/* A refused counter is not a ruined one: the error is the server's, and waiting ends at once. */
static void the_right_to_a_counter_is_missed_in_queue_at_once(void **state) {
    struct fixture *f = *state;
    static const char *const two[] = {KEY, "orders:43"};
    redlock_client *client = connect_without_counters(f);

    for (unsigned i = 0; i < 4; i++) {
        redlock_request request = fenced_request();
        request.wait_ms = REDLOCK_FOREVER;
        request.mode = i == 1 ? REDLOCK_WRITER : REDLOCK_EXCLUSIVE;
        if (i == 2) {
            request.key = NULL;
            request.keys = two;
            request.key_count = 2;
        } else if (i == 3) {
            request.key = "orders:44";
            request.permits = 1;
        }
        struct call *refused = begin_acquire(f, client, &request);
        request = request_for("orders:43", LONG_TTL_MS);
        request.wait_ms = REDLOCK_FOREVER;
        struct call *call = begin_acquire(f, client, &request); /* shares the call */
        assert_int_equal(await(f, refused), REDLOCK_EACCESS);
        assert_int_equal(await(f, call), REDLOCK_OK);
        assert_int_equal(let_go(f, call->lock), REDLOCK_OK);
    }
}

/* A release without the right to the waiter's counter succeeds, and does not affect the key. */
static void a_release_without_the_right_to_a_counter_succeeds(void **state) {
    struct fixture *f = *state;
    redlock_request request = fenced_request();
    redlock_lock *lock = hold(f, connect_without_counters(f), KEY, LONG_TTL_MS);

    request.wait_ms = REDLOCK_FOREVER;
    struct call *call = begin_acquire(f, connect_client(f), &request);
    wait_in_queue(f, KEY, 1);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    assert_int_equal(await(f, call), REDLOCK_OK);
    assert_int_equal(let_go(f, call->lock), REDLOCK_OK);
}

static void counters_live_as_long_as_the_options_say(void **state) {
    struct fixture *f = *state;
    static const struct {
        uint64_t idle_ms;
        long long least, most;
    } rows[] = {{604800000, 604700000, 604800000}, {0, -1, -1}, {LONG_TTL_MS, 2900000, 3000000}};

    for (size_t i = 0; i < 3; i++) {
        redlock_options options = patient_options(f, masters_uris(f->masters), FIVE);
        options.fence_idle_ms = rows[i].idle_ms;
        options.max_ttl_ms = LONG_TTL_MS; /* no counter has a shorter life than a lock may have */
        redlock_client *client = connect_with(f, &options);
        assert_int_equal(let_go(f, hold_fenced(f, client)), REDLOCK_OK);
        wait_all_answered(f, client);
        long long left = pttl_at(f, 1, COUNTER);
        assert_true(left >= rows[i].least && left <= rows[i].most);
        close_client(f, client);
    }
}

/* --------------------------------------------------------------------------------- many clients */

#define CLIENTS 4
#define ROUNDS 300

struct contender {
    redlock_client *client;
    struct call *call;
};

struct contest {
    struct contender contenders[CLIENTS];
    struct contender *winner;
};

static bool has_winner(void *arg) {
    struct contest *contest = arg;

    contest->winner = NULL;
    for (size_t i = 0; i < CLIENTS && contest->winner == NULL; i++) {
        struct contender *contender = &contest->contenders[i];
        contest->winner = contender->call->ended > 0 ? contender : NULL;
    }
    return contest->winner != NULL;
}

/* Returns the contender that acquires the lock next. */
static struct contender *next_winner(struct fixture *f, struct contest *contest) {
    run_until(f, has_winner, contest, "somebody has the lock");
    assert_ended(contest->winner->call, REDLOCK_OK);
    return contest->winner;
}

/* Clients contend all the time, while a rival holds the key at a minority of the nodes. */
static void fences_of_contenders_grow_strictly(void **state) {
    struct fixture *f = *state;
    struct contest contest;
    redlock_request request = fenced_request();
    uint64_t last = 0;

    request.wait_ms = REDLOCK_FOREVER;
    for (size_t i = 0; i < FIVE; i++) {
        set_counter(f, i, FAR + 1000 * i); /* no clock helps them to agree */
    }
    for (size_t i = 0; i < CLIENTS; i++) {
        redlock_options options = patient_options(f, masters_uris(f->masters), FIVE);
        options.retry_delay_ms = options.retry_delay_max_ms = 2;
        struct contender *contender = &contest.contenders[i];
        contender->client = connect_with(f, &options);
        contender->call = begin_acquire(f, contender->client, &request);
    }
    for (size_t round = 0; round < cycles_here(ROUNDS); round++) {
        size_t taken = round * 2 % FIVE;
        rival_takes(f, taken, taken + 1, KEY, LONG_TTL_MS);
        struct contender *winner = next_winner(f, &contest);
        assert_true(redlock_fence(winner->call->lock) > last);
        last = redlock_fence(winner->call->lock);
        rival_frees(f, taken, taken + 1, KEY);
        redlock_status status = let_go(f, winner->call->lock);
        /*
         * A lock may be lost if the rival had one of only three nodes; fences do not depend on it.
         */
        assert_true(status == REDLOCK_OK || status == REDLOCK_ELOST);
        winner->call = begin_acquire(f, winner->client, &request);
    }
    assert_true(log_capture_count(&f->capture, " -> raising") > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        ON_FIVE_MASTERS(a_fence_grows_with_each_acquisition),
        ON_FIVE_MASTERS(without_contention_it_takes_one_round_trip),
        ON_FIVE_MASTERS(a_lock_without_a_fence_has_none),
        ON_FIVE_MASTERS(a_fence_is_reported_to_the_end_of_the_handle),
        ON_FIVE_MASTERS(a_client_hands_the_lock_on_with_fences_of_its_range),
        ON_FIVE_MASTERS(the_largest_counter_is_raised_on_a_quorum),
        ON_FIVE_MASTERS(what_is_taken_meanwhile_is_not_raised),
        ON_FIVE_MASTERS(a_counter_that_is_none_is_named),
        ON_FIVE_MASTERS(a_ruined_counter_fails_its_lock_alone),
        ON_FIVE_MASTERS(a_counter_ruined_while_it_is_held_loses_its_lock_alone),
        ON_FIVE_MASTERS(a_counter_at_its_end_at_one_node_is_not_raised_to),
        ON_FIVE_MASTERS(a_counter_beyond_its_time_does_not_count),
        ON_FIVE_MASTERS(a_liar_at_the_bound_does_no_harm),
        ON_FIVE_MASTERS(counters_of_a_quorum_within_the_margin_are_accepted),
        ON_FIVE_MASTERS(counters_that_are_lost_begin_above_their_past),
        ON_FIVE_MASTERS(an_empty_node_is_topped_up_with_the_fence),
        cmocka_unit_test_setup_teardown(a_late_top_up_counts_after_another_holder, three_masters,
                                        finish),
        ON_FIVE_MASTERS(scripts_that_were_forgotten_cost_nothing),
        ON_FIVE_MASTERS(a_forbidden_key_does_not_hinder_others),
        ON_FIVE_MASTERS(the_right_to_a_counter_is_missed_in_queue_at_once),
        ON_FIVE_MASTERS(a_release_without_the_right_to_a_counter_succeeds),
        ON_FIVE_MASTERS(counters_live_as_long_as_the_options_say),
        ON_FIVE_MASTERS(fences_of_contenders_grow_strictly),
    };

    return cmocka_run_group_tests_name("fences", tests, NULL, NULL);
}
