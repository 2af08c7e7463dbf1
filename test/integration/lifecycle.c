/*
 * The life of a lock and of a client: closed and canceled in each state and inside each callback,
 * and misused.
 */
#include "clocks.h"
#include "harness.h"
#include "master_data.h"
#include "proxy.h"

#include <stdio.h>
#include <string.h>

#define KEY "orders:42"
#define FIVE 5

/* -------------------------------------------------------------------------- close in each state */

/* A client behind proxies, which keep its requests in a state. */
struct stage {
    struct proxy *proxies[FIVE];
    redlock_client *client;
    redlock_request request;
    struct loss *loss;
    struct call *extension;
};

static void set_stage(struct fixture *f, struct stage *stage) {
    const char *uris[FIVE];
    redlock_options options;

    proxies_create(f, stage->proxies, uris);
    options = patient_options(f, uris, FIVE);
    stage->client = connect_with(f, &options);
    stage->request = request_for(KEY, LONG_TTL_MS);
    stage->loss = watch_loss(f, &stage->request);
}

static void hold_scripts(struct stage *stage) {
    proxies_hold_requests(stage->proxies, 0, FIVE, ANY_SCRIPT);
}

static void pass_all(struct stage *stage) {
    for (size_t i = 0; i < FIVE; i++) {
        proxy_pass_requests(stage->proxies[i]);
        proxy_pass_replies(stage->proxies[i]);
    }
}

static void closed_while_it_connects(void **state) {
    struct fixture *f = *state;
    redlock_options options = patient_options(f, masters_uris(f->masters), FIVE);
    redlock_client *client = create_client(f, &options);
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    struct call *call = begin_acquire(f, client, &request);

    wait_closed(f, begin_close(f, client));
    assert_ended(call, REDLOCK_ECLOSED);
    wait_released(f, KEY);
}

static void closed_while_it_acquires(void **state) {
    struct fixture *f = *state;
    struct stage stage;
    struct member *member;
    struct call *call;

    set_stage(f, &stage);
    proxies_hold_replies(stage.proxies, 0, FIVE);
    call = begin_acquire(f, stage.client, &stage.request);
    wait_holders(f, KEY, 5);
    member = begin_close(f, stage.client);
    assert_int_equal(call->ended, 0);
    pass_all(&stage);
    wait_closed(f, member);
    assert_ended(call, REDLOCK_ECLOSED);
    assert_int_equal(stage.loss->count, 0);
    wait_released(f, KEY);
}

static void closed_while_it_backs_off(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    struct call *call;

    rival_takes(f, 0, 3, KEY, LONG_TTL_MS);
    request.wait_ms = REDLOCK_FOREVER;
    call = begin_acquire(f, client, &request);
    wait_executed(f, 4, "evalsha", 5); /* it asks again and again */
    wait_closed(f, begin_close(f, client));
    assert_ended(call, REDLOCK_ECLOSED);
    wait_holders(f, KEY, 3);
}

static void closed_while_it_asks_why_it_was_denied(void **state) {
    struct fixture *f = *state;
    struct stage stage;
    struct member *member;
    struct call *call;

    set_stage(f, &stage);
    rival_takes(f, 0, 3, KEY, LONG_TTL_MS);
    hold_scripts(&stage);
    call = begin_acquire(f, stage.client, &stage.request);
    wait_arrived(f, stage.proxies[4], ANY_SCRIPT, 1);
    member = begin_close(f, stage.client);
    pass_all(&stage);
    wait_closed(f, member);
    assert_true(call->status == REDLOCK_ECLOSED || call->status == REDLOCK_EHELD);
    wait_holders(f, KEY, 3);
}

static void closed_while_it_holds(void **state) {
    struct fixture *f = *state;
    struct stage stage;

    set_stage(f, &stage);
    hold_for(f, stage.client, &stage.request);
    wait_holders(f, KEY, 5);
    wait_closed(f, begin_close(f, stage.client));
    assert_int_equal(stage.loss->count, 1);
    assert_int_equal(stage.loss->status, REDLOCK_ECLOSED);
    wait_released(f, KEY);
}

static void closed_while_it_renews(void **state) {
    struct fixture *f = *state;
    struct stage stage;
    struct member *member;

    set_stage(f, &stage);
    stage.request.watchdog = true;
    stage.request.ttl_ms = 60000;
    hold_for(f, stage.client, &stage.request);
    hold_scripts(&stage);
    pass_time(20000); /* 1/3 of the TTL */
    wait_arrived(f, stage.proxies[4], ANY_SCRIPT, 1);
    member = begin_close(f, stage.client);
    pass_all(&stage);
    wait_closed(f, member);
    assert_int_equal(stage.loss->status, REDLOCK_ECLOSED);
    wait_released(f, KEY);
}

static void closed_while_it_extends(void **state) {
    struct fixture *f = *state;
    struct stage stage;
    struct member *member;
    struct call *call;

    set_stage(f, &stage);
    call = begin_extend(f, hold_for(f, stage.client, &stage.request), 0);
    member = begin_close(f, stage.client);
    wait_closed(f, member);
    assert_ended(call, REDLOCK_ECLOSED);
    assert_int_equal(stage.loss->status, REDLOCK_ECLOSED);
    wait_released(f, KEY);
}

static void closed_when_the_lock_is_lost(void **state) {
    struct fixture *f = *state;
    struct stage stage;
    redlock_lock *lock;

    set_stage(f, &stage);
    lock = hold_for(f, stage.client, &stage.request);
    wait_holders(f, KEY, 5);
    rival_frees(f, 0, 3, KEY);
    assert_int_equal(extend(f, lock, 0), REDLOCK_ELOST);
    assert_int_equal(wait_lost(f, stage.loss), REDLOCK_ELOST);
    wait_closed(f, begin_close(f, stage.client)); /* the harness checks: one on_lost, not two */
    wait_released(f, KEY);
}

static void closed_while_it_releases(void **state) {
    struct fixture *f = *state;
    struct stage stage;
    struct member *member;
    struct call *call;

    set_stage(f, &stage);
    call = begin_release(f, hold_for(f, stage.client, &stage.request));
    member = begin_close(f, stage.client);
    wait_closed(f, member);
    assert_ended(call, REDLOCK_OK);
    assert_int_equal(stage.loss->count, 0);
    wait_released(f, KEY);
}

static void closed_while_nodes_hang(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_lock *lock = hold(f, client, KEY, LONG_TTL_MS);
    struct call *call;
    struct member *member;

    freeze_masters(f, 0, 3);
    call = begin_release(f, lock);
    run_turns(f, 1);
    member = begin_close(f, client);
    for (size_t i = 3; i < FIVE; i++) {
        wait_answered(f, client, i);
    }
    pass_time(PATIENT_MS);
    wait_closed(f, member);
    assert_ended(call, REDLOCK_ENOQUORUM);
    thaw_masters(f, 0, 3);
    wait_released(f, KEY);
}

static void count_close(void *arg) {
    ++*(size_t *)arg;
}

static void a_second_close_is_ignored(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    size_t ignored = 0;

    hold(f, client, KEY, LONG_TTL_MS);
    begin_close(f, client);
    redlock_client_close(client, count_close, &ignored);
    run_turns(f, 1);
    wait_released(f, KEY);
    run_turns(f, 10);
    assert_int_equal(ignored, 0);
}

static void record_nothing(redlock_lock *lock, redlock_status status, void *arg) {
    (void)lock;
    (void)status;
    (void)arg;
    fail_msg("a refused request has called back");
}

static void a_closing_client_begins_nothing(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    redlock_lock *held = hold(f, client, KEY, LONG_TTL_MS);
    struct call *call = begin_acquire(f, client, &request);
    redlock_lock *lock = NULL;

    begin_close(f, client);
    assert_refused(client, redlock_acquire(client, &request, record_nothing, NULL, &lock),
                   REDLOCK_ECLOSED, "clos");
    assert_null(lock);
    assert_int_equal(redlock_extend(held, 0, record_nothing, NULL), REDLOCK_ECLOSED);
    assert_int_equal(await(f, call), REDLOCK_ECLOSED);
}

static struct member *begin_end(struct fixture *f, redlock_client *client, bool by_drain) {
    return by_drain ? begin_drain(f, client) : begin_close(f, client);
}

/*
 * Servers with one lock for each connection do this: the peers disconnect during the close. No
 * on_lost may come, since its argument is freed.
 */
static void locks_are_let_go_during_a_close(void **state) {
    struct fixture *f = *state;

    for (int by_drain = 0; by_drain < 2; by_drain++) {
        redlock_client *client = connect_client(f);
        redlock_request request = request_for(KEY, LONG_TTL_MS);
        struct loss *loss = watch_loss(f, &request);
        redlock_lock *held = hold_for(f, client, &request);
        struct call *asked = begin_acquire(f, client, &request);
        struct member *member;
        struct call *call;

        member = begin_end(f, client, by_drain);
        call = begin_release(f, held);
        assert_int_equal(redlock_cancel(asked->lock), REDLOCK_OK);
        assert_refused(client, redlock_cancel(asked->lock), REDLOCK_EINVAL, "not being acquired");
        assert_refused(client, redlock_release(held, record_nothing, NULL), REDLOCK_EINVAL,
                       "released");
        wait_closed(f, member);
        assert_ended(call, REDLOCK_OK);
        assert_ended(asked, REDLOCK_ECANCELED);
        assert_int_equal(loss->count, 0);
        assert_int_equal(member->unreleased, 0);
        assert_int_equal(holders(f, KEY), 0);
    }
}

struct late_release {
    struct fixture *f;
    struct call *call;
};

static void release_in_close(struct loss *loss, void *arg) {
    struct late_release *release = arg;

    release->call = begin_release(release->f, loss->lock);
}

static void released_inside_the_on_lost_of_a_close(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    struct loss *loss = watch_loss(f, &request);
    struct late_release release = {.f = f};

    loss->then = release_in_close;
    loss->then_arg = &release;
    hold_for(f, client, &request);
    wait_closed(f, begin_close(f, client));
    assert_int_equal(loss->count, 1);
    assert_ended(release.call, REDLOCK_OK);
}

static bool has_one_node_to_wait_for(void *arg) {
    redlock_node_info infos[FIVE];
    size_t owing = 0;

    redlock_client_nodes(arg, infos, FIVE);
    for (size_t i = 0; i < FIVE; i++) {
        owing += infos[i].commands > 0;
    }
    return owing == 1;
}

/* The close has released the lock by then, and its outcome was reported to no callback. */
static void a_lock_released_by_the_close_may_be_released(void **state) {
    struct fixture *f = *state;
    struct stage stage;
    struct member *member;
    struct call *calls[2];
    redlock_lock *gone, *held;

    set_stage(f, &stage);
    gone = hold_for(f, stage.client, &stage.request);
    for (size_t i = 0; i < FIVE; i++) {
        masters_query_integer(f->masters, i, "DEL %s", KEY);
    }
    stage.request.key = KEY "2";
    stage.request.on_lost = NULL;
    held = hold_for(f, stage.client, &stage.request);
    proxy_hold_requests(stage.proxies[0], ANY_SCRIPT);
    member = begin_close(f, stage.client);
    run_until(f, has_one_node_to_wait_for, stage.client, "all but one node have released");
    run_turns(f, 3);
    assert_int_equal(member->closed, 0);
    calls[0] = begin_release(f, gone);
    calls[1] = begin_release(f, held);
    assert_int_equal(await(f, calls[0]), REDLOCK_ELOST);
    assert_int_equal(await(f, calls[1]), REDLOCK_OK);
    assert_int_equal(member->closed, 0);
    pass_all(&stage);
    wait_closed(f, member);
}

static void let_go_in_member(struct member *member, void *arg) {
    redlock_lock *const *locks = arg;

    assert_string_equal(redlock_key(locks[0], NULL), KEY);
    for (size_t i = 0; i < 2; i++) {
        assert_refused(member->client, redlock_release(locks[i], record_nothing, NULL),
                       REDLOCK_ECLOSED, "clos");
        assert_refused(member->client, redlock_cancel(locks[i]), REDLOCK_ECLOSED, "clos");
        assert_int_equal(redlock_validity_ms(locks[i]), 0);
    }
}

static void on_closed_is_the_last_callback(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    redlock_lock *locks[2] = {hold(f, client, KEY, LONG_TTL_MS)};
    struct member *member;

    locks[1] = begin_acquire(f, client, &request)->lock;
    member = begin_close(f, client);
    member->then = let_go_in_member;
    member->then_arg = locks;
    wait_closed(f, member);
}

/*
 * An application without on_lost cannot know that the lock has ended. There are more locks than
 * spare objects of the library, so that a sanitizer sees any use after their end.
 */
static void handles_may_be_asked_until_on_closed(void **state) {
    static redlock_lock *locks[4200];
    struct call *call;
    struct fixture *f = *state;
    size_t count = under_valgrind() ? 50 : sizeof(locks) / sizeof(locks[0]);
    struct stage stage;
    struct member *member;
    char key[32];

    set_stage(f, &stage);
    for (size_t i = 0; i < count; i++) {
        snprintf(key, sizeof(key), "%s:%zu", KEY, i);
        locks[i] =
            begin_acquire(f, stage.client,
                          &(redlock_request){
                              .size = sizeof(redlock_request), .key = key, .ttl_ms = LONG_TTL_MS})
                ->lock;
    }
    wait_all_ended(f, "all are held");
    proxy_hold_requests(stage.proxies[0], ANY_SCRIPT);
    member = begin_close(f, stage.client);
    run_until(f, has_one_node_to_wait_for, stage.client, "all but one node have released");
    run_turns(f, 3);
    assert_int_equal(member->closed, 0);
    for (size_t i = 0; i < count; i++) {
        snprintf(key, sizeof(key), "%s:%zu", KEY, i);
        assert_string_equal(redlock_key(locks[i], NULL), key);
        assert_int_equal(redlock_validity_ms(locks[i]), 0);
        call = begin_release(f, locks[i]);
    }
    assert_int_equal(await(f, call), REDLOCK_OK);
    pass_all(&stage);
    wait_closed(f, member);
}

/* ----------------------------------------------------------------------- close in each callback */

static void close_in_call(struct call *call, void *arg) {
    begin_close(call->fixture, arg);
}

static void closed_inside_on_acquired(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    struct loss *loss = watch_loss(f, &request);
    struct call *call = begin_acquire(f, client, &request);

    call->then = close_in_call;
    call->then_arg = client;
    assert_int_equal(await(f, call), REDLOCK_OK);
    assert_int_equal(wait_lost(f, loss), REDLOCK_ECLOSED);
    wait_released(f, KEY);
}

static void extend_and_close_in_call(struct call *call, void *arg) {
    struct stage *stage = arg;

    stage->extension = begin_extend(call->fixture, call->lock, 0);
    begin_close(call->fixture, stage->client);
}

static void expect_extension_ended(struct loss *loss, void *arg) {
    const struct stage *stage = arg;

    assert_int_equal(loss->status, REDLOCK_ECLOSED);
    assert_ended(stage->extension, REDLOCK_ECLOSED);
}

static void extended_and_closed_inside_on_acquired(void **state) {
    struct fixture *f = *state;
    struct stage stage;
    struct call *call;

    set_stage(f, &stage);
    stage.loss->then = expect_extension_ended;
    stage.loss->then_arg = &stage;
    call = begin_acquire(f, stage.client, &stage.request);
    call->then = extend_and_close_in_call;
    call->then_arg = &stage;
    assert_int_equal(await(f, call), REDLOCK_OK);
    assert_int_equal(wait_lost(f, stage.loss), REDLOCK_ECLOSED);
    wait_released(f, KEY);
}

static void extended_and_closed_inside_on_extended(void **state) {
    struct fixture *f = *state;
    struct stage stage;
    struct call *call;

    set_stage(f, &stage);
    stage.loss->then = expect_extension_ended;
    stage.loss->then_arg = &stage;
    call = begin_extend(f, hold_for(f, stage.client, &stage.request), 0);
    call->then = extend_and_close_in_call;
    call->then_arg = &stage;
    assert_int_equal(await(f, call), REDLOCK_OK);
    assert_int_equal(wait_lost(f, stage.loss), REDLOCK_ECLOSED);
    wait_released(f, KEY);
}

static void closed_inside_a_failed_on_acquired(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    struct call *call;

    rival_takes(f, 0, 5, KEY, LONG_TTL_MS);
    call = begin_acquire(f, client, &request);
    call->then = close_in_call;
    call->then_arg = client;
    assert_int_equal(await(f, call), REDLOCK_EHELD);
}

static void closed_inside_on_extended(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    struct call *call = begin_extend(f, hold(f, client, KEY, LONG_TTL_MS), 0);

    call->then = close_in_call;
    call->then_arg = client;
    assert_int_equal(await(f, call), REDLOCK_OK);
    wait_released(f, KEY);
}

static void closed_inside_on_released(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    struct call *call = begin_release(f, hold(f, client, KEY, LONG_TTL_MS));

    call->then = close_in_call;
    call->then_arg = client;
    assert_int_equal(await(f, call), REDLOCK_OK);
    wait_released(f, KEY);
}

struct closing {
    struct fixture *f;
    redlock_client *client;
};

static void close_in_loss(struct loss *loss, void *arg) {
    const struct closing *closing = arg;

    (void)loss;
    begin_close(closing->f, closing->client);
}

static void closed_inside_on_lost(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    struct closing closing = {f, client};
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    struct loss *loss = watch_loss(f, &request);
    redlock_lock *lock = hold_for(f, client, &request);
    struct call *call;

    wait_holders(f, KEY, 5);
    rival_frees(f, 0, 3, KEY);
    loss->then = close_in_loss;
    loss->then_arg = &closing;
    call = begin_extend(f, lock, 0);
    assert_int_equal(wait_lost(f, loss), REDLOCK_ELOST);
    await(f, call);
    wait_released(f, KEY);
}

/* One of many callbacks of a turn closes the client: the other locks are notified, once each. */
static void closed_inside_one_of_many_callbacks(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    struct call *calls[100];
    char keys[100][16];

    for (size_t i = 0; i < 100; i++) {
        redlock_request request;

        snprintf(keys[i], sizeof(keys[i]), "key:%zu", i);
        request = request_for(keys[i], LONG_TTL_MS);
        calls[i] = begin_acquire(f, client, &request);
    }
    calls[50]->then = close_in_call;
    calls[50]->then_arg = client;
    for (size_t i = 0; i < 100; i++) {
        await(f, calls[i]);
        assert_true(calls[i]->status == REDLOCK_OK || calls[i]->status == REDLOCK_ECLOSED);
    }
    for (size_t i = 0; i < 100; i++) {
        wait_released(f, keys[i]);
    }
}

/* A log listener that closes its client at a certain line. */
struct listener {
    struct fixture *f;
    redlock_client *client;
    size_t lines;
    size_t fatal;
};

static void close_in_log(redlock_log_level level, const char *line, void *arg) {
    struct listener *listener = arg;

    log_capture_write(level, line, &listener->f->capture);
    if (listener->lines++ == listener->fatal && listener->client != NULL) {
        begin_close(listener->f, listener->client);
    }
}

static void record_in_call(struct call *call, void *arg) {
    if (call->status == REDLOCK_OK) {
        *(redlock_lock **)arg = call->lock;
    }
}

/* Acquires, with a watchdog, until the listener closes the client. Returns whether it did. */
static bool live_until_line(struct fixture *f, size_t line) {
    struct listener listener = {.f = f, .fatal = line};
    redlock_options options = patient_options(f, masters_uris(f->masters), FIVE);
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    redlock_lock *lock = NULL;
    struct call *call;

    options.log = close_in_log;
    options.log_arg = &listener;
    listener.client = create_client(f, &options);
    if (listener.lines <= line) {
        call = begin_acquire(f, listener.client, &request);
        call->then = record_in_call;
        call->then_arg = &lock;
        await(f, call);
    }
    if (listener.lines <= line && lock != NULL) {
        let_go(f, lock);
    }
    if (listener.lines <= line) {
        redlock_client *client = listener.client;
        listener.client = NULL; /* a later line is too late */
        close_client(f, client);
        return false;
    }
    run_turns(f, 3);
    wait_closed(f, TAILQ_LAST(&f->members, member_list));
    wait_released(f, KEY);
    return true;
}

static void closed_inside_any_log_line(void **state) {
    struct fixture *f = *state;

    for (size_t line = 0; live_until_line(f, line); line++) {
        assert_true(line < 1000);
    }
}

static void begin_anew(struct member *member, void *arg) {
    struct fixture *f = arg;
    redlock_options options = patient_options(f, masters_uris(f->masters), FIVE);
    redlock_request request = request_for(KEY, LONG_TTL_MS);

    (void)member;
    begin_acquire(f, create_client(f, &options), &request);
}

static void a_new_client_is_made_inside_on_closed(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    struct member *member;

    hold(f, client, KEY, LONG_TTL_MS);
    member = begin_close(f, client);
    member->then = begin_anew;
    member->then_arg = f;
    wait_closed(f, member);
    await(f, TAILQ_LAST(&f->calls, call_list));
}

/* -------------------------------------------------------------------- requests in each callback */

static void release_in_call(struct call *call, void *arg) {
    (void)arg;
    begin_release(call->fixture, call->lock);
}

static void extend_in_call(struct call *call, void *arg) {
    struct call *extension = begin_extend(call->fixture, call->lock, 0);

    (void)arg;
    extension->then = release_in_call;
}

static void extended_and_released_inside_callbacks(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    struct call *call = begin_acquire(f, client, &request);

    call->then = extend_in_call;
    await(f, call);
    assert_int_equal(await(f, TAILQ_NEXT(call, link)), REDLOCK_OK);
    assert_int_equal(await(f, TAILQ_NEXT(TAILQ_NEXT(call, link), link)), REDLOCK_OK);
    wait_released(f, KEY);
}

static void acquire_in_call(struct call *call, void *arg) {
    redlock_request request = request_for("next", LONG_TTL_MS);

    begin_acquire(call->fixture, arg, &request);
}

static void acquired_inside_on_released(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    struct call *call = begin_release(f, hold(f, client, KEY, LONG_TTL_MS));

    call->then = acquire_in_call;
    call->then_arg = client;
    await(f, call);
    assert_int_equal(await(f, TAILQ_NEXT(call, link)), REDLOCK_OK);
}

static void acquired_inside_a_failed_on_acquired(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    struct call *call;

    rival_takes(f, 0, 5, KEY, LONG_TTL_MS);
    call = begin_acquire(f, client, &request);
    call->then = acquire_in_call;
    call->then_arg = client;
    await(f, call);
    assert_int_equal(await(f, TAILQ_NEXT(call, link)), REDLOCK_OK);
}

static void release_in_loss(struct loss *loss, void *arg) {
    begin_release(arg, loss->lock);
}

static void released_inside_on_lost(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_request request = request_for(KEY, 60000);
    struct loss *loss = watch_loss(f, &request);
    struct call *release;

    loss->then = release_in_loss;
    loss->then_arg = f;
    hold_for(f, client, &request);
    pass_time(60000);
    assert_int_equal(wait_lost(f, loss), REDLOCK_EEXPIRED);
    release = TAILQ_LAST(&f->calls, call_list);
    assert_string_equal(release->verb, "release");
    await(f, release);
}

static void cancel_in_call(struct call *call, void *arg) {
    struct call *other = arg;

    (void)call;
    if (other->ended == 0) {
        assert_int_equal(redlock_cancel(other->lock), REDLOCK_OK);
    }
}

/* Cancels the other of two requests, whose own callback may be due in the same turn. */
static void canceled_inside_the_callback_of_another(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_request first = request_for(KEY, LONG_TTL_MS);
    redlock_request second = request_for("other", LONG_TTL_MS);

    for (size_t i = cycles_here(20); i > 0; i--) {
        struct call *one = begin_acquire(f, client, &first);
        struct call *two = begin_acquire(f, client, &second);

        one->then = cancel_in_call;
        one->then_arg = two;
        await(f, one);
        await(f, two);
        assert_ended(one, REDLOCK_OK);
        if (two->status == REDLOCK_OK) {
            let_go(f, two->lock);
        } else {
            assert_ended(two, REDLOCK_ECANCELED);
        }
        let_go(f, one->lock);
        wait_released(f, KEY);
        wait_released(f, "other");
    }
}

static void cancel_itself(struct call *call, void *arg) {
    (void)arg;
    if (call->lock != NULL) {
        assert_int_equal(redlock_cancel(call->lock), REDLOCK_EINVAL);
    }
}

static void canceled_inside_its_own_callback(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    struct call *call = begin_acquire(f, client, &request);

    call->then = cancel_itself;
    assert_int_equal(await(f, call), REDLOCK_OK);
    call = begin_extend(f, call->lock, 0);
    call->then = cancel_itself;
    assert_int_equal(await(f, call), REDLOCK_OK);
    assert_int_equal(let_go(f, call->lock), REDLOCK_OK);
}

static void canceled_while_it_backs_off(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    struct call *call;

    rival_takes(f, 0, 3, KEY, LONG_TTL_MS);
    request.wait_ms = REDLOCK_FOREVER;
    call = begin_acquire(f, client, &request);
    wait_executed(f, 4, "evalsha", 5); /* it asks again and again */
    assert_int_equal(redlock_cancel(call->lock), REDLOCK_OK);
    assert_int_equal(await(f, call), REDLOCK_ECANCELED);
    wait_holders(f, KEY, 3);
}

static void canceled_while_it_asks_why_it_was_denied(void **state) {
    struct fixture *f = *state;
    struct stage stage;
    struct call *call;

    set_stage(f, &stage);
    rival_takes(f, 0, 3, KEY, LONG_TTL_MS);
    hold_scripts(&stage);
    call = begin_acquire(f, stage.client, &stage.request);
    wait_arrived(f, stage.proxies[4], ANY_SCRIPT, 1);
    if (call->ended == 0) {
        assert_int_equal(redlock_cancel(call->lock), REDLOCK_OK);
    }
    assert_int_equal(await(f, call), REDLOCK_ECANCELED);
    pass_all(&stage);
    wait_holders(f, KEY, 3);
}

static void callbacks_may_be_left_out(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_lock *lock = hold(f, client, KEY, LONG_TTL_MS);

    assert_int_equal(redlock_extend(lock, 0, NULL, NULL), REDLOCK_OK);
    assert_int_equal(redlock_release(lock, NULL, NULL), REDLOCK_OK);
    wait_released(f, KEY);
}

/* --------------------------------------------------------------------------------------- misuse */

static void calls_in_the_wrong_state_are_refused(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    struct call *call = begin_acquire(f, client, &request);
    struct call *extension;

    assert_refused(client, redlock_release(call->lock, record_nothing, NULL), REDLOCK_EINVAL,
                   "held");
    assert_refused(client, redlock_extend(call->lock, 0, record_nothing, NULL), REDLOCK_EINVAL,
                   "held");
    assert_int_equal(redlock_validity_ms(call->lock), 0);
    assert_int_equal(await(f, call), REDLOCK_OK);

    assert_refused(client, redlock_cancel(call->lock), REDLOCK_EINVAL, "acquire");
    assert_refused(client, redlock_extend(call->lock, LONG_TTL_MS + 1, record_nothing, NULL),
                   REDLOCK_EINVAL, "ttl_ms");
    assert_refused(client, redlock_extend(call->lock, 1, record_nothing, NULL), REDLOCK_EINVAL,
                   "ttl_ms");
    extension = begin_extend(f, call->lock, 0);
    assert_refused(client, redlock_extend(call->lock, 0, record_nothing, NULL), REDLOCK_EBUSY,
                   "extension");
    assert_int_equal(await(f, extension), REDLOCK_OK);
    assert_int_equal(extend(f, call->lock, 0), REDLOCK_OK);
    assert_int_equal(let_go(f, call->lock), REDLOCK_OK);
}

static size_t holders_when_notified;

static void count_holders(struct loss *loss, void *arg) {
    (void)loss;
    holders_when_notified = holders(arg, KEY);
}

static void close_client_now(struct call *call, void *arg) {
    begin_close(call->fixture, arg);
}

static void holders_are_notified_before_a_close_releases_their_locks(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    struct loss *loss = watch_loss(f, &request);

    loss->then = count_holders;
    loss->then_arg = f;
    hold_for(f, client, &request);
    wait_holders(f, KEY, 5);
    redlock_request other = request_for("other", LONG_TTL_MS);
    struct call *call = begin_acquire(f, client, &other);
    call->then = close_client_now;
    call->then_arg = client;
    wait_lost(f, loss);
    assert_int_equal(loss->status, REDLOCK_ECLOSED);
    assert_int_equal(holders_when_notified, 5);
}

struct asker {
    struct fixture *f;
    redlock_client *client;
    unsigned reported;
};

static void close_on_view(redlock_status status, const redlock_view *view, void *arg) {
    struct asker *asker = arg;

    (void)status;
    (void)view;
    asker->reported++;
    begin_close(asker->f, asker->client);
}

static void close_on_fence(redlock_status status, void *arg) {
    close_on_view(status, NULL, arg);
}

static void hold_and_watch(struct fixture *f, redlock_client *client, struct loss **loss) {
    redlock_request request = request_for(KEY, LONG_TTL_MS);

    *loss = watch_loss(f, &request);
    (*loss)->then = count_holders;
    (*loss)->then_arg = f;
    holders_when_notified = 0;
    hold_for(f, client, &request);
    wait_holders(f, KEY, FIVE);
}

static void closed_inside_an_inspection(void **state) {
    struct fixture *f = *state;
    struct asker asker = {f, connect_client(f), 0};
    struct loss *loss;

    hold_and_watch(f, asker.client, &loss);
    assert_int_equal(redlock_inspect(asker.client, KEY, 0, close_on_view, &asker), REDLOCK_OK);
    assert_int_equal(wait_lost(f, loss), REDLOCK_ECLOSED);
    assert_int_equal(holders_when_notified, FIVE);
    assert_int_equal(asker.reported, 1);
    wait_released(f, KEY);
}

static void closed_inside_the_check_of_a_fence(void **state) {
    struct fixture *f = *state;
    struct asker asker = {f, connect_client(f), 0};
    struct loss *loss;

    hold_and_watch(f, asker.client, &loss);
    assert_int_equal(redlock_check_fence(asker.client, KEY, 0, 1, close_on_fence, &asker),
                     REDLOCK_OK);
    assert_int_equal(wait_lost(f, loss), REDLOCK_ECLOSED);
    assert_int_equal(holders_when_notified, FIVE);
    assert_int_equal(asker.reported, 1);
    wait_released(f, KEY);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        ON_FIVE_MASTERS(closed_while_it_connects),
        ON_FIVE_MASTERS(closed_while_it_acquires),
        ON_FIVE_MASTERS(closed_while_it_backs_off),
        ON_FIVE_MASTERS(closed_while_it_asks_why_it_was_denied),
        ON_FIVE_MASTERS(closed_while_it_holds),
        ON_FIVE_MASTERS(closed_while_it_renews),
        ON_FIVE_MASTERS(closed_while_it_extends),
        ON_FIVE_MASTERS(closed_when_the_lock_is_lost),
        ON_FIVE_MASTERS(closed_while_it_releases),
        ON_FIVE_MASTERS(closed_while_nodes_hang),
        ON_FIVE_MASTERS(a_second_close_is_ignored),
        ON_FIVE_MASTERS(a_closing_client_begins_nothing),
        ON_FIVE_MASTERS(locks_are_let_go_during_a_close),
        ON_FIVE_MASTERS(released_inside_the_on_lost_of_a_close),
        ON_FIVE_MASTERS(a_lock_released_by_the_close_may_be_released),
        ON_FIVE_MASTERS(on_closed_is_the_last_callback),
        ON_FIVE_MASTERS(handles_may_be_asked_until_on_closed),
        ON_FIVE_MASTERS(closed_inside_on_acquired),
        ON_FIVE_MASTERS(extended_and_closed_inside_on_acquired),
        ON_FIVE_MASTERS(extended_and_closed_inside_on_extended),
        ON_FIVE_MASTERS(closed_inside_a_failed_on_acquired),
        ON_FIVE_MASTERS(closed_inside_on_extended),
        ON_FIVE_MASTERS(closed_inside_on_released),
        ON_FIVE_MASTERS(closed_inside_on_lost),
        ON_FIVE_MASTERS(closed_inside_one_of_many_callbacks),
        ON_FIVE_MASTERS(closed_inside_any_log_line),
        ON_FIVE_MASTERS(a_new_client_is_made_inside_on_closed),
        ON_FIVE_MASTERS(extended_and_released_inside_callbacks),
        ON_FIVE_MASTERS(acquired_inside_on_released),
        ON_FIVE_MASTERS(acquired_inside_a_failed_on_acquired),
        ON_FIVE_MASTERS(released_inside_on_lost),
        ON_FIVE_MASTERS(canceled_inside_the_callback_of_another),
        ON_FIVE_MASTERS(canceled_inside_its_own_callback),
        ON_FIVE_MASTERS(canceled_while_it_backs_off),
        ON_FIVE_MASTERS(canceled_while_it_asks_why_it_was_denied),
        ON_FIVE_MASTERS(callbacks_may_be_left_out),
        ON_FIVE_MASTERS(calls_in_the_wrong_state_are_refused),
        ON_FIVE_MASTERS(holders_are_notified_before_a_close_releases_their_locks),
        ON_FIVE_MASTERS(closed_inside_an_inspection),
        ON_FIVE_MASTERS(closed_inside_the_check_of_a_fence),
    };

    return cmocka_run_group_tests_name("lifecycle", tests, NULL, NULL);
}
