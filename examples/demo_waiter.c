/*
 * Queues for a lock and holds it until SIGTERM or its loss. Used by the demo of waiting.
 *
 *     demo_waiter NAME KEY TTL-MS NODE...
 */
#include <event2/event.h>
#include <redlock.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

struct waiter {
    redlock_client *client;
    redlock_lock *lock; /* while held */
    struct event *termination;
};

static void give_up(const char *why) {
    fprintf(stderr, "demo_waiter: %s\n", why);
    exit(EXIT_FAILURE);
}

static void report(const char *what, const char *why) {
    printf("%s%s\n", what, why);
    fflush(stdout);
}

/* Closes the client, so that the loop ends. */
static void on_released(redlock_lock *lock, redlock_status status, void *arg) {
    struct waiter *waiter = arg;

    (void)lock;
    report("released: ", redlock_strerror(status));
    event_free(waiter->termination);
    redlock_client_close(waiter->client, NULL, NULL);
}

static void release(struct waiter *waiter) {
    redlock_lock *lock = waiter->lock;

    waiter->lock = NULL;
    if (lock != NULL && redlock_release(lock, on_released, waiter) != REDLOCK_OK) {
        give_up(redlock_client_error(waiter->client));
    }
}

static void on_termination(evutil_socket_t signal_number, short what, void *arg) {
    (void)signal_number;
    (void)what;
    release(arg);
}

static void on_lost(redlock_lock *lock, redlock_status status, void *arg) {
    (void)lock;
    report("lost the lock: ", redlock_strerror(status));
    release(arg);
}

static void on_acquired(redlock_lock *lock, redlock_status status, void *arg) {
    struct waiter *waiter = arg;

    if (status != REDLOCK_OK) {
        give_up(redlock_explain(lock));
    }
    waiter->lock = lock;
    report("has the lock", "");
}

static void begin(struct waiter *waiter, struct event_base *base, char **argv, int nodes) {
    redlock_options options = REDLOCK_OPTIONS_INIT;
    redlock_request request = REDLOCK_REQUEST_INIT;
    redlock_error error;

    options.nodes = (const char *const *)argv + 4;
    options.node_count = (size_t)nodes;
    options.owner = argv[1];
    options.node_timeout_ms = 4000; /* long, because the machine may be busy */
    options.stall_timeout_ms = 30000;
    options.guards = REDLOCK_GUARDS_OFF; /* the masters were just started for the demo */
    if (redlock_client_create(base, &options, &waiter->client, &error) != REDLOCK_OK) {
        give_up(error.message);
    }
    request.key = argv[2];
    request.ttl_ms = strtoull(argv[3], NULL, 10);
    request.wait_ms = REDLOCK_FOREVER;
    request.watchdog = true;
    request.on_lost = on_lost;
    request.on_lost_arg = waiter;
    if (redlock_acquire(waiter->client, &request, on_acquired, waiter, NULL) != REDLOCK_OK) {
        give_up(redlock_client_error(waiter->client));
    }
}

int main(int argc, char **argv) {
    struct event_base *base = event_base_new();
    struct waiter waiter = {.client = NULL};

    if (argc < 5) {
        give_up("usage: demo_waiter NAME KEY TTL-MS NODE...");
    }
    if (base == NULL ||
        (waiter.termination = evsignal_new(base, SIGTERM, on_termination, &waiter)) == NULL ||
        event_add(waiter.termination, NULL) != 0) {
        give_up("cannot make an event loop");
    }
    begin(&waiter, base, argv, argc - 4);
    event_base_dispatch(base);
    event_base_free(base);
    return EXIT_SUCCESS;
}
