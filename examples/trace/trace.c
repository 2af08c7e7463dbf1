/*
 * Acquires a lock, holds it for 1 s and releases it, with a trace of all events on stdout:
 *
 *     trace KEY redis://10.0.0.1 redis://10.0.0.2 redis://10.0.0.3 >trace.txt
 *     awk -f timeline.awk trace.txt >trace.json
 */
#include "lines.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>

struct work {
    redlock_client *client;
    redlock_lock *lock;
    struct event *timer;
    int exit_code;
};

static void on_released(redlock_lock *lock, redlock_status status, void *arg) {
    struct work *work = arg;

    (void)lock;
    work->exit_code = status == REDLOCK_OK ? EXIT_SUCCESS : EXIT_FAILURE;
    redlock_client_close(work->client, NULL, NULL);
}

static void on_work_done(evutil_socket_t fd, short what, void *arg) {
    struct work *work = arg;

    (void)fd;
    (void)what;
    redlock_release(work->lock, on_released, work);
}

static void on_acquired(redlock_lock *lock, redlock_status status, void *arg) {
    static const struct timeval one_second = {1, 0};
    struct work *work = arg;

    if (status == REDLOCK_OK) {
        event_add(work->timer, &one_second);
    } else {
        fprintf(stderr, "%s\n", redlock_explain(lock));
        redlock_client_close(work->client, NULL, NULL);
    }
}

int main(int argc, char **argv) {
    struct event_base *base = event_base_new();
    redlock_options options = REDLOCK_OPTIONS_INIT;
    redlock_request request = REDLOCK_REQUEST_INIT;
    redlock_error error;
    struct work work = {.exit_code = EXIT_FAILURE};

    if (argc < 3 || base == NULL) {
        fprintf(stderr, "usage: trace KEY URI...\n");
        return EXIT_FAILURE;
    }
    options.nodes = (const char *const *)argv + 2;
    options.node_count = (size_t)argc - 2;
    options.trace = trace_line;
    options.trace_arg = stdout;
    request.key = argv[1];
    request.ttl_ms = 1000;
    request.wait_ms = 35000; /* masters that were just started grant nothing for 30 s */
    request.watchdog = true;
    work.timer = event_new(base, -1, 0, on_work_done, &work);
    if (redlock_client_create(base, &options, &work.client, &error) != REDLOCK_OK) {
        fprintf(stderr, "%s\n", error.message);
        return EXIT_FAILURE;
    }
    if (redlock_acquire(work.client, &request, on_acquired, &work, &work.lock) != REDLOCK_OK) {
        fprintf(stderr, "%s\n", redlock_client_error(work.client));
        redlock_client_close(work.client, NULL, NULL);
    }
    event_base_dispatch(base);
    event_free(work.timer);
    event_base_free(base);
    return work.exit_code;
}
