#include "app.h"

#include "base/nanos.h"
#include "check.h"
#include "core/answer_time.h"
#include "peers.h"
#include "world.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct heap heap;
static int first_fd; /* the lowest free descriptor, before the first run */

struct heap *app_heap(void) {
    return &heap;
}

static int next_fd(void) {
    int fd = fcntl(0, F_DUPFD_CLOEXEC, 0);
    CHECK(fd >= 0);
    close(fd);
    return fd;
}

static void on_line(struct app *app, const char *line) {
    (void)app;
    CHECK(strstr(line, PEERS_PASSWORD) == NULL || peers_got_password());
    if (getenv("REDLOCK_FUZZ_LOG") != NULL) { /* to inspect one input */
        fprintf(stderr, "%s\n", line);
    }
}

/* ---- calls ---- */

redlock_status app_make(struct app *app, redlock_options *options, redlock_error *error) {
    redlock_status status = app_create(app, world_base(), options, error);
    bool is_whole = options->size >= sizeof(*options); /* otherwise the defaults count */
    app->options = is_whole ? *options : (redlock_options)REDLOCK_OPTIONS_INIT;
    return status;
}

redlock_status app_acquire(struct app *app, redlock_request *request, bool wants_handle) {
    struct hold *hold;
    return app_ask_for(app, request, wants_handle, &hold);
}

void app_look(struct app *app, const char *key, bool at_fence) {
    if (at_fence) {
        app_check_fence(app, key, 7);
    } else {
        app_inspect(app, key);
    }
}

void app_ask_some(struct app *app, size_t capacity) {
    redlock_node_info infos[REDLOCK_MAX_NODES];
    app_ask_client(app, infos, capacity < REDLOCK_MAX_NODES ? capacity : REDLOCK_MAX_NODES);
}

/* ---- a run ---- */

void app_begin(struct app *app) {
    world_begin();
    peers_begin();
    app->world = (struct app_world){.blocks = &heap.out, .on_line = on_line};
    app->client = NULL;
    app->is_closing = app->is_closed = false;
    app->calls = app->looks = app->count = 0;
    heap_init(&heap);
    first_fd = next_fd();
}

void app_turn(struct app *app) {
    peers_turn();
    world_turn();
    if (app->client != NULL) {
        app_ask_some(app, PEERS_MAX);
    }
}

unsigned app_pending(const struct app *app) {
    unsigned pending = app->looks;
    for (unsigned i = 0; i < app->count; i++) {
        const struct hold *hold = &app->holds[i];
        pending += hold->is_extending;
        pending += hold->stage == HOLD_RELEASING && hold->hears_of_release;
        pending += hold->stage == HOLD_ACQUIRING && hold->is_tried_once;
    }
    return pending;
}

/* Returns the longest timeout that an option means. */
static uint64_t longest_ms(uint64_t option_ms) {
    return option_ms != 0 ? option_ms : nanos_to_ms(ANSWER_TIMEOUT_MAX);
}

/*
 * Waits for the requests to the nodes, which end at the latest with their timeout, whatever the
 * nodes answer: it begins again with each answer to an earlier command. A request made before the
 * nodes' names are known starts when stall_timeout is over.
 */
static void wait_for_requests(struct app *app, uint64_t node_timeout_ms) {
    for (unsigned i = 0; i < 100 && app_pending(app) > 0; i++) {
        world_pass(nanos_from_ms(
            nanos_max(longest_ms(node_timeout_ms), longest_ms(app->options.stall_timeout_ms))));
        app_turn(app);
        app_turn(app);
    }
    CHECK(app_pending(app) == 0);
}

static void check_holds(const struct app *app) {
    for (unsigned i = 0; i < app->count; i++) {
        const struct hold *hold = &app->holds[i];
        CHECK(hold->stage != HOLD_ACQUIRING && !hold->is_extending);
        CHECK(hold->stage != HOLD_RELEASING || !hold->hears_of_release);
        CHECK(hold->stage != HOLD_HELD || !hold->hears_of_loss);
    }
}

/*
 * Waits for the end: of releases, limited by node_timeout; of retried releases, by close_timeout.
 */
static void wait_for_the_end(struct app *app, uint64_t node_timeout_ms) {
    uint64_t step =
        nanos_from_ms(nanos_max(longest_ms(node_timeout_ms), app->options.close_timeout_ms));
    for (unsigned i = 0; i < 16 && !app->is_closed; i++) {
        app_turn(app);
        if (i >= 4) {
            world_pass(step);
        }
    }
    CHECK(app->is_closed);
}

void app_end(struct app *app, uint64_t node_timeout_ms) {
    app->world.react = NULL;
    if (app->client != NULL) {
        world_refuse_watches(0, 0);
        if (!app->is_closing) {
            wait_for_requests(app, node_timeout_ms);
            app_close(app);
        }
        wait_for_the_end(app, node_timeout_ms);
        check_holds(app);
    }
    CHECK(heap.out == 0);
    peers_end();
    CHECK(next_fd() == first_fd);
    world_end();
}
