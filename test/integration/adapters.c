/*
 * The library on the event loop of an application, by its adapter. Each kind of loop has a program
 * of its own, from these same tests: see test/support/outer.h. At the end of each test the
 * application's loop must be empty, so that it returns by itself.
 */
#include "harness.h"
#include "master_data.h"
#include "outer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define KEY "orders:42"
#define CROWD 10000
#define SLOTS 32
#define CLIENTS_MAX 2
#define NESTED 2

/* An application: its loop, its clients, and what it has seen. */
struct program {
    struct fixture *f;
    struct outer *outer;
    redlock_loop *loops[OUTER_ADAPTERS];
    size_t adapters; /* number of adapters that are attached */
    redlock_client *clients[CLIENTS_MAX];
    size_t open;          /* number of clients not closed yet */
    bool detaches_inside; /* detaches the adapters in the last on_closed */
    redlock_lock *lock;
    redlock_status status; /* of the last callback */
    size_t callbacks;
    size_t ticks;
    size_t lost;
    void (*then)(struct program *program); /* runs inside each callback, unless NULL */
};

/* ---- an application ---- */

static void detach_all(struct program *program) {
    for (size_t i = 0; i < program->adapters; i++) {
        outer_detach(program->outer, i);
    }
}

static void on_closed(void *arg) {
    struct program *program = arg;

    program->open--;
    if (program->open == 0 && program->detaches_inside) {
        detach_all(program);
    }
}

/* Opens clients on the adapters, which are attached first, in turn. */
static void open_program(struct program *program, size_t adapters, size_t clients) {
    struct fixture *f = program->f;

    program->outer = outer_open();
    program->adapters = adapters;
    for (size_t i = 0; i < adapters; i++) {
        program->loops[i] = outer_attach(program->outer, i);
        assert_non_null(program->loops[i]);
    }
    for (size_t i = 0; i < clients; i++) {
        redlock_options options =
            patient_options(f, masters_uris(f->masters), masters_count(f->masters));

        assert_int_equal(redlock_client_create_on(program->loops[i % adapters], &options,
                                                  &program->clients[i], NULL),
                         REDLOCK_OK);
        program->open++;
    }
}

/* Runs the loop until all clients have closed and it is empty. */
static void end_program(struct program *program) {
    while (program->open > 0) {
        outer_turn(program->outer);
    }
    if (!program->detaches_inside) {
        assert_false(outer_is_empty(program->outer));
        detach_all(program);
    }
    assert_true(outer_is_empty(program->outer));
    outer_close(program->outer);
}

static void close_program(struct program *program, size_t clients) {
    for (size_t i = 0; i < clients; i++) {
        redlock_client_close(program->clients[i], on_closed, program);
    }
    end_program(program);
}

/* Runs the loop until a number of callbacks have come. The test's own timeout ends a hang. */
static void run_to(struct program *program, size_t callbacks) {
    while (program->callbacks < callbacks) {
        outer_turn(program->outer);
    }
}

static void seen(struct program *program, redlock_status status) {
    program->status = status;
    program->callbacks++;
    if (program->then != NULL) {
        program->then(program);
    }
}

static void on_lock(redlock_lock *lock, redlock_status status, void *arg) {
    struct program *program = arg;

    program->lock = lock;
    seen(program, status);
}

static void on_lost(redlock_lock *lock, redlock_status status, void *arg) {
    struct program *program = arg;
    (void)lock;
    program->lost++;
    seen(program, status);
}

static redlock_request held_request(struct program *program) {
    redlock_request request = request_for(KEY, LONG_TTL_MS);

    request.watchdog = true;
    request.watch_key = true; /* so that a loss is notified at once */
    request.on_lost = on_lost;
    request.on_lost_arg = program;
    return request;
}

/* Acquires the key with the first client, and waits until it is held. */
static void take(struct program *program) {
    redlock_request request = held_request(program);
    size_t before = program->callbacks;

    assert_int_equal(redlock_acquire(program->clients[0], &request, on_lock, program, NULL),
                     REDLOCK_OK);
    run_to(program, before + 1);
    assert_int_equal(program->status, REDLOCK_OK);
}

static void give_back(struct program *program) {
    size_t before = program->callbacks;

    assert_int_equal(redlock_release(program->lock, on_lock, program), REDLOCK_OK);
    run_to(program, before + 1);
    assert_int_equal(program->status, REDLOCK_OK);
}

/* ---- locks ---- */

static void a_lock_is_acquired_extended_and_released(void **state) {
    struct program program = {.f = *state};

    open_program(&program, 1, 1);
    for (size_t i = 0; i < 100; i++) {
        size_t before = program.callbacks + 1;

        take(&program);
        assert_int_equal(redlock_extend(program.lock, LONG_TTL_MS, on_lock, &program), REDLOCK_OK);
        run_to(&program, before + 1);
        assert_int_equal(program.status, REDLOCK_OK);
        give_back(&program);
    }
    close_program(&program, 1);
}

static void a_waiter_is_granted_the_key_after_its_holder(void **state) {
    struct program program = {.f = *state};
    redlock_request request = held_request(&program);
    redlock_lock *first;

    open_program(&program, 1, 2);
    take(&program);
    first = program.lock;
    request.wait_ms = REDLOCK_FOREVER;
    assert_int_equal(redlock_acquire(program.clients[1], &request, on_lock, &program, NULL),
                     REDLOCK_OK);
    while (holders(program.f, "redlock:waiting") < 5) { /* all nodes know of the queue */
        outer_turn(program.outer);
    }
    assert_int_equal(program.callbacks, 1);
    assert_int_equal(redlock_release(first, NULL, NULL), REDLOCK_OK);
    run_to(&program, 2);
    assert_int_equal(program.status, REDLOCK_OK);
    give_back(&program);
    close_program(&program, 2);
}

/* Nothing but a timer of the library makes it ask again. */
static void a_timer_of_the_library_fires(void **state) {
    struct program program = {.f = *state};
    redlock_request request = request_for(KEY, LONG_TTL_MS);

    open_program(&program, 1, 1);
    rival_takes(program.f, 0, 5, KEY, 100);
    request.wait_ms = REDLOCK_FOREVER;
    assert_int_equal(redlock_acquire(program.clients[0], &request, on_lock, &program, NULL),
                     REDLOCK_OK);
    run_to(&program, 1);
    assert_int_equal(program.status, REDLOCK_OK);
    close_program(&program, 1);
}

static void a_loss_is_notified(void **state) {
    struct program program = {.f = *state};

    open_program(&program, 1, 1);
    take(&program);
    rival_frees(program.f, 0, 5, KEY);
    run_to(&program, 2);
    assert_int_equal(program.status, REDLOCK_ELOST);
    assert_int_equal(program.lost, 1);
    close_program(&program, 1);
}

static void ten_thousand_locks_are_held_at_once(void **state) {
    struct program program = {.f = *state};
    size_t count = cycles_here(CROWD);

    open_program(&program, 1, 1);
    for (size_t i = 0; i < count; i++) {
        char key[32];

        snprintf(key, sizeof(key), "crowd:%zu", i);
        redlock_request request = request_for(key, LONG_TTL_MS);
        request.wait_ms = REDLOCK_FOREVER;
        assert_int_equal(redlock_acquire(program.clients[0], &request, on_lock, &program, NULL),
                         REDLOCK_OK);
    }
    for (size_t i = 0; i < count; i++) {
        run_to(&program, i + 1);
        assert_int_equal(program.status, REDLOCK_OK);
    }
    close_program(&program, 1);
    for (size_t i = 0; i < 5; i++) { /* redlock:queues may stay for a while */
        assert_true(masters_query_integer(program.f->masters, i, "DBSIZE") < 3);
    }
}

/* ---- several on one loop ---- */

static void clients_share_an_adapter(void **state) {
    struct program program = {.f = *state};

    open_program(&program, 1, 2);
    take(&program);
    redlock_request request = request_for("orders:43", LONG_TTL_MS);
    assert_int_equal(redlock_acquire(program.clients[1], &request, on_lock, &program, NULL),
                     REDLOCK_OK);
    run_to(&program, 2);
    assert_int_equal(program.status, REDLOCK_OK);
    close_program(&program, 2);
}

static void two_adapters_share_a_loop(void **state) {
    struct program program = {.f = *state, .detaches_inside = true};

    open_program(&program, 2, 2);
    take(&program);
    redlock_request request = request_for("orders:43", LONG_TTL_MS);
    assert_int_equal(redlock_acquire(program.clients[1], &request, on_lock, &program, NULL),
                     REDLOCK_OK);
    run_to(&program, 2);
    assert_int_equal(program.status, REDLOCK_OK);
    close_program(&program, 2);
}

static void on_tick(void *arg) {
    struct program *program = arg;

    program->ticks++;
}

/* Locks and releases without a pause, so that the descriptor is nearly always readable. */
static void take_again(struct program *program) {
    redlock_request request = request_for(KEY, LONG_TTL_MS);

    if (program->ticks >= 20) {
        program->then = NULL;
    } else if (program->callbacks % 2 == 1) {
        assert_int_equal(redlock_release(program->lock, on_lock, program), REDLOCK_OK);
    } else {
        assert_int_equal(redlock_acquire(program->clients[0], &request, on_lock, program, NULL),
                         REDLOCK_OK);
    }
}

static void timers_of_the_application_fire_beside(void **state) {
    struct program program = {.f = *state, .then = take_again};
    redlock_request request = request_for(KEY, LONG_TTL_MS);

    open_program(&program, 1, 1);
    outer_start_timer(program.outer, on_tick, &program);
    assert_int_equal(redlock_acquire(program.clients[0], &request, on_lock, &program, NULL),
                     REDLOCK_OK);
    while (program.then != NULL) {
        outer_turn(program.outer);
    }
    assert_true(program.callbacks > 0);
    outer_stop_timer(program.outer);
    close_program(&program, 1);
}

/* ---- masters that fail under load ---- */

struct slot {
    struct load *load;
    redlock_lock *lock;
    char key[32];
};

struct load {
    struct program *program;
    struct slot slots[SLOTS];
    size_t succeeded;
    size_t failed;
    size_t running;
    bool stops;
};

static void begin_slot(struct slot *slot);

static void on_slot_released(redlock_lock *lock, redlock_status status, void *arg) {
    struct slot *slot = arg;
    (void)lock;
    if (status == REDLOCK_OK) {
        slot->load->succeeded++;
    } else {
        slot->load->failed++;
    }
    begin_slot(slot);
}

static void on_slot_acquired(redlock_lock *lock, redlock_status status, void *arg) {
    struct slot *slot = arg;

    if (status != REDLOCK_OK) {
        slot->load->failed++;
        begin_slot(slot);
    } else {
        assert_int_equal(redlock_release(lock, on_slot_released, slot), REDLOCK_OK);
    }
}

static void begin_slot(struct slot *slot) {
    struct load *load = slot->load;
    redlock_request request = request_for(slot->key, LONG_TTL_MS);

    if (load->stops) {
        load->running--;
        return;
    }
    assert_int_equal(
        redlock_acquire(load->program->clients[0], &request, on_slot_acquired, slot, NULL),
        REDLOCK_OK);
}

static void run_load(struct load *load, size_t succeeded, size_t failed) {
    succeeded += load->succeeded;
    failed += load->failed;
    while (load->succeeded < succeeded || load->failed < failed) {
        outer_turn(load->program->outer);
    }
}

static size_t connected(const struct program *program) {
    redlock_node_info infos[5];
    size_t count = 0;

    assert_int_equal(redlock_client_nodes(program->clients[0], infos, 5), 5);
    for (size_t i = 0; i < 5; i++) {
        count += infos[i].connected;
    }
    return count;
}

static void masters_die_and_come_back_under_load(void **state) {
    struct program program = {.f = *state, .detaches_inside = true};
    struct load load = {.program = &program, .running = SLOTS};
    struct masters *masters = program.f->masters;

    open_program(&program, 1, 1);
    for (size_t i = 0; i < SLOTS; i++) {
        load.slots[i].load = &load;
        snprintf(load.slots[i].key, sizeof(load.slots[i].key), "orders:%zu", i);
        begin_slot(&load.slots[i]);
    }
    run_load(&load, 500, 0);
    masters_kill(masters, 0);
    masters_kill(masters, 1);
    run_load(&load, 500, 0); /* a quorum is left */
    masters_kill(masters, 2);
    run_load(&load, 0, 100);
    for (size_t i = 0; i < 3; i++) {
        masters_restart(masters, i);
    }
    run_load(&load, 500, 0);
    while (connected(&program) < 5) { /* otherwise a quorum could need the one that is frozen */
        outer_turn(program.outer);
    }
    freeze(program.f, 4);
    run_load(&load, 500, 0);
    thaw(program.f, 4);
    load.stops = true;
    while (load.running > 0) {
        outer_turn(program.outer);
    }
    close_program(&program, 1);
}

/* ---- closing ---- */

static void close_inside(struct program *program) {
    program->then = NULL;
    redlock_client_close(program->clients[0], on_closed, program);
}

static void on_view(redlock_status status, const redlock_view *view, void *arg) {
    (void)view;
    seen(arg, status);
}

static void on_ready(redlock_status status, void *arg) {
    seen(arg, status);
}

enum callback { ACQUIRED, EXTENDED, RELEASED, LOST, VIEW, READY };

static void begin_callback(struct program *program, enum callback callback) {
    redlock_client *client = program->clients[0];
    redlock_request request = held_request(program);

    if (callback == EXTENDED || callback == RELEASED || callback == LOST) {
        take(program);
    }
    program->then = close_inside;
    if (callback == LOST) {
        rival_frees(program->f, 0, 5, KEY);
        return;
    }
    redlock_status status =
        callback == ACQUIRED   ? redlock_acquire(client, &request, on_lock, program, NULL)
        : callback == EXTENDED ? redlock_extend(program->lock, LONG_TTL_MS, on_lock, program)
        : callback == RELEASED ? redlock_release(program->lock, on_lock, program)
        : callback == VIEW     ? redlock_inspect(client, KEY, strlen(KEY), on_view, program)
                               : redlock_client_ready(client, PATIENT_MS, on_ready, program);
    assert_int_equal(status, REDLOCK_OK);
}

/* Closes the client in each callback, and detaches inside on_closed, or after it. */
static void a_client_closes_in_its_callbacks(void **state) {
    for (enum callback callback = ACQUIRED; callback <= READY; callback++) {
        for (int inside = 0; inside <= 1; inside++) {
            struct program program = {.f = *state, .detaches_inside = inside != 0};

            open_program(&program, 1, 1);
            begin_callback(&program, callback);
            end_program(&program);
            assert_true(program.callbacks > 0);
        }
    }
}

static void an_adapter_without_a_client_is_detached(void **state) {
    struct program program = {.f = *state};

    open_program(&program, 2, 0);
    end_program(&program);
    outer_refuses();
}

/* ---- limits ---- */

/* Returns the number of the next descriptor that is opened. */
static rlim_t next_descriptor(void) {
    int fd = dup(STDERR_FILENO);

    assert_true(fd >= 0);
    close(fd);
    return (rlim_t)fd;
}

static void without_descriptors_an_adapter_is_refused(void **state) {
    struct program program = {.f = *state};
    struct rlimit before;
    struct rlimit limit;

    open_program(&program, 1, 0);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    limit = before;
    for (rlim_t i = 0; i < 3; i++) {
        limit.rlim_cur = next_descriptor() + i;
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
        errno = 0;
        redlock_loop *loop = outer_attach(program.outer, 1);
        int error = errno;
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
        assert_null(loop);
        assert_int_equal(error, EMFILE);
    }
    end_program(&program);
}

/* ---- nested loops, and children ---- */

/*
 * Runs the application's loop inside a callback, while the library's descriptor is readable: the
 * loop must wait for the application's timer, and not spin.
 */
static void nest(struct program *program) {
    size_t turns = 0;

    program->then = NULL;
    redlock_loop_wake(program->loops[0]);
    program->ticks = 0;
    while (program->ticks < 20) {
        outer_turn(program->outer);
        turns++;
    }
    assert_true(turns < 3 * program->ticks);
}

static void a_nested_loop_does_not_spin(void **state) {
    struct program program = {.f = *state};

    open_program(&program, 1, 1);
    outer_start_timer(program.outer, on_tick, &program);
    program.then = nest;
    take(&program);
    give_back(&program); /* the descriptor is watched again */
    outer_stop_timer(program.outer);
    close_program(&program, 1);
}

/* Detaches in a callback that has run the loop. */
static void nest_and_close(struct program *program) {
    nest(program);
    close_inside(program);
}

static void a_client_closes_after_a_nested_loop(void **state) {
    struct program program = {.f = *state, .detaches_inside = true};
    redlock_request request = request_for(KEY, LONG_TTL_MS);

    open_program(&program, 1, 1);
    outer_start_timer(program.outer, on_tick, &program);
    program.then = nest_and_close;
    assert_int_equal(redlock_acquire(program.clients[0], &request, on_lock, &program, NULL),
                     REDLOCK_OK);
    while (program.open > 0) {
        outer_turn(program.outer);
    }
    outer_stop_timer(program.outer);
    end_program(&program);
}

static void a_child_that_runs_the_loop_does_not_spin(void **state) {
    struct program program = {.f = *state};
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    int result;

    open_program(&program, 1, 1);
    assert_int_equal(redlock_acquire(program.clients[0], &request, on_lock, &program, NULL),
                     REDLOCK_OK); /* which makes the descriptor readable */
    pid_t pid = fork();
    if (pid == 0) {
        _exit(outer_is_quiet_in_child(program.outer) ? EXIT_SUCCESS : EXIT_FAILURE);
    }
    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, &result, 0), pid);
    assert_true(WIFEXITED(result));
    assert_int_equal(WEXITSTATUS(result), EXIT_SUCCESS);
    run_to(&program, 1);
    assert_int_equal(program.status, REDLOCK_OK);
    close_program(&program, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        ON_FIVE_MASTERS(a_lock_is_acquired_extended_and_released),
        ON_FIVE_MASTERS(a_waiter_is_granted_the_key_after_its_holder),
        ON_FIVE_MASTERS(a_timer_of_the_library_fires),
        ON_FIVE_MASTERS(a_loss_is_notified),
        ON_FIVE_MASTERS(ten_thousand_locks_are_held_at_once),
        ON_FIVE_MASTERS(clients_share_an_adapter),
        ON_FIVE_MASTERS(two_adapters_share_a_loop),
        ON_FIVE_MASTERS(timers_of_the_application_fire_beside),
        ON_FIVE_MASTERS(masters_die_and_come_back_under_load),
        ON_FIVE_MASTERS(a_client_closes_in_its_callbacks),
        ON_NO_MASTERS(an_adapter_without_a_client_is_detached),
        ON_NO_MASTERS(without_descriptors_an_adapter_is_refused),
        ON_FIVE_MASTERS(a_child_that_runs_the_loop_does_not_spin),
        /* the last NESTED ones need a loop that may be nested */
        ON_FIVE_MASTERS(a_nested_loop_does_not_spin),
        ON_FIVE_MASTERS(a_client_closes_after_a_nested_loop),
    };

    /* A loop's library may keep descriptors from its first use on: libuv a pipe. */
    outer_close(outer_open());
    size_t count = sizeof(tests) / sizeof(tests[0]) - (outer_can_nest ? 0 : NESTED);
    return _cmocka_run_group_tests("adapters", tests, count, NULL, NULL);
}
