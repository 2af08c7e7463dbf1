/*
 * Takes a lock and holds it until the process is killed. Used by the demo of keys that stay.
 *
 *     demo_holder KEY TTL-MS LOCK-DELAY-MS NODE...
 */
#include <event2/event.h>
#include <inttypes.h>
#include <redlock.h>
#include <stdio.h>
#include <stdlib.h>

static void give_up(const char *why) {
    fprintf(stderr, "demo_holder: %s\n", why);
    exit(EXIT_FAILURE);
}

static void on_acquired(redlock_lock *lock, redlock_status status, void *arg) {
    (void)arg;
    if (status != REDLOCK_OK) {
        give_up(redlock_explain(lock));
    }
    printf("certain for %" PRIu64 " ms\n", redlock_validity_ms(lock));
    fflush(stdout);
}

int main(int argc, char **argv) {
    redlock_options options = REDLOCK_OPTIONS_INIT;
    redlock_request request = REDLOCK_REQUEST_INIT;
    struct event_base *base = event_base_new();
    redlock_client *client;
    redlock_error error;

    if (argc < 5) {
        give_up("usage: demo_holder KEY TTL-MS LOCK-DELAY-MS NODE...");
    }
    if (base == NULL) {
        give_up("cannot make an event loop");
    }
    options.nodes = (const char *const *)argv + 4;
    options.node_count = (size_t)argc - 4;
    options.node_timeout_ms = 4000; /* long, because the machine may be busy */
    options.stall_timeout_ms = 30000;
    options.guards = REDLOCK_GUARDS_OFF; /* the masters were just started for the demo */
    options.owner = "holder";
    if (redlock_client_create(base, &options, &client, &error) != REDLOCK_OK) {
        give_up(error.message);
    }
    request.key = argv[1];
    request.ttl_ms = strtoull(argv[2], NULL, 10);
    request.lock_delay_ms = strtoull(argv[3], NULL, 10);
    request.wait_ms = 30000;
    if (redlock_acquire(client, &request, on_acquired, NULL, NULL) != REDLOCK_OK) {
        give_up(redlock_client_error(client));
    }
    event_base_dispatch(base);
    return EXIT_FAILURE;
}
