/*
 * redlock_client_ready: its callback comes once, from the loop, with a quorum of nodes whose votes
 * count, and not before; or it reports why there is none.
 */
#include "clocks.h"
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY "orders:42"
#define FIVE 5
#define QUORUM 3
#define PASSWORD "S3cr3t-p4ssw0rd"
#define WAITS_MAX 1024

/* A quarantine short enough to wait for its end. */
#define MAX_TTL_MS 1500

/* A call of redlock_client_ready. */
struct wait {
    struct fixture *f;
    redlock_client *client;
    size_t ended; /* number of callbacks so far */
    redlock_status status;
    uint64_t counting; /* number of nodes whose votes counted at the time of the callback */
    void (*then)(const struct wait *wait); /* runs inside the callback; NULL: nothing */
};

static uint64_t count_nodes(const redlock_client *client) {
    redlock_node_info infos[REDLOCK_MAX_NODES];
    size_t count = redlock_client_nodes(client, infos, REDLOCK_MAX_NODES);
    uint64_t counting = 0;

    for (size_t i = 0; i < count; i++) {
        counting += infos[i].connected && infos[i].trusted;
    }
    return counting;
}

static void on_ready(redlock_status status, void *arg) {
    struct wait *wait = arg;

    wait->ended++;
    wait->status = status;
    wait->counting = count_nodes(wait->client);
    if (wait->then != NULL) {
        wait->then(wait);
    }
}

static void begin_wait(struct fixture *f, struct wait *wait, redlock_client *client,
                       uint64_t timeout_ms) {
    wait->f = f;
    wait->client = client;
    assert_int_equal(redlock_client_ready(client, timeout_ms, on_ready, wait), REDLOCK_OK);
    assert_int_equal(wait->ended, 0); /* never inside the call */
}

static bool has_ended(void *arg) {
    const struct wait *wait = arg;

    return wait->ended > 0;
}

static redlock_status wait_ready(struct fixture *f, struct wait *wait) {
    run_until(f, has_ended, wait, "the client is ready, or cannot be");
    run_turns(f, 3);
    assert_int_equal(wait->ended, 1);
    return wait->status;
}

static redlock_status ask(struct fixture *f, redlock_client *client, uint64_t timeout_ms) {
    struct wait wait = {0};

    begin_wait(f, &wait, client, timeout_ms);
    return wait_ready(f, &wait);
}

static void assert_waiting(struct fixture *f, const struct wait *wait) {
    run_turns(f, 10);
    assert_int_equal(wait->ended, 0);
}

/* ---------------------------------------------------------------------------------- a quorum */

static void it_comes_with_the_quorum(void **state) {
    struct fixture *f = *state;
    struct wait wait = {0};

    for (size_t i = 0; i < QUORUM; i++) {
        masters_kill(f->masters, i);
    }
    redlock_options options = patient_options(f, masters_uris(f->masters), FIVE);
    redlock_client *client = create_client(f, &options);
    begin_wait(f, &wait, client, REDLOCK_FOREVER);
    wait_connected(f, client, FIVE - QUORUM);
    assert_waiting(f, &wait);
    masters_restart(f->masters, 0);
    assert_int_equal(wait_ready(f, &wait), REDLOCK_OK);
    assert_int_equal(wait.counting, QUORUM);
    hold(f, client, KEY, LONG_TTL_MS);
}

static void it_comes_soon_when_it_is_so_already(void **state) {
    struct fixture *f = *state;
    redlock_options options = patient_options(f, masters_uris(f->masters), FIVE);
    redlock_client *client = create_client(f, &options);

    assert_int_equal(ask(f, client, 0), REDLOCK_ENOQUORUM); /* before the first turn */
    wait_connected(f, client, FIVE);
    wait_all_answered(f, client);
    assert_int_equal(ask(f, client, 0), REDLOCK_OK);
    assert_int_equal(ask(f, client, REDLOCK_FOREVER), REDLOCK_OK);
}

static void ask_again(const struct wait *wait) {
    static struct wait second;

    if (wait != &second) {
        second = (struct wait){.then = wait->then};
        begin_wait(wait->f, &second, wait->client, 0);
    }
}

static void hold_now(const struct wait *wait) {
    redlock_request request = request_for(KEY, MAX_TTL_MS);

    begin_acquire(wait->f, wait->client, &request);
}

/* Callbacks come in the order of the calls; a callback may make another call. */
static void many_may_wait(void **state) {
    struct fixture *f = *state;
    static struct wait waits[WAITS_MAX];
    struct wait more = {0};
    redlock_client *client = connect_client(f);

    memset(waits, 0, sizeof(waits));
    waits[0].then = ask_again;
    for (size_t i = 0; i < WAITS_MAX; i++) {
        begin_wait(f, &waits[i], client, i % 2 == 0 ? REDLOCK_FOREVER : PATIENT_MS);
    }
    assert_refused(client, redlock_client_ready(client, 0, on_ready, &more), REDLOCK_EBUSY, "1024");
    for (size_t i = 0; i < WAITS_MAX; i++) {
        assert_int_equal(wait_ready(f, &waits[i]), REDLOCK_OK);
    }
    assert_int_equal(ask(f, client, 0), REDLOCK_OK);
    assert_int_equal(more.ended, 0);
}

/*
 * New masters are connected long before their votes count. Once they count, one try is enough, even
 * before the next heartbeat.
 */
static void new_masters_have_to_be_trusted(void **state) {
    struct fixture *f = *state;
    struct wait wait = {.then = hold_now};
    redlock_options options = patient_options(f, masters_uris(f->masters), FIVE);

    options.guards = REDLOCK_GUARDS_ON;
    options.max_ttl_ms = MAX_TTL_MS;
    redlock_client *client = create_client(f, &options);
    wait_connected(f, client, FIVE);
    assert_int_equal(ask(f, client, 0), REDLOCK_ENOQUORUM);
    assert_true(count_nodes(client) < QUORUM);
    begin_wait(f, &wait, client, REDLOCK_FOREVER);
    assert_int_equal(wait_ready(f, &wait), REDLOCK_OK);
    assert_true(wait.counting >= QUORUM);
    wait_all_ended(f, "the acquisition of the callback has ended");
    assert_ended(TAILQ_FIRST(&f->calls), REDLOCK_OK);
}

/* A replica is known by its role, which the client checks even without guards. */
static void replicas_do_not_count(void **state) {
    struct fixture *f = *state;
    struct wait wait = {0};

    for (size_t i = 0; i < QUORUM; i++) {
        free(masters_query(f->masters, i, "REPLICAOF 127.0.0.2 1"));
    }
    redlock_options options = patient_options(f, masters_uris(f->masters), FIVE);
    redlock_client *client = create_client(f, &options);
    begin_wait(f, &wait, client, REDLOCK_FOREVER);
    wait_connected(f, client, FIVE);
    assert_waiting(f, &wait);
    wait_all_answered(f, client);
    assert_waiting(f, &wait);
    free(masters_query(f->masters, 0, "REPLICAOF NO ONE"));
    assert_int_equal(wait_ready(f, &wait), REDLOCK_OK);
    hold(f, client, KEY, LONG_TTL_MS);
}

/* While the list changes, a quorum of both lists is needed. */
static void both_lists_count(void **state) {
    struct fixture *f = *state;
    struct wait wait = {0};
    const char *nobody[QUORUM] = {masters_uri(f->masters, 0), "redis://127.0.0.2:1",
                                  "redis://127.0.0.2:2"};
    redlock_client *client = connect_client(f);

    wait_all_answered(f, client);
    assert_int_equal(redlock_client_change_nodes(client, nobody, QUORUM), REDLOCK_OK);
    begin_wait(f, &wait, client, REDLOCK_FOREVER);
    assert_waiting(f, &wait);
    assert_int_equal(redlock_client_abandon_nodes(client), REDLOCK_OK);
    assert_int_equal(wait.ended, 0);
    assert_int_equal(wait_ready(f, &wait), REDLOCK_OK);
}

/* --------------------------------------------------------------------------------- no quorum */

static void the_timeout_ends_it(void **state) {
    struct fixture *f = *state;
    struct wait waits[2] = {{0}, {0}};

    for (size_t i = 0; i < QUORUM; i++) {
        masters_kill(f->masters, i);
    }
    redlock_options options = patient_options(f, masters_uris(f->masters), FIVE);
    redlock_client *client = create_client(f, &options);
    begin_wait(f, &waits[0], client, 2 * PATIENT_MS);
    begin_wait(f, &waits[1], client, PATIENT_MS);
    assert_waiting(f, &waits[1]);
    pass_time(PATIENT_MS);
    assert_int_equal(wait_ready(f, &waits[1]), REDLOCK_ENOQUORUM);
    assert_waiting(f, &waits[0]);
    pass_time(PATIENT_MS);
    assert_int_equal(wait_ready(f, &waits[0]), REDLOCK_ENOQUORUM);
    assert_non_null(strstr(node_info(client, 0).reason, "refused"));
}

static int masters_with_password(void **state) {
    static const char *const arguments[] = {"--requirepass", PASSWORD, NULL};

    return start_fixture(state, FIVE, arguments);
}

/* Makes a client whose login `bad` nodes refuse. */
static redlock_client *log_in(struct fixture *f, size_t bad) {
    char texts[FIVE][80];
    const char *uris[FIVE];

    for (size_t i = 0; i < FIVE; i++) {
        snprintf(texts[i], sizeof(texts[i]), "redis://:%s@127.0.0.1:%d",
                 i < bad ? "wr0ng" : PASSWORD, masters_port(f->masters, i));
        uris[i] = texts[i];
    }
    redlock_options options = patient_options(f, uris, FIVE);
    return create_client(f, &options);
}

static void a_wrong_password_ends_it_at_once(void **state) {
    struct fixture *f = *state;
    redlock_client *client = log_in(f, QUORUM);

    assert_int_equal(ask(f, client, REDLOCK_FOREVER), REDLOCK_EACCESS);
    assert_non_null(strstr(node_info(client, 0).reason, "WRONGPASS"));
    assert_int_equal(ask(f, client, REDLOCK_FOREVER), REDLOCK_EACCESS);
    assert_int_equal(ask(f, log_in(f, FIVE - QUORUM), REDLOCK_FOREVER), REDLOCK_OK);
}

/* The guards lack a right at a quorum. */
static void a_missing_right_ends_it_at_once(void **state) {
    struct fixture *f = *state;
    redlock_options options = patient_options(f, masters_uris(f->masters), FIVE);

    options.guards = REDLOCK_GUARDS_ON;
    for (size_t i = 0; i < QUORUM; i++) {
        free(masters_query(f->masters, i, "ACL SETUSER default -info"));
    }
    redlock_client *client = create_client(f, &options);
    assert_int_equal(ask(f, client, REDLOCK_FOREVER), REDLOCK_EACCESS);
    assert_non_null(strstr(node_info(client, 0).distrust, "+info"));
}

/* ----------------------------------------------------------------------- the client's own end */

static void refuse_in_callback(const struct wait *wait) {
    assert_refused(wait->client, redlock_client_ready(wait->client, 0, on_ready, NULL),
                   REDLOCK_ECLOSED, "closing");
}

static void closing_ends_it(void **state) {
    struct fixture *f = *state;

    for (size_t i = 0; i < QUORUM; i++) {
        masters_kill(f->masters, i);
    }
    for (unsigned drain = 0; drain < 2; drain++) {
        struct wait waits[2] = {{.then = refuse_in_callback}, {0}};
        redlock_options options = patient_options(f, masters_uris(f->masters), FIVE);
        redlock_client *client = create_client(f, &options);
        begin_wait(f, &waits[0], client, REDLOCK_FOREVER);
        begin_wait(f, &waits[1], client, PATIENT_MS);
        assert_waiting(f, &waits[0]);
        wait_closed(f, drain ? begin_drain(f, client) : begin_close(f, client));
        for (size_t i = 0; i < 2; i++) {
            assert_int_equal(waits[i].ended, 1);
            assert_int_equal(waits[i].status, REDLOCK_ECLOSED);
        }
    }
}

static void close_now(const struct wait *wait) {
    begin_close(wait->f, wait->client);
}

/* The first callback closes the client: the second one reports that. */
static void a_callback_may_close(void **state) {
    struct fixture *f = *state;
    struct wait waits[2] = {{.then = close_now}, {0}};
    redlock_client *client = connect_client(f);

    wait_all_answered(f, client);
    begin_wait(f, &waits[0], client, REDLOCK_FOREVER);
    begin_wait(f, &waits[1], client, REDLOCK_FOREVER);
    wait_closed(f, TAILQ_FIRST(&f->members));
    assert_int_equal(waits[0].status, REDLOCK_OK);
    assert_int_equal(waits[1].ended, 1);
    assert_int_equal(waits[1].status, REDLOCK_ECLOSED);
}

static void mistakes_are_refused(void **state) {
    struct fixture *f = *state;
    struct wait wait = {0};
    redlock_client *client = connect_client(f);

    assert_int_equal(redlock_client_ready(NULL, 0, on_ready, &wait), REDLOCK_EINVAL);
    assert_refused(client, redlock_client_ready(client, 0, NULL, &wait), REDLOCK_EINVAL,
                   "callback");
    f->allocator.refuse_after = 0;
    redlock_status status = redlock_client_ready(client, 0, on_ready, &wait);
    f->allocator.refuse_after = SIZE_MAX;
    assert_refused(client, status, REDLOCK_ENOMEM, "out of memory");
    run_turns(f, 3);
    assert_int_equal(wait.ended, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        ON_FIVE_MASTERS(it_comes_with_the_quorum),
        ON_FIVE_MASTERS(it_comes_soon_when_it_is_so_already),
        ON_FIVE_MASTERS(many_may_wait),
        ON_FIVE_MASTERS(new_masters_have_to_be_trusted),
        ON_FIVE_MASTERS(replicas_do_not_count),
        ON_FIVE_MASTERS(both_lists_count),
        ON_FIVE_MASTERS(the_timeout_ends_it),
        cmocka_unit_test_setup_teardown(a_wrong_password_ends_it_at_once, masters_with_password,
                                        finish),
        ON_FIVE_MASTERS(a_missing_right_ends_it_at_once),
        ON_FIVE_MASTERS(closing_ends_it),
        ON_FIVE_MASTERS(a_callback_may_close),
        ON_FIVE_MASTERS(mistakes_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
