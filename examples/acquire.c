/*
 * Acquires a lock, does three seconds of work under it, and releases it.
 *
 *     cc -o acquire acquire.c $(pkg-config --cflags --libs redlock libevent_core)
 *     ./acquire KEY redis://10.0.0.1 redis://10.0.0.2 redis://10.0.0.3
 */
#include <event2/event.h>
#include <inttypes.h>
#include <redlock.h>
#include <stdio.h>
#include <stdlib.h>

struct job {
    redlock_client *client;
    redlock_lock *lock;
    struct event *reminder; /* prints every few seconds what the request waits for */
    struct event *work;     /* timer that stands for the work that needs the lock */
    int exit_code;
};

/* Closes the client, which releases its locks. Then the loop is empty and the program ends. */
static void give_up(struct job *job, const char *why) {
    fprintf(stderr, "%s\n", why);
    redlock_client_close(job->client, NULL, NULL);
}

static void on_released(redlock_lock *lock, redlock_status status, void *arg) {
    struct job *job = arg;

    if (status != REDLOCK_OK) { /* the lock may have been lost before the end of the work */
        give_up(job, redlock_explain(lock));
        return;
    }
    puts("released");
    job->exit_code = EXIT_SUCCESS;
    redlock_client_close(job->client, NULL, NULL);
}

static void on_work_done(evutil_socket_t fd, short what, void *arg) {
    struct job *job = arg;

    (void)fd;
    (void)what;
    printf("done; the lock is ours for %" PRIu64 " ms more\n", redlock_validity_ms(job->lock));
    /* A release consumes the handle: job->lock must not be used after it. */
    if (redlock_release(job->lock, on_released, job) != REDLOCK_OK) {
        give_up(job, redlock_client_error(job->client));
    }
}

/* Stops the work before anything else: from now on another client may hold the lock. */
static void on_lost(redlock_lock *lock, redlock_status status, void *arg) {
    struct job *job = arg;

    event_del(job->work);
    fprintf(stderr, "lost: %s\n", redlock_strerror(status));
    give_up(job, redlock_explain(lock));
}

static void on_acquired(redlock_lock *lock, redlock_status status, void *arg) {
    struct timeval three_seconds = {.tv_sec = 3};
    struct job *job = arg;

    event_del(job->reminder);
    if (status != REDLOCK_OK) {
        give_up(job, redlock_explain(lock));
        return;
    }
    printf("acquired, valid for %" PRIu64 " ms\n", redlock_validity_ms(lock));
    job->lock = lock;
    if (event_add(job->work, &three_seconds) != 0) {
        give_up(job, "cannot add a timer");
    }
}

static void on_still_waiting(evutil_socket_t fd, short what, void *arg) {
    struct job *job = arg;

    (void)fd;
    (void)what;
    fprintf(stderr, "waiting: %s\n", redlock_explain(job->lock));
}

static void start(struct job *job, struct event_base *base, int argc, char **argv) {
    redlock_options options = REDLOCK_OPTIONS_INIT;
    redlock_request request = REDLOCK_REQUEST_INIT;
    struct timeval three_seconds = {.tv_sec = 3};
    redlock_error error;

    options.nodes = (const char *const *)argv + 2;
    options.node_count = (size_t)argc - 2;
    if (redlock_client_create(base, &options, &job->client, &error) != REDLOCK_OK) {
        fprintf(stderr, "%s\n", error.message);
        return;
    }
    request.key = argv[1];
    /* Time for 5 s of retries while another client holds the lock, plus max_ttl_ms, for which new
       or restarted masters grant nothing. */
    request.wait_ms = options.max_ttl_ms + 5000;
    request.watchdog = true; /* renew it until it is released */
    request.on_lost = on_lost;
    request.on_lost_arg = job;
    if (redlock_acquire(job->client, &request, on_acquired, job, &job->lock) != REDLOCK_OK) {
        give_up(job, redlock_client_error(job->client));
        return;
    }
    event_add(job->reminder, &three_seconds); /* if this fails, the program waits silently */
}

int main(int argc, char **argv) {
    struct job job = {.exit_code = EXIT_FAILURE};
    struct event_config *config;
    struct event_base *base;

    if (argc < 3) {
        fprintf(stderr, "usage: %s KEY NODE...\n", argv[0]);
        return 2;
    }
    /* Without this flag, libevent's timers may be 4 ms late. */
    if ((config = event_config_new()) == NULL ||
        event_config_set_flag(config, EVENT_BASE_FLAG_PRECISE_TIMER) != 0 ||
        (base = event_base_new_with_config(config)) == NULL ||
        (job.reminder = event_new(base, -1, EV_PERSIST, on_still_waiting, &job)) == NULL ||
        (job.work = evtimer_new(base, on_work_done, &job)) == NULL) {
        fputs("cannot make an event loop\n", stderr);
        return EXIT_FAILURE;
    }
    event_config_free(config);
    start(&job, base, argc, argv);
    if (event_base_dispatch(base) < 0) {
        job.exit_code = EXIT_FAILURE;
    }
    event_free(job.reminder);
    event_free(job.work);
    event_base_free(base);
    return job.exit_code;
}
