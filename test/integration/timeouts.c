/*
 * How long a round waits for a silent node. The clock is the test's, so that an answer is exactly
 * as late as the test says.
 */
#include "clocks.h"
#include "detour.h"
#include "harness.h"
#include "master_data.h"

#include <redlock.h>
#include <stdio.h>
#include <string.h>

#define FIVE 5
#define KEY "orders:42"
#define TIMEOUT_MS 60000 /* long: real time passes as well */

static redlock_client *connect_through(struct fixture *f, struct proxy **proxies,
                                       uint64_t node_timeout_ms) {
    const char *uris[FIVE];

    proxies_create(f, proxies, uris);
    redlock_options options = patient_options(f, uris, FIVE);
    options.node_timeout_ms = node_timeout_ms;
    options.stall_timeout_ms = 0;
    options.log_level = REDLOCK_LOG_INFO;
    return connect_with(f, &options);
}

static bool has_all_grants(void *lock) {
    redlock_node_report reports[FIVE];
    size_t grants = 0;

    for (size_t i = redlock_report(lock, reports, FIVE); i-- > 0;) {
        grants += reports[i].vote == REDLOCK_VOTE_GRANTED;
    }
    return grants == FIVE;
}

/* A server works on the commands in order: what is behind others is not late yet. */
static void a_node_that_answers_earlier_commands_is_not_late(void **state) {
    struct fixture *f = *state;
    struct proxy *proxies[FIVE];
    redlock_client *client = connect_through(f, proxies, TIMEOUT_MS);
    redlock_request first = request_for("first", LONG_TTL_MS);
    redlock_request second = request_for("second", LONG_TTL_MS);

    proxies_hold_replies(proxies, 0, FIVE);
    struct call *ahead = begin_acquire(f, client, &first);
    for (size_t i = 0; i < FIVE; i++) {
        wait_executed(f, i, "set", 1);
    }
    proxies_hold_requests(proxies, 0, FIVE, "SET");
    struct call *behind = begin_acquire(f, client, &second);
    run_turns(f, 3); /* it is written now */
    pass_time(TIMEOUT_MS / 3 * 2);
    proxies_pass_replies(proxies, 0, FIVE);
    assert_int_equal(await(f, ahead), REDLOCK_OK);
    run_until(f, has_all_grants, ahead->lock, "all have answered the first request");
    pass_time(TIMEOUT_MS / 3 * 2);
    run_turns(f, 20); /* so many, for an alarm that should not ring yet */
    assert_int_equal(behind->ended, 0);
    proxies_pass_requests(proxies, 0, FIVE);
    assert_int_equal(await(f, behind), REDLOCK_OK);
}

/* One cycle whose answers take `ms`. */
static struct call *acquire_after(struct fixture *f, struct proxy **proxies, redlock_client *client,
                                  const char *key, uint64_t ms) {
    redlock_request request = request_for(key, LONG_TTL_MS);
    size_t before = executed(f, 0, "set");

    proxies_hold_replies(proxies, 0, FIVE);
    struct call *call = begin_acquire(f, client, &request);
    for (size_t i = 0; i < FIVE; i++) {
        wait_executed(f, i, "set", before + 1);
    }
    pass_time(ms);
    run_turns(f, 3);
    proxies_pass_replies(proxies, 0, FIVE);
    await(f, call);
    wait_all_answered(f, client);
    return call;
}

static void a_timeout_follows_the_answers(void **state) {
    struct fixture *f = *state;
    struct proxy *proxies[FIVE];
    redlock_client *client = connect_through(f, proxies, 0);
    char key[32];

    for (unsigned i = 0; i < 40; i++) {
        snprintf(key, sizeof(key), "far:%u", i);
        assert_ended(acquire_after(f, proxies, client, key, i < 10 ? 150 : 300), REDLOCK_OK);
        pass_time(1100); /* the timeout of a round begun now is computed once a second */
        run_turns(f, 3);
        wait_all_answered(f, client);
    }
    /* A packet that is lost once is sent again after 200 ms. */
    assert_ended(acquire_after(f, proxies, client, "late", 500), REDLOCK_OK);
    struct call *call = acquire_after(f, proxies, client, "gone", 4000);
    assert_ended(call, REDLOCK_ENOQUORUM);
    assert_explained(call, "ms, usually it takes up to ");
}

struct question {
    bool is_answered;
    redlock_status status;
};

static void on_view(redlock_status status, const redlock_view *view, void *arg) {
    (void)view;
    *(struct question *)arg = (struct question){true, status};
}

static bool is_answered(void *question) {
    return ((const struct question *)question)->is_answered;
}

static struct question ask_after(struct fixture *f, struct proxy **proxies, redlock_client *client,
                                 uint64_t ms) {
    struct question question = {.is_answered = false};

    proxies_hold_replies(proxies, 0, FIVE);
    assert_int_equal(redlock_inspect(client, KEY, 0, on_view, &question), REDLOCK_OK);
    run_turns(f, 3);
    pass_time(ms);
    run_turns(f, 3);
    proxies_pass_replies(proxies, 0, FIVE);
    run_until(f, is_answered, &question, "the inspection has ended");
    wait_all_answered(f, client);
    return question;
}

static void an_inspection_waits_as_long(void **state) {
    struct fixture *f = *state;
    struct proxy *proxies[FIVE];
    redlock_client *client = connect_through(f, proxies, 0);

    wait_all_answered(f, client);
    assert_int_equal(ask_after(f, proxies, client, 200).status, REDLOCK_OK);
    assert_int_equal(ask_after(f, proxies, client, 6000).status, REDLOCK_ENOQUORUM);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        ON_FIVE_MASTERS(a_node_that_answers_earlier_commands_is_not_late),
        ON_FIVE_MASTERS(a_timeout_follows_the_answers),
        ON_FIVE_MASTERS(an_inspection_waits_as_long),
    };

    return cmocka_run_group_tests_name("timeouts", tests, NULL, NULL);
}
