/*
 * A redlock_loop by itself: in a program without an event loop, shared by clients, polled from
 * outside, woken by threads and signal handlers, inherited by a child, and freed in callbacks.
 */
#include "clocks.h"
#include "harness.h"
#include "master_data.h"
#include "seclusion.h"

#include <redlock/statistics.h>

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define KEY "orders:42"
#define CLIENTS_MAX 4
#define WAKES 1000000
#define THREADS 16
#define BEATS 3
#define BEAT_MS 1000
#define SHORT_TTL_MS 100

/* A program: its loop, and its clients. */
struct program {
    struct fixture *f;
    redlock_loop *loop;
    redlock_client *clients[CLIENTS_MAX];
    size_t open;     /* number of clients not closed yet */
    bool frees_loop; /* in the last on_closed */
    redlock_lock *lock;
    redlock_status status; /* of the last callback */
    size_t callbacks;
};

static void open_clients(struct program *program, size_t count) {
    struct fixture *f = program->f;
    redlock_options options =
        patient_options(f, masters_uris(f->masters), masters_count(f->masters));

    program->loop = redlock_loop_pollable();
    assert_non_null(program->loop);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(
            redlock_client_create_on(program->loop, &options, &program->clients[i], NULL),
            REDLOCK_OK);
        program->open++;
    }
}

/* Runs the loop until a number of callbacks have come. The test's own timeout ends a hang. */
static void run_to(struct program *program, size_t callbacks) {
    while (program->callbacks < callbacks) {
        assert_int_equal(redlock_loop_run(program->loop, -1), 0);
    }
}

static void on_closed(void *arg) {
    struct program *program = arg;

    program->open--;
    if (program->open == 0 && program->frees_loop) {
        redlock_loop_free(program->loop);
    }
}

static void close_clients_of(struct program *program, size_t count) {
    for (size_t i = 0; i < count; i++) {
        redlock_client_close(program->clients[i], on_closed, program);
    }
    while (program->open > 0) {
        assert_int_equal(redlock_loop_run(program->loop, -1), 0);
    }
}

static void on_lock(redlock_lock *lock, redlock_status status, void *arg) {
    struct program *program = arg;

    program->lock = lock;
    program->status = status;
    program->callbacks++;
}

static void begin_lock(struct program *program, size_t client, const char *key) {
    redlock_request request = request_for(key, LONG_TTL_MS);

    assert_int_equal(
        redlock_acquire(program->clients[client], &request, on_lock, program, &program->lock),
        REDLOCK_OK);
}

/* ---- a program without a loop ---- */

static void a_program_without_a_loop_takes_a_lock(void **state) {
    struct program program = {.f = *state};

    open_clients(&program, 1);
    for (size_t i = 0; i < 100; i++) {
        begin_lock(&program, 0, KEY);
        run_to(&program, 2 * i + 1);
        assert_int_equal(program.status, REDLOCK_OK);
        assert_int_equal(redlock_release(program.lock, on_lock, &program), REDLOCK_OK);
        run_to(&program, 2 * i + 2);
        assert_int_equal(program.status, REDLOCK_OK);
    }
    close_clients_of(&program, 1);
    redlock_loop_free(program.loop);
}

static void a_run_returns_after_its_timeout(void **state) {
    redlock_loop *loop = redlock_loop_pollable();
    (void)state;

    assert_non_null(loop);
    assert_int_equal(redlock_loop_run(loop, 0), 0);
    assert_int_equal(redlock_loop_run(loop, 1), 0);
    redlock_loop_free(loop);
}

/* ---- sharing ---- */

static void clients_share_a_loop(void **state) {
    struct program program = {.f = *state};

    open_clients(&program, CLIENTS_MAX);
    for (size_t i = 0; i < CLIENTS_MAX; i++) {
        char key[16];

        snprintf(key, sizeof(key), "orders:%zu", i);
        begin_lock(&program, i, key);
        run_to(&program, i + 1);
        assert_int_equal(program.status, REDLOCK_OK);
    }
    close_clients_of(&program, CLIENTS_MAX);
    redlock_loop_free(program.loop);
}

static void a_loop_given_up_early_ends_with_its_last_client(void **state) {
    struct program program = {.f = *state};

    open_clients(&program, 2);
    redlock_loop_free(program.loop);
    begin_lock(&program, 1, KEY);
    run_to(&program, 1);
    assert_int_equal(program.status, REDLOCK_OK);
    close_clients_of(&program, 2); /* finish() asserts that no descriptor is left */
}

static void a_loop_is_freed_in_the_last_callback(void **state) {
    struct program program = {.f = *state, .frees_loop = true};

    open_clients(&program, 2);
    begin_lock(&program, 0, KEY);
    run_to(&program, 1);
    close_clients_of(&program, 2);
}

static void on_nothing(redlock_lock *lock, redlock_status status, void *arg) {
    (void)lock;
    (void)status;
    (void)arg;
}

/* Closes a client after `runs` runs, which may be at any instant of its life. */
static void close_after(struct program *program, size_t runs) {
    redlock_request request = request_for(KEY, LONG_TTL_MS);

    open_clients(program, 1);
    for (size_t i = 0; i < runs; i++) {
        if (i == runs / 2) {
            assert_int_equal(redlock_acquire(program->clients[0], &request, on_nothing, NULL, NULL),
                             REDLOCK_OK);
        }
        assert_int_equal(redlock_loop_run(program->loop, 1), 0);
    }
    close_clients_of(program, 1);
}

static void clients_close_at_any_instant(void **state) {
    for (size_t runs = 0; runs < 40; runs++) {
        struct program program = {.f = *state, .frees_loop = true};

        close_after(&program, runs);
    }
}

/* ---- the descriptor ---- */

static bool is_readable(const redlock_loop *loop) {
    struct pollfd fd = {.fd = redlock_loop_fd(loop), .events = POLLIN};

    assert_true(poll(&fd, 1, 0) >= 0);
    return (fd.revents & POLLIN) != 0;
}

/* Runs the loop until nothing was left to do a few times: a heartbeat may come between. */
static void run_until_quiet(struct program *program) {
    size_t quiet = 0;

    while (quiet < 3) {
        assert_int_equal(redlock_loop_run(program->loop, 20), 0);
        quiet = is_readable(program->loop) ? 0 : quiet + 1;
    }
}

static void the_descriptor_is_readable_while_there_is_something_to_do(void **state) {
    struct program program = {.f = *state};

    assert_int_equal(redlock_loop_fd(NULL), -1);
    open_clients(&program, 1);
    begin_lock(&program, 0, KEY);
    assert_true(is_readable(program.loop)); /* the request is to be sent */
    run_to(&program, 1);
    run_until_quiet(&program);
    assert_int_equal(redlock_release(program.lock, on_lock, &program), REDLOCK_OK);
    assert_true(is_readable(program.loop));
    run_to(&program, 2);
    run_until_quiet(&program);
    close_clients_of(&program, 1);
    redlock_loop_free(program.loop);
}

/* Without clients there is no timer, so nothing but the wake makes the loop readable. */
static void a_wake_makes_the_descriptor_readable_once(void **state) {
    redlock_loop *loop = redlock_loop_pollable();
    (void)state;

    assert_non_null(loop);
    assert_false(is_readable(loop));
    redlock_loop_wake(loop);
    assert_true(is_readable(loop));
    assert_int_equal(redlock_loop_run(loop, -1), 0);
    assert_false(is_readable(loop));
    redlock_loop_free(loop);
}

static void on_lock_run_again(redlock_lock *lock, redlock_status status, void *arg) {
    struct program *program = arg;

    assert_int_equal(redlock_loop_run(program->loop, -1), -1);
    assert_int_equal(errno, EBUSY);
    on_lock(lock, status, arg);
}

static void a_run_inside_a_callback_does_nothing(void **state) {
    struct program program = {.f = *state};
    redlock_request request = request_for(KEY, LONG_TTL_MS);

    open_clients(&program, 1);
    assert_int_equal(
        redlock_acquire(program.clients[0], &request, on_lock_run_again, &program, &program.lock),
        REDLOCK_OK);
    run_to(&program, 1);
    assert_int_equal(program.status, REDLOCK_OK);
    close_clients_of(&program, 1);
    redlock_loop_free(program.loop);
}

/* ---- wakes ---- */

struct wakes {
    redlock_loop *loop;
    size_t of_each;     /* number of wakes of each thread */
    atomic_size_t sent; /* counted before each wake */
    atomic_size_t seen; /* the count that the test has looked at after a run */
};

static struct wakes wakes;

static void on_signal(int number) {
    (void)number;
    atomic_fetch_add(&wakes.sent, 1);
    redlock_loop_wake(wakes.loop);
}

/* Waits until a run has returned since the latest wake. */
static void wait_seen(void) {
    size_t sent = atomic_load(&wakes.sent);

    while (atomic_load(&wakes.seen) < sent) {
        sched_yield();
    }
}

/* Half of the wakes come from a signal handler of the thread. Each waits for the one before it. */
static void *wake_often(void *arg) {
    (void)arg;
    for (size_t i = 0; i < wakes.of_each; i += 2) {
        atomic_fetch_add(&wakes.sent, 1);
        redlock_loop_wake(wakes.loop);
        wait_seen();
        raise(SIGUSR1);
        wait_seen();
    }
    return NULL;
}

/*
 * A lost wake leaves its thread without a run that it can see, and, when the others have ended, the
 * test in a run that waits without end. Of a single thread no wake can hide that another was lost.
 */
static void lose_no_wake(size_t threads, size_t count) {
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    struct sigaction before;
    pthread_t running[THREADS];

    wakes.loop = redlock_loop_pollable();
    assert_non_null(wakes.loop);
    wakes.of_each = cycles_here(count) / threads / 2 * 2;
    atomic_store(&wakes.sent, 0);
    atomic_store(&wakes.seen, 0);
    assert_int_equal(sigaction(SIGUSR1, &action, &before), 0);
    for (size_t i = 0; i < threads; i++) {
        assert_int_equal(pthread_create(&running[i], NULL, wake_often, NULL), 0);
    }
    while (atomic_load(&wakes.seen) < wakes.of_each * threads) {
        assert_int_equal(redlock_loop_run(wakes.loop, -1), 0);
        atomic_store(&wakes.seen, atomic_load(&wakes.sent));
    }
    for (size_t i = 0; i < threads; i++) {
        assert_int_equal(pthread_join(running[i], NULL), 0);
    }
    assert_int_equal(sigaction(SIGUSR1, &before, NULL), 0);
    redlock_loop_free(wakes.loop);
}

static void no_wake_is_lost(void **state) {
    (void)state;
    lose_no_wake(1, WAKES / 10);
    lose_no_wake(THREADS, WAKES);
}

/* ---- children ---- */

static bool is_refused_in_child(struct program *program) {
    redlock_options options = patient_options(program->f, masters_uris(program->f->masters), 5);
    redlock_client *client = NULL;
    redlock_error error;

    errno = 0;
    return redlock_loop_run(program->loop, 0) == -1 && errno == EINVAL &&
           redlock_client_create_on(program->loop, &options, &client, &error) == REDLOCK_EINVAL &&
           strstr(error.message, "fork") != NULL && redlock_validity_ms(program->lock) == 0;
}

/* Makes all calls on a loop with a client, and no system call on what the parent shares. */
static bool leaves_all_alone(struct program *program) {
    redlock_request request = request_for("orders:43", LONG_TTL_MS);
    int fd = redlock_loop_fd(program->loop);
    bool is_refused =
        seclude(false) && is_refused_in_child(program) &&
        redlock_acquire(program->clients[0], &request, on_nothing, NULL, NULL) == REDLOCK_EINVAL &&
        redlock_extend(program->lock, 0, on_nothing, NULL) == REDLOCK_EINVAL &&
        redlock_release(program->lock, on_nothing, NULL) == REDLOCK_EINVAL;

    redlock_loop_wake(program->loop);
    redlock_client_close(program->clients[0], on_closed, program);
    redlock_loop_free(program->loop); /* the client keeps it */
    return is_refused && redlock_loop_fd(program->loop) == fd && program->open == 1;
}

static void wait_for_child(pid_t pid) {
    int result;

    assert_true(pid >= 0);
    assert_int_equal(waitpid(pid, &result, 0), pid);
    assert_true(WIFEXITED(result));
    assert_int_equal(WEXITSTATUS(result), EXIT_SUCCESS);
}

static void a_child_leaves_its_parents_loop_alone(void **state) {
    struct program program = {.f = *state};

    open_clients(&program, 1);
    begin_lock(&program, 0, KEY);
    run_to(&program, 1);
    pid_t pid = fork();
    if (pid == 0) {
        _exit(leaves_all_alone(&program) ? EXIT_SUCCESS : EXIT_FAILURE);
    }
    wait_for_child(pid);
    assert_true(redlock_validity_ms(program.lock) > 0);
    assert_int_equal(redlock_release(program.lock, on_lock, &program), REDLOCK_OK);
    run_to(&program, 2);
    assert_int_equal(program.status, REDLOCK_OK);
    close_clients_of(&program, 1);
    redlock_loop_free(program.loop);
}

static void a_child_does_not_wake_its_parent(void **state) {
    redlock_loop *loop = redlock_loop_pollable();
    (void)state;

    assert_non_null(loop);
    pid_t pid = fork();
    if (pid == 0) {
        redlock_loop_wake(loop);
        _exit(EXIT_SUCCESS);
    }
    wait_for_child(pid);
    assert_false(is_readable(loop));
    redlock_loop_free(loop);
}

/* Closing its own copies of the descriptors does nothing to the parent's. */
static void a_child_may_free_a_loop_without_clients(void **state) {
    redlock_loop *loop = redlock_loop_pollable();
    (void)state;

    assert_non_null(loop);
    pid_t pid = fork();
    if (pid == 0) {
        bool is_secluded = seclude(true);

        redlock_loop_free(loop);
        _exit(is_secluded ? EXIT_SUCCESS : EXIT_FAILURE);
    }
    wait_for_child(pid);
    assert_false(is_readable(loop));
    redlock_loop_wake(loop);
    assert_true(is_readable(loop));
    assert_int_equal(redlock_loop_run(loop, -1), 0);
    redlock_loop_free(loop);
}

/* Shows that the tests above would notice a system call. */
static void a_secluded_child_may_not_use_a_descriptor(void **state) {
    static redlock_loop *loop; /* static: valgrind must find it in the child, too */
    int expected = under_valgrind() ? EXIT_FAILURE : SECLUSION_BROKEN;
    int result;
    (void)state;

    loop = redlock_loop_pollable();
    assert_non_null(loop);
    pid_t pid = fork();
    if (pid == 0) {
        _exit(seclude(false) && is_readable(loop) ? EXIT_SUCCESS : EXIT_FAILURE);
    }
    assert_true(pid >= 0);
    assert_int_equal(waitpid(pid, &result, 0), pid);
    assert_true(WIFEXITED(result));
    assert_int_equal(WEXITSTATUS(result), expected);
    redlock_loop_free(loop);
}

/* ---- time ---- */

/* Answers arrive while the program is busy for longer than the nodes' timeout: they are in time. */
static void sockets_are_read_before_overdue_timers_fire(void **state) {
    struct program program = {.f = *state};

    open_clients(&program, 1);
    begin_lock(&program, 0, KEY);
    run_to(&program, 1);
    assert_int_equal(redlock_release(program.lock, on_lock, &program), REDLOCK_OK);
    run_to(&program, 2);
    begin_lock(&program, 0, KEY);
    assert_int_equal(redlock_loop_run(program.loop, 0), 0); /* sends the commands */
    wait_holders(program.f, KEY, 5);
    assert_int_equal(holders(program.f, KEY), 5); /* asked later: the answers have been sent */
    pass_time(2 * PATIENT_MS);
    run_to(&program, 3);
    assert_int_equal(program.status, REDLOCK_OK);
    close_clients_of(&program, 1);
    redlock_loop_free(program.loop);
}

/* Returns the kernel's time, whatever the test's clocks say. */
static uint64_t kernel_ms(void) {
    struct timespec now;

    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static uint64_t replies_to(const redlock_client *client) {
    redlock_node_stats stats = {.size = sizeof(stats)};
    uint64_t replies = 0;

    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(redlock_client_node_stats(client, i, &stats), REDLOCK_OK);
        replies += stats.replies;
    }
    return replies;
}

/* Each run is that of a heartbeat, if no answer has come. */
static void an_idle_client_wakes_its_loop_at_heartbeats_only(void **state) {
    struct program program = {.f = *state};
    uint64_t runs = 0, answers = 0;

    open_clients(&program, 1);
    begin_lock(&program, 0, KEY);
    run_to(&program, 1);
    assert_int_equal(redlock_release(program.lock, on_lock, &program), REDLOCK_OK);
    run_to(&program, 2);
    run_until_quiet(&program);
    uint64_t begun = kernel_ms();
    uint64_t before = replies_to(program.clients[0]);
    while (runs <= answers + BEATS) { /* the first one begins the first period */
        assert_int_equal(redlock_loop_run(program.loop, -1), 0);
        runs++;
        answers = replies_to(program.clients[0]) - before;
    }
    assert_true(kernel_ms() - begun + 1 >= BEATS * BEAT_MS);
    close_clients_of(&program, 1);
    redlock_loop_free(program.loop);
}

/*
 * The kernel's timer is early by a clock that stands still: nothing fires, and the loop waits as
 * long again. Nor does it miss the instant when the clock has jumped beyond it.
 */
static void a_timer_fires_by_the_librarys_clock(void **state) {
    struct program program = {.f = *state};
    redlock_request request = request_for(KEY, SHORT_TTL_MS);
    size_t runs = 0;

    open_clients(&program, 1);
    begin_lock(&program, 0, "orders:43"); /* connects */
    run_to(&program, 1);
    stop_time();
    request.on_lost = on_lock;
    request.on_lost_arg = &program;
    assert_int_equal(
        redlock_acquire(program.clients[0], &request, on_lock, &program, &program.lock),
        REDLOCK_OK);
    run_to(&program, 2);
    assert_int_equal(program.status, REDLOCK_OK);
    uint64_t begun = kernel_ms();
    while (kernel_ms() - begun < 3 * SHORT_TTL_MS) {
        assert_int_equal(redlock_loop_run(program.loop, -1), 0);
        runs++;
    }
    assert_int_equal(program.callbacks, 2);
    assert_int_in_range(runs, 1, 20); /* some answers may have come, too */
    pass_time(2 * SHORT_TTL_MS);
    run_to(&program, 3);
    assert_true(program.status == REDLOCK_EEXPIRED || program.status == REDLOCK_ELOST);
    resume_time();
    close_clients_of(&program, 1);
    redlock_loop_free(program.loop);
}

/* ---- refusals ---- */

static void bad_arguments_are_refused(void **state) {
    struct program program = {.f = *state};
    redlock_options options = patient_options(program.f, masters_uris(program.f->masters), 5);
    redlock_client *client = (void *)&options;
    redlock_error error;

    assert_int_equal(redlock_client_create_on(NULL, &options, &client, &error), REDLOCK_EINVAL);
    assert_null(client);
    assert_string_equal(error.message, "loop and options must not be NULL");
    errno = 0;
    assert_int_equal(redlock_loop_run(NULL, 0), -1);
    assert_int_equal(errno, EINVAL);
    redlock_loop_wake(NULL);
    redlock_loop_free(NULL);
    program.loop = redlock_loop_pollable();
    assert_non_null(program.loop);
    assert_int_equal(redlock_client_create_on(program.loop, NULL, &client, &error), REDLOCK_EINVAL);
    assert_int_equal(redlock_client_create_on(program.loop, &options, NULL, &error),
                     REDLOCK_EINVAL);
    options.node_count = 0;
    assert_int_equal(redlock_client_create_on(program.loop, &options, &client, &error),
                     REDLOCK_EINVAL);
    redlock_loop_free(program.loop);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        ON_FIVE_MASTERS(a_program_without_a_loop_takes_a_lock),
        ON_NO_MASTERS(a_run_returns_after_its_timeout),
        ON_FIVE_MASTERS(clients_share_a_loop),
        ON_FIVE_MASTERS(a_loop_given_up_early_ends_with_its_last_client),
        ON_FIVE_MASTERS(a_loop_is_freed_in_the_last_callback),
        ON_FIVE_MASTERS(clients_close_at_any_instant),
        ON_FIVE_MASTERS(the_descriptor_is_readable_while_there_is_something_to_do),
        ON_NO_MASTERS(a_wake_makes_the_descriptor_readable_once),
        ON_FIVE_MASTERS(a_run_inside_a_callback_does_nothing),
        ON_NO_MASTERS(no_wake_is_lost),
        ON_FIVE_MASTERS(a_child_leaves_its_parents_loop_alone),
        ON_NO_MASTERS(a_child_does_not_wake_its_parent),
        ON_NO_MASTERS(a_child_may_free_a_loop_without_clients),
        ON_NO_MASTERS(a_secluded_child_may_not_use_a_descriptor),
        ON_FIVE_MASTERS(sockets_are_read_before_overdue_timers_fire),
        ON_FIVE_MASTERS(an_idle_client_wakes_its_loop_at_heartbeats_only),
        ON_FIVE_MASTERS(a_timer_fires_by_the_librarys_clock),
        ON_FIVE_MASTERS(bad_arguments_are_refused),
    };

    return cmocka_run_group_tests_name("loop", tests, NULL, NULL);
}
