/*
 * Does a short piece of work under a lock: the minimum of a careful program.
 *
 *     cc -o minimal minimal.c $(pkg-config --cflags --libs redlock libevent_core)
 *     ./minimal orders:42 redis://10.0.0.1 redis://10.0.0.2 redis://10.0.0.3
 */
#include <event2/event.h>
#include <redlock.h>
#include <stdio.h>
#include <stdlib.h>

struct program {
    redlock_client *client;
    int exit_code;
};

static void on_released(redlock_lock *lock, redlock_status status, void *arg) {
    struct program *program = arg;

    if (status == REDLOCK_ELOST) { /* the masters lost it before the release */
        fprintf(stderr, "another may have worked too: %s\n", redlock_explain(lock));
    } else {
        puts("released"); /* with its TTL, if too few masters answered */
        program->exit_code = EXIT_SUCCESS;
    }
    redlock_client_close(program->client, NULL, NULL); /* then the loop is empty and ends */
}

static void on_acquired(redlock_lock *lock, redlock_status status, void *arg) {
    struct program *program = arg;

    if (status != REDLOCK_OK) {
        fprintf(stderr, "%s\n", redlock_explain(lock));
        redlock_client_close(program->client, NULL, NULL);
        return;
    }
    /* Long work would keep the loop from renewing the lock. Do such work in later callbacks, and
       stop when on_lost is called: see acquire.c and several.c. */
    puts("acquired");
    if (redlock_validity_ms(lock) == 0) {
        fputs("the work took longer than the lock was valid\n", stderr);
        redlock_client_close(program->client, NULL, NULL); /* also releases the lock */
    } else if (redlock_release(lock, on_released, program) != REDLOCK_OK) {
        fprintf(stderr, "%s\n", redlock_client_error(program->client));
        redlock_client_close(program->client, NULL, NULL);
    }
}

static void start(struct program *program, struct event_base *base, int argc, char **argv) {
    redlock_options options = REDLOCK_OPTIONS_INIT;
    redlock_request request = REDLOCK_REQUEST_INIT;
    redlock_error error;

    options.nodes = (const char *const *)argv + 2;
    options.node_count = (size_t)argc - 2;
    if (redlock_client_create(base, &options, &program->client, &error) != REDLOCK_OK) {
        fprintf(stderr, "%s\n", error.message);
        return;
    }
    request.key = argv[1];
    request.wait_ms = options.max_ttl_ms + 5000; /* new masters grant nothing for max_ttl_ms */
    if (redlock_acquire(program->client, &request, on_acquired, program, NULL) != REDLOCK_OK) {
        fprintf(stderr, "%s\n", redlock_client_error(program->client));
        redlock_client_close(program->client, NULL, NULL);
    }
}

int main(int argc, char **argv) {
    struct program program = {.exit_code = EXIT_FAILURE};
    struct event_base *base;

    if (argc < 3) {
        fprintf(stderr, "usage: %s KEY NODE...\n", argv[0]);
        return 2;
    }
    if ((base = event_base_new()) == NULL) {
        fputs("cannot make an event loop\n", stderr);
        return EXIT_FAILURE;
    }
    start(&program, base, argc, argv);
    if (event_base_dispatch(base) < 0) {
        program.exit_code = EXIT_FAILURE;
    }
    event_base_free(base);
    return program.exit_code;
}
