#define _GNU_SOURCE 1 /* strcasestr, syscall */

#include "harness.h"

#include "clocks.h"
#include "folder.h"

#include <dirent.h>
#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* The time within which a condition must come true before the test fails. */
#define TIMEOUT_MS 60000
#define VALGRIND_FACTOR 10
#define TICK_US 2000

struct duty {
    SLIST_ENTRY(duty) link;
    void (*destroy)(void *object);
    void *object;
};

bool under_valgrind(void) {
    const char *preload = getenv("LD_PRELOAD");

    return preload != NULL && strstr(preload, "vgpreload") != NULL;
}

size_t cycles_here(size_t cycles) {
    const char *most = getenv("REDLOCK_TEST_CYCLES");

    if (under_valgrind() && cycles > 1000) {
        cycles = 1000 + cycles / 100;
    }
    if (most != NULL && strtoull(most, NULL, 10) < cycles) {
        cycles = strtoull(most, NULL, 10);
    }
    return cycles;
}

/* --------------------------------------------------------------------------------- the loop */

uint64_t real_ms(void) {
    struct timespec now;

    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static uint64_t timeout_ms(void) {
    return (uint64_t)TIMEOUT_MS * (under_valgrind() ? VALGRIND_FACTOR : 1);
}

static void turn(struct fixture *f) {
    if (event_base_loop(f->base, EVLOOP_ONCE) < 0) {
        fail_msg("the loop cannot run");
    }
}

void run_until(struct fixture *f, bool (*condition)(void *arg), void *arg, const char *what) {
    uint64_t limit = real_ms() + timeout_ms();

    while (!condition(arg)) {
        if (real_ms() > limit) {
            log_capture_show(&f->capture);
            fail_msg("timeout: waited until %s", what);
        }
        turn(f);
    }
}

void run_turns(struct fixture *f, unsigned turns) {
    while (turns-- > 0) {
        turn(f);
    }
}

/* Returns by how much the process's clock is ahead of the kernel's. */
static int64_t clock_ahead_ms(void) {
    struct timespec own, kernel;

    syscall(SYS_clock_gettime, CLOCK_BOOTTIME, &kernel);
    clock_gettime(CLOCK_BOOTTIME, &own);
    return (int64_t)(own.tv_sec - kernel.tv_sec) * 1000 + (own.tv_nsec - kernel.tv_nsec) / 1000000;
}

/*
 * Wakes the loop periodically, so that conditions outside the process are checked again. The kernel
 * does not know that a test has advanced the clock, so a pollable loop is woken then, as by a
 * timer.
 */
static void on_tick(evutil_socket_t fd, short what, void *arg) {
    struct fixture *f = arg;
    int64_t ahead_ms = clock_ahead_ms();
    (void)fd;
    (void)what;

    if (f->loop != NULL && ahead_ms > f->ahead_ms) {
        redlock_loop_wake(f->loop);
    }
    f->ahead_ms = ahead_ms;
}

/* ---------------------------------------------------------------------------- the pollable loop */

static void on_readable(evutil_socket_t fd, short what, void *arg) {
    struct fixture *f = arg;
    (void)fd;
    (void)what;

    assert_int_equal(redlock_loop_run(f->loop, 0), 0);
}

static void start_loop(struct fixture *f) {
    const char *kind = getenv("REDLOCK_TEST_LOOP");

    if (kind == NULL || kind[0] == '\0') {
        return;
    }
    assert_string_equal(kind, "pollable");
    f->loop = redlock_loop_pollable();
    assert_non_null(f->loop);
    f->nested = event_new(f->base, redlock_loop_fd(f->loop), EV_READ | EV_PERSIST, on_readable, f);
    assert_non_null(f->nested);
    assert_int_equal(event_add(f->nested, NULL), 0);
}

static void end_loop(struct fixture *f) {
    if (f->loop != NULL) {
        event_free(f->nested);
        redlock_loop_free(f->loop);
    }
}

void pass_until(struct fixture *f, redlock_client *client, uint32_t silent, uint64_t step_ms,
                bool (*condition)(void *arg), void *arg, const char *what) {
    uint64_t limit = real_ms() + timeout_ms();

    while (!condition(arg)) {
        if (real_ms() > limit) {
            log_capture_show(&f->capture);
            fail_msg("timeout: time passed until %s", what);
        }
        for (size_t i = redlock_client_nodes(client, NULL, 0); i-- > 0;) {
            if ((silent & (1u << i)) == 0) {
                wait_answered(f, client, i);
            }
        }
        pass_time(step_ms);
        run_turns(f, 3);
    }
}

static bool have_all_ended(void *arg) {
    const struct fixture *f = arg;

    return f->ended == f->accepted;
}

void wait_all_ended(struct fixture *f, const char *what) {
    run_until(f, have_all_ended, f, what);
}

struct search {
    const struct log_capture *capture;
    const char *text;
};

static bool is_logged(void *arg) {
    const struct search *search = arg;

    return log_capture_has(search->capture, search->text);
}

void wait_logged(struct fixture *f, const char *text) {
    struct search search = {&f->capture, text};
    char what[160];

    snprintf(what, sizeof(what), "this was logged: %s", text);
    run_until(f, is_logged, &search, what);
}

/* ------------------------------------------------------------------------- setup and teardown */

static int open_descriptors(void) {
    DIR *folder = opendir("/proc/self/fd");
    int count = 0;

    if (folder == NULL) {
        return -1;
    }
    while (readdir(folder) != NULL) {
        count++;
    }
    closedir(folder);
    return count;
}

static struct event_base *precise_base(void) {
    struct event_config *config = event_config_new();
    struct event_base *base;

    assert_non_null(config);
    assert_int_equal(event_config_set_flag(config, EVENT_BASE_FLAG_PRECISE_TIMER), 0);
    base = event_base_new_with_config(config);
    event_config_free(config);
    assert_non_null(base);
    return base;
}

int start_fixture_with(void **state, size_t masters, const struct masters_options *options) {
    const struct timeval interval = {.tv_usec = TICK_US};
    struct fixture *f = calloc(1, sizeof(*f));

    if (f == NULL) {
        return -1;
    }
    f->row = *state;
    memset(f->capture.lines, ' ',
           sizeof(f->capture.lines)); /* the tests' own memory, not the library's */
    /* The tests' peers and proxies write to sockets that the library may have closed. */
    signal(SIGPIPE, SIG_IGN);
    TAILQ_INIT(&f->calls);
    TAILQ_INIT(&f->losses);
    TAILQ_INIT(&f->members);
    SLIST_INIT(&f->duties);
    counting_allocator_init(&f->allocator);
    if (masters > 0) {
        f->masters = masters_start_with(masters, options);
        if (f->masters == NULL) {
            free(f);
            return -1;
        }
    }
    f->descriptors = open_descriptors();
    f->base = precise_base();
    f->tick = event_new(f->base, -1, EV_PERSIST, on_tick, f);
    assert_non_null(f->tick);
    assert_int_equal(event_add(f->tick, &interval), 0);
    start_loop(f);
    *state = f;
    return 0;
}

int start_fixture(void **state, size_t masters, const char *const *arguments) {
    return start_fixture_with(state, masters, &(struct masters_options){.arguments = arguments});
}

int no_masters(void **state) {
    return start_fixture(state, 0, NULL);
}

int five_masters(void **state) {
    return start_fixture(state, 5, NULL);
}

void at_finish(struct fixture *f, void (*destroy)(void *object), void *object) {
    struct duty *duty = calloc(1, sizeof(*duty));

    assert_non_null(duty);
    duty->destroy = destroy;
    duty->object = object;
    SLIST_INSERT_HEAD(&f->duties, duty, link);
}

static void remove_folder(void *path) {
    assert_int_equal(folder_remove(path), 0);
    free(path);
}

const char *folder_for(struct fixture *f, const char *name) {
    char *path = malloc(FOLDER_SIZE);

    assert_non_null(path);
    assert_int_equal(folder_make(path, name), 0);
    at_finish(f, remove_folder, path);
    return path;
}

static void do_duties(struct fixture *f) {
    while (!SLIST_EMPTY(&f->duties)) {
        struct duty *duty = SLIST_FIRST(&f->duties);

        SLIST_REMOVE_HEAD(&f->duties, link);
        duty->destroy(duty->object);
        free(duty);
    }
}

static void assert_calls_ended_once(struct fixture *f) {
    struct call *call;

    TAILQ_FOREACH(call, &f->calls, link) {
        if (call->ended != 1) {
            fail_msg("%s had %zu callbacks, not one", call->verb, call->ended);
        }
    }
    assert_int_equal(f->accepted, f->ended);
}

static void free_records(struct fixture *f) {
    while (!TAILQ_EMPTY(&f->calls)) {
        struct call *call = TAILQ_FIRST(&f->calls);

        TAILQ_REMOVE(&f->calls, call, link);
        free(call->why);
        free(call->opinions);
        free(call);
    }
    while (!TAILQ_EMPTY(&f->losses)) {
        struct loss *loss = TAILQ_FIRST(&f->losses);

        TAILQ_REMOVE(&f->losses, loss, link);
        free(loss);
    }
    while (!TAILQ_EMPTY(&f->members)) {
        struct member *member = TAILQ_FIRST(&f->members);

        TAILQ_REMOVE(&f->members, member, link);
        free(member);
    }
}

static void close_clients(struct fixture *f);

int finish(void **state) {
    struct fixture *f = *state;

    close_clients(f);
    assert_calls_ended_once(f);
    do_duties(f);
    event_base_loop(f->base, EVLOOP_NONBLOCK); /* libevent frees streams from its loop */
    end_loop(f);
    assert_int_equal(event_base_get_num_events(f->base, EVENT_BASE_COUNT_ADDED), 1);
    event_free(f->tick);
    event_base_free(f->base);
    assert_int_equal(open_descriptors(), f->descriptors);
    assert_int_equal(f->allocator.blocks, 0);
    masters_finish(f->masters);
    free_records(f);
    free(f);
    return 0;
}

/* ------------------------------------------------------------------------------------ clients */

redlock_options patient_options(struct fixture *f, const char *const *nodes, size_t count) {
    redlock_options options = REDLOCK_OPTIONS_INIT;

    options.nodes = nodes;
    options.node_count = count;
    options.node_timeout_ms = PATIENT_MS;
    options.stall_timeout_ms = 4 * PATIENT_MS;
    options.max_ttl_ms = LONG_TTL_MS;
    options.close_timeout_ms = PATIENT_MS;
    /* the masters are new, so guards would deny votes for 30 s */
    options.guards = REDLOCK_GUARDS_OFF;
    options.retry_delay_ms = 5;
    options.retry_delay_max_ms = 40;
    options.reconnect_delay_ms = 5;
    options.reconnect_delay_max_ms = 40;
    options.log = log_capture_write;
    options.log_arg = &f->capture;
    options.log_level = REDLOCK_LOG_DEBUG;
    options.allocator = &f->allocator.hook;
    return options;
}

struct durable_uris {
    char text[REDLOCK_MAX_NODES][64];
    const char *list[REDLOCK_MAX_NODES];
};

const char *const *durable_uris(struct fixture *f) {
    struct durable_uris *uris = calloc(1, sizeof(*uris));

    assert_non_null(uris);
    at_finish(f, free, uris);
    for (size_t i = 0; i < masters_count(f->masters); i++) {
        snprintf(uris->text[i], sizeof(uris->text[i]), "%s?durable=yes",
                 masters_uri(f->masters, i));
        uris->list[i] = uris->text[i];
    }
    return uris->list;
}

redlock_status try_to_create(struct fixture *f, const redlock_options *options,
                             redlock_client **client, redlock_error *error) {
    return f->loop != NULL ? redlock_client_create_on(f->loop, options, client, error)
                           : redlock_client_create(f->base, options, client, error);
}

redlock_client *create_client(struct fixture *f, const redlock_options *options) {
    struct member *member = calloc(1, sizeof(*member));
    redlock_error error;

    assert_non_null(member);
    if (try_to_create(f, options, &member->client, &error) != REDLOCK_OK) {
        free(member);
        fail_msg("the options were refused: %s", error.message);
    }
    assert_non_null(member->client);
    TAILQ_INSERT_TAIL(&f->members, member, link);
    return member->client;
}

redlock_client *connect_with(struct fixture *f, const redlock_options *options) {
    redlock_client *client = create_client(f, options);

    wait_connected(f, client, options->node_count);
    return client;
}

redlock_client *connect_client(struct fixture *f) {
    size_t count = masters_count(f->masters);
    redlock_options options = patient_options(f, masters_uris(f->masters), count);

    return connect_with(f, &options);
}

redlock_node_info node_info(const redlock_client *client, size_t node) {
    redlock_node_info infos[REDLOCK_MAX_NODES];

    assert_int_in_range(node + 1, 1, redlock_client_nodes(client, infos, REDLOCK_MAX_NODES));
    return infos[node];
}

/* The number of a client's nodes that must have a property. */
struct tally {
    const redlock_client *client;
    bool (*is_so)(const redlock_node_info *info);
    size_t wanted;
};

static bool are_so_many(void *arg) {
    const struct tally *tally = arg;
    redlock_node_info infos[REDLOCK_MAX_NODES];
    size_t nodes = redlock_client_nodes(tally->client, infos, REDLOCK_MAX_NODES);
    size_t count = 0;

    for (size_t i = 0; i < nodes; i++) {
        count += tally->is_so(&infos[i]);
    }
    return count == tally->wanted;
}

static void wait_tally(struct fixture *f, struct tally tally, const char *word) {
    char what[64];

    snprintf(what, sizeof(what), "exactly %zu nodes are %s", tally.wanted, word);
    run_until(f, are_so_many, &tally, what);
}

static bool is_connected(const redlock_node_info *info) {
    return info->connected;
}

void wait_connected(struct fixture *f, redlock_client *client, size_t count) {
    wait_tally(f, (struct tally){client, is_connected, count}, "connected");
}

static bool is_trusted(const redlock_node_info *info) {
    return info->trusted;
}

void wait_trusted(struct fixture *f, redlock_client *client, size_t count) {
    wait_tally(f, (struct tally){client, is_trusted, count}, "trusted");
}

/* A condition on one node. */
struct question {
    const redlock_client *client;
    size_t node;
    uint64_t number;
};

static bool has_disconnected(void *arg) {
    const struct question *question = arg;

    return node_info(question->client, question->node).disconnected >= question->number;
}

void wait_disconnected(struct fixture *f, redlock_client *client, size_t node, uint64_t times) {
    struct question question = {client, node, times};

    run_until(f, has_disconnected, &question, "the node's connection has ended");
}

void pass_until_disconnected(struct fixture *f, redlock_client *client, size_t node,
                             uint64_t step_ms, uint64_t times) {
    struct question question = {client, node, times};

    pass_until(f, client, 1u << node, step_ms, has_disconnected, &question,
               "the node's connection has ended");
}

static bool has_no_pending_releases(void *arg) {
    const struct question *question = arg;

    return node_info(question->client, question->node).pending_releases == 0;
}

void wait_releases_done(struct fixture *f, redlock_client *client, size_t node) {
    struct question question = {client, node, 0};

    run_until(f, has_no_pending_releases, &question, "the node has no pending releases");
}

static bool has_answered(void *arg) {
    const struct question *question = arg;

    return node_info(question->client, question->node).commands == 0;
}

void wait_answered(struct fixture *f, redlock_client *client, size_t node) {
    struct question question = {client, node, 0};

    run_until(f, has_answered, &question, "the node has answered all that it was sent");
}

static bool have_all_answered(void *client) {
    redlock_node_info infos[REDLOCK_MAX_NODES];
    size_t nodes = redlock_client_nodes(client, infos, REDLOCK_MAX_NODES);
    uint32_t commands = 0;

    for (size_t i = 0; i < nodes; i++) {
        commands += infos[i].commands;
    }
    return commands == 0;
}

void wait_all_answered(struct fixture *f, redlock_client *client) {
    run_until(f, have_all_answered, client, "all nodes have answered all that they were sent");
}

static void on_closed(void *arg) {
    struct member *member = arg;

    member->closed++;
    assert_int_equal(member->closed, 1);
    if (member->then != NULL) {
        member->then(member, member->then_arg);
    }
}

static bool is_closed(void *arg) {
    return ((const struct member *)arg)->closed > 0;
}

static void on_drained(uint64_t unreleased, void *arg) {
    struct member *member = arg;

    member->unreleased = unreleased;
    on_closed(arg);
}

static void start_to_close(struct member *member) {
    member->closing = true;
    redlock_client_close(member->client, on_closed, member);
    assert_int_equal(member->closed, 0);
}

static struct member *find_open(struct fixture *f, const redlock_client *client) {
    struct member *member;

    TAILQ_FOREACH(member, &f->members, link) {
        if (member->client == client && !member->closing) {
            return member;
        }
    }
    fail_msg("no such client is open");
    return NULL;
}

struct member *begin_close(struct fixture *f, redlock_client *client) {
    struct member *member = find_open(f, client);

    start_to_close(member);
    return member;
}

struct member *begin_drain(struct fixture *f, redlock_client *client) {
    struct member *member = find_open(f, client);

    member->closing = true;
    redlock_client_drain(client, on_drained, member);
    assert_int_equal(member->closed, 0);
    return member;
}

void wait_closed(struct fixture *f, struct member *member) {
    run_until(f, is_closed, member, "the client is closed");
}

void close_client(struct fixture *f, redlock_client *client) {
    wait_closed(f, begin_close(f, client));
}

static void close_clients(struct fixture *f) {
    struct member *member;

    TAILQ_FOREACH(member, &f->members, link) {
        if (!member->closing) {
            start_to_close(member);
        }
    }
    TAILQ_FOREACH(member, &f->members, link) {
        wait_closed(f, member);
    }
}

/* ------------------------------------------------------------------------------------ requests */

redlock_request request_for(const char *key, uint64_t ttl_ms) {
    redlock_request request = REDLOCK_REQUEST_INIT;

    request.key = key;
    request.ttl_ms = ttl_ms;
    return request;
}

static void on_lost(redlock_lock *lock, redlock_status status, void *arg) {
    struct loss *loss = arg;

    loss->count++;
    assert_int_equal(loss->count, 1);
    loss->status = status;
    loss->lock = lock;
    if (loss->then != NULL) {
        loss->then(loss, loss->then_arg);
    }
}

struct loss *watch_loss(struct fixture *f, redlock_request *request) {
    struct loss *loss = calloc(1, sizeof(*loss));

    assert_non_null(loss);
    TAILQ_INSERT_TAIL(&f->losses, loss, link);
    request->on_lost = on_lost;
    request->on_lost_arg = loss;
    return loss;
}

static bool is_lost(void *arg) {
    return ((const struct loss *)arg)->count > 0;
}

redlock_status wait_lost(struct fixture *f, struct loss *loss) {
    run_until(f, is_lost, loss, "the lock is lost");
    return loss->status;
}

static struct call *new_call(struct fixture *f, const char *verb, redlock_lock *lock) {
    struct call *call = calloc(1, sizeof(*call));

    assert_non_null(call);
    call->fixture = f;
    call->verb = verb;
    call->lock = lock;
    return call;
}

/* Registers an accepted call, or fails the test because the call was refused. */
static struct call *accept_call(struct call *call, redlock_status status) {
    struct fixture *f = call->fixture;

    TAILQ_INSERT_TAIL(&f->calls, call, link);
    if (status != REDLOCK_OK) {
        call->ended = 1;
        fail_msg("%s was refused: %s", call->verb, redlock_status_name(status));
    }
    call->returned = true;
    f->accepted++;
    return call;
}

static void write_down(struct call *call, const redlock_lock *lock) {
    redlock_node_report reports[REDLOCK_MAX_NODES];

    call->why = strdup(redlock_explain(lock));
    assert_non_null(call->why);
    assert_false(holds_token(call->why));
    call->opinion_count = redlock_report(lock, reports, REDLOCK_MAX_NODES);
    assert_int_in_range(call->opinion_count, 1, REDLOCK_MAX_NODES);
    call->opinions = calloc(call->opinion_count, sizeof(*call->opinions));
    assert_non_null(call->opinions);
    for (size_t i = 0; i < call->opinion_count; i++) {
        struct opinion *opinion = &call->opinions[i];

        opinion->vote = reports[i].vote;
        opinion->ttl_ms = reports[i].ttl_ms;
        snprintf(opinion->detail, sizeof(opinion->detail), "%s", reports[i].detail);
    }
}

static void end_call(struct call *call, redlock_lock *lock, redlock_status status) {
    if (!call->returned) {
        fail_msg("%s: the callback came before the call returned", call->verb);
    }
    if (call->ended > 0) {
        fail_msg("%s: a second callback, with %s", call->verb, redlock_status_name(status));
    }
    call->ended++;
    call->fixture->ended++;
    call->status = status;
    write_down(call, lock);
}

static void then(struct call *call) {
    if (call->then != NULL) {
        call->then(call, call->then_arg);
    }
}

static void on_acquired(redlock_lock *lock, redlock_status status, void *arg) {
    struct call *call = arg;

    assert_ptr_equal(lock, call->lock);
    end_call(call, lock, status);
    if (status != REDLOCK_OK) {
        call->lock = NULL;
    }
    then(call);
}

static void on_extended(redlock_lock *lock, redlock_status status, void *arg) {
    struct call *call = arg;

    assert_ptr_equal(lock, call->lock);
    end_call(call, lock, status);
    then(call);
}

static void on_released(redlock_lock *lock, redlock_status status, void *arg) {
    struct call *call = arg;

    assert_ptr_equal(lock, call->lock);
    end_call(call, lock, status);
    call->lock = NULL;
    then(call);
}

struct call *begin_acquire(struct fixture *f, redlock_client *client,
                           const redlock_request *request) {
    struct call *call = new_call(f, "acquire", NULL);

    return accept_call(call, redlock_acquire(client, request, on_acquired, call, &call->lock));
}

struct call *begin_extend(struct fixture *f, redlock_lock *lock, uint64_t ttl_ms) {
    struct call *call = new_call(f, "extend", lock);

    return accept_call(call, redlock_extend(lock, ttl_ms, on_extended, call));
}

struct call *begin_release(struct fixture *f, redlock_lock *lock) {
    struct call *call = new_call(f, "release", lock);

    return accept_call(call, redlock_release(lock, on_released, call));
}

struct growth {
    const redlock_lock *lock;
    uint64_t above_ms;
};

static bool has_grown(void *arg) {
    const struct growth *growth = arg;

    return redlock_validity_ms(growth->lock) > growth->above_ms;
}

void wait_valid(struct fixture *f, const redlock_lock *lock, uint64_t above_ms) {
    struct growth growth = {lock, above_ms};

    run_until(f, has_grown, &growth, "the lock is renewed");
}

static bool has_ended(void *arg) {
    return ((const struct call *)arg)->ended > 0;
}

redlock_status await(struct fixture *f, struct call *call) {
    char what[64];

    snprintf(what, sizeof(what), "%s ends", call->verb);
    run_until(f, has_ended, call, what);
    return call->status;
}

struct call *acquire(struct fixture *f, redlock_client *client, const redlock_request *request) {
    struct call *call = begin_acquire(f, client, request);

    await(f, call);
    return call;
}

redlock_status try_lock(struct fixture *f, redlock_client *client, const char *key,
                        uint64_t ttl_ms) {
    redlock_request request = request_for(key, ttl_ms);

    return acquire(f, client, &request)->status;
}

redlock_status extend(struct fixture *f, redlock_lock *lock, uint64_t ttl_ms) {
    return await(f, begin_extend(f, lock, ttl_ms));
}

redlock_status let_go(struct fixture *f, redlock_lock *lock) {
    return await(f, begin_release(f, lock));
}

redlock_lock *hold_for(struct fixture *f, redlock_client *client, const redlock_request *request) {
    struct call *call = acquire(f, client, request);

    assert_ended(call, REDLOCK_OK);
    return call->lock;
}

redlock_lock *hold(struct fixture *f, redlock_client *client, const char *key, uint64_t ttl_ms) {
    redlock_request request = request_for(key, ttl_ms);

    return hold_for(f, client, &request);
}

/* ---------------------------------------------------------------------------------- assertions */

size_t votes(const struct call *call, redlock_vote vote) {
    size_t count = 0;

    for (size_t i = 0; i < call->opinion_count; i++) {
        count += call->opinions[i].vote == vote;
    }
    return count;
}

void assert_ended(const struct call *call, redlock_status status) {
    assert_int_equal(call->ended, 1);
    if (call->status != status) {
        log_capture_show(&call->fixture->capture);
        fail_msg("%s ended with %s, not %s: %s", call->verb, redlock_status_name(call->status),
                 redlock_status_name(status), call->why);
    }
}

void assert_explained(const struct call *call, const char *text) {
    if (strcasestr(call->why, text) == NULL) {
        fail_msg("\"%s\" is not in the explanation: %s", text, call->why);
    }
}

void assert_refused(const redlock_client *client, redlock_status status, redlock_status expected,
                    const char *named) {
    const char *error = redlock_client_error(client);

    assert_string_equal(redlock_status_name(status), redlock_status_name(expected));
    if (strstr(error, named) == NULL) {
        fail_msg("\"%s\" is not in the error: %s", named, error);
    }
}
