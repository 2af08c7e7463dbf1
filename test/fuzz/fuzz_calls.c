/*
 * Any call of the API, with any value in any field, in any state and inside any callback, while
 * memory, timers, names and connections fail as the input decides.
 */
#include "base/nanos.h"
#include "check.h"
#include "deeds.h"
#include "peers.h"
#include "target.h"
#include "world.h"

#include <math.h>
#include <string.h>

#define DEEDS_MAX 300

/* Returns a text for a name or a key. */
static const char *text_of(struct input *input) {
    static char long_text[REDLOCK_MAX_KEY + 2];
    static const char *const texts[] = {NULL, "", "a", "b", "two words", "\x01\xff", "a\nb"};
    static const size_t lengths[] = {64, 129, REDLOCK_MAX_KEY + 1};
    const unsigned short_count = sizeof(texts) / sizeof(texts[0]);
    const unsigned long_count = sizeof(lengths) / sizeof(lengths[0]);
    unsigned kind = input_below(input, short_count + long_count);
    if (kind < short_count) {
        return texts[kind];
    }
    memset(long_text, 'k', sizeof(long_text));
    long_text[lengths[kind - short_count]] = '\0';
    return long_text;
}

/* ---- options ---- */

/* Returns the URI of a node, always on this machine. */
static const char *node_of(struct input *input, unsigned index) {
    static const char *const others[] = {
        "redis://at-once:1",   "redis://later:1",
        "redis://never:1",     "redis://at-once-x:1",
        "redis://later-x:1",   "redis://:" PEERS_PASSWORD "@later:1/3",
        "redis://127.0.0.1:1", "redis://[::1]:1",
        "unix:///nowhere",     "redis://" PEERS_PASSWORD "@x",
        "rediss://x:1",        NULL,
    };
    unsigned kind = input_byte(input);
    if (kind < 192) {
        return peers_uri(index % PEERS_MAX, kind & 1);
    }
    return others[kind % (sizeof(others) / sizeof(others[0]))];
}

static double drift_of(struct input *input) {
    static const double drifts[] = {0, 0.5, 0.01, -0.01, 0.500001, NAN, INFINITY, -INFINITY, 1e308};
    return drifts[input_below(input, sizeof(drifts) / sizeof(drifts[0]))];
}

static void set_option(struct input *input, redlock_options *options) {
    switch (input_below(input, 17)) {
    case 0:
        options->size = (size_t)input_number(input);
        break;
    case 1:
        options->nodes = NULL;
        break;
    case 2:
        options->node_count = (size_t)input_number(input);
        break;
    case 3:
        options->node_timeout_ms = input_number(input);
        break;
    case 4:
        options->stall_timeout_ms = input_number(input);
        break;
    case 5:
        options->max_ttl_ms = input_number(input);
        break;
    case 6:
        options->drift = drift_of(input);
        break;
    case 7:
        options->retry_delay_ms = input_number(input);
        break;
    case 8:
        options->retry_delay_max_ms = input_number(input);
        break;
    case 9:
        options->reconnect_delay_ms = input_number(input);
        break;
    case 10:
        options->reconnect_delay_max_ms = input_number(input);
        break;
    case 11:
        options->max_commands = (uint32_t)input_number(input);
        break;
    case 12:
        options->max_bytes = (size_t)input_number(input);
        break;
    case 13:
        options->name = text_of(input);
        break;
    case 14: {
        unsigned byte = input_byte(input);
        options->log_level = (redlock_log_level)((int)(byte % 8) - 2);
        options->guards =
            (redlock_guards)((byte / 8 + REDLOCK_GUARDS_OFF) % 5); /* or no valid value */
        break;
    }
    case 15:
        world_has_random(false);
        break;
    case 16:
        options->size = sizeof(*options) - 8 + input_below(input, 32);
        break;
    }
}

/* Room for a struct that claims to be larger than it is. */
union options_room {
    redlock_options options;
    char room[8192];
};
union request_room {
    redlock_request request;
    char room[8192];
};

static void refuse_memory(struct run *run) {
    unsigned kind = input_byte(&run->input);
    struct heap *heap = app_heap();
    heap->fail_once = kind & 1;
    heap->fail_from = kind < 2 ? 0 : heap->calls + kind / 2;
}

static void create(struct run *run) {
    static union options_room room;
    const char *nodes[REDLOCK_MAX_NODES];
    redlock_options *options = &room.options;
    struct input *input = &run->input;
    memset(&room, 0, sizeof(room));
    *options = (redlock_options)REDLOCK_OPTIONS_INIT;
    options->nodes = nodes;
    options->node_count = 1 + input_below(input, PEERS_MAX);
    options->allocator = &app_heap()->allocator;
    options->guards = REDLOCK_GUARDS_OFF;
    run->peers = (unsigned)options->node_count;
    for (unsigned i = 0; i < REDLOCK_MAX_NODES; i++) {
        nodes[i] = i < run->peers ? node_of(input, i) : peers_uri(i % PEERS_MAX, false);
    }
    for (unsigned i = input_below(input, 6); i > 0; i--) {
        set_option(input, options);
    }
    refuse_memory(run);
    if (options->size < sizeof(*options)) {
        options->size = offsetof(redlock_options, node_timeout_ms); /* our hooks would be ignored */
    }
    run->node_timeout_ms = options->size < sizeof(*options) ? 0 : options->node_timeout_ms;
    redlock_error error = {0};
    app_make(&run->app, options, input_byte(input) & 1 ? &error : NULL);
}

/* ---- requests ---- */

/* Sets any number of keys, some of which may be missing, empty or repeated. */
static void set_keys(struct input *input, redlock_request *request) {
    static const char *const names[8 + REDLOCK_MAX_KEYS] = {"ab", "c", "ab",       "",
                                                            NULL, "d", "e::fence", "f"};
    static const size_t lengths[8 + REDLOCK_MAX_KEYS] = {2, 1, 1};
    unsigned kind = input_byte(input);
    request->key = kind & 8 ? request->key : NULL;
    request->keys = names + kind % 8;
    request->key_lengths = kind & 16 ? lengths + kind % 8 : NULL;
    request->key_count = kind & 128 ? (size_t)input_number(input) : 1 + kind / 32 % (8 - kind % 8);
}

static void set_field(struct input *input, redlock_request *request) {
    switch (input_below(input, 13)) {
    case 0:
        request->size = (size_t)input_number(input);
        break;
    case 1:
        request->key = text_of(input);
        break;
    case 2:
        request->key_length = input_below(input, 3);
        break;
    case 3:
        request->ttl_ms = input_number(input);
        break;
    case 4:
        request->wait_ms = input_number(input);
        break;
    case 5:
        request->retries = (uint32_t)input_number(input);
        break;
    case 6:
        request->min_validity_ms = input_number(input);
        break;
    case 7:
        request->watchdog = !request->watchdog;
        break;
    case 8:
        request->max_hold_ms = input_number(input);
        break;
    case 9:
        set_keys(input, request);
        break;
    case 10:
        request->min_hold_ms = input_number(input);
        break;
    case 11:
        request->lock_delay_ms = input_number(input);
        break;
    case 12:
        request->wait_replicas = (uint32_t)input_number(input);
        break;
    }
}

static void acquire_anything(struct run *run) {
    static union request_room room;
    redlock_request *request = &room.request;
    struct input *input = &run->input;
    unsigned kind = input_byte(input);
    if (run->app.count == APP_HOLDS_MAX) {
        return;
    }
    memset(&room, 0, sizeof(room));
    *request = (redlock_request)REDLOCK_REQUEST_INIT;
    request->key = "ab";
    request->on_lost = kind & 1 ? (redlock_cb *)1 : NULL;
    request->watchdog = kind & 2;
    request->watch_key = (kind & 6) == 6;
    request->fenced = kind & 8;
    if (kind >= 192) {
        request->permits = kind & 16 ? 3 : (uint32_t)input_number(input);
    }
    request->mode = (redlock_mode)(kind % 7 % 4); /* 3 is no mode */
    for (unsigned i = kind / 16 % 6; i > 0; i--) {
        set_field(input, request);
    }
    if (request->key != NULL && request->key_length > strlen(request->key)) {
        request->key_length = 0;
    }
    app_acquire(&run->app, request, kind & 4);
}

/* ---- any call ---- */

static void call_with_null(struct run *run) {
    redlock_client *client = (redlock_client *)&run->app; /* must be set to NULL */
    redlock_lock *lock = (redlock_lock *)&run->app;
    redlock_request request = REDLOCK_REQUEST_INIT;
    CHECK(redlock_client_create(world_base(), NULL, &client, NULL) == REDLOCK_EINVAL);
    CHECK(client == NULL);
    CHECK(redlock_client_create(NULL, NULL, NULL, NULL) == REDLOCK_EINVAL);
    CHECK(redlock_acquire(NULL, &request, NULL, NULL, &lock) == REDLOCK_EINVAL && lock == NULL);
    CHECK(redlock_acquire(run->app.client, &request, NULL, NULL, NULL) ==
          (run->app.is_closing ? REDLOCK_ECLOSED : REDLOCK_EINVAL));
    CHECK(redlock_release(NULL, NULL, NULL) == REDLOCK_EINVAL);
    CHECK(redlock_extend(NULL, 1, NULL, NULL) == REDLOCK_EINVAL);
    CHECK(redlock_cancel(NULL) == REDLOCK_EINVAL);
    CHECK(redlock_validity_ms(NULL) == 0 && redlock_report(NULL, NULL, 0) == 0);
    CHECK(redlock_explain(NULL)[0] != '\0');
    CHECK(redlock_client_nodes(run->app.client, NULL, 0) > 0);
    redlock_client_close(NULL, NULL, NULL);
}

static void extend_anyhow(struct run *run, bool with_callback) {
    struct hold *hold = deed_pick(run);
    uint64_t ttl_ms = input_number(&run->input);
    if (hold != NULL) {
        app_extend(hold, ttl_ms, with_callback);
    }
}

static void ask(struct run *run) {
    struct hold *hold = deed_pick(run);
    if (hold != NULL) {
        app_ask(hold, input_below(&run->input, 8));
    }
    app_ask_some(&run->app, input_below(&run->input, 8));
}

static void change_nodes(struct run *run) {
    const char *nodes[REDLOCK_MAX_NODES];
    struct input *input = &run->input;
    unsigned kind = input_byte(input);
    unsigned count = 1 + kind / 4 % PEERS_MAX;
    redlock_client *client = run->app.client;
    redlock_status status;
    switch (kind % 4) {
    case 0:
        status = redlock_client_commit_nodes(client);
        break;
    case 1:
        status = redlock_client_abandon_nodes(client);
        break;
    default:
        for (unsigned i = 0; i < count; i++) {
            nodes[i] = node_of(input, i);
        }
        status = redlock_client_change_nodes(client, nodes, count);
        run->peers = run->peers > count ? run->peers : count;
        break;
    }
    CHECK((status == REDLOCK_ECLOSED) == run->app.is_closing);
    CHECK(status == REDLOCK_OK || redlock_client_error(client)[0] != '\0');
}

static void deed_of_caller(struct run *run) {
    unsigned kind = input_byte(&run->input);
    switch (kind % 8) {
    case 0:
        acquire_anything(run);
        break;
    case 1:
        extend_anyhow(run, !(kind & 8));
        break;
    case 2:
        ask(run);
        break;
    case 3:
        if (kind & 8) {
            app_look(&run->app, text_of(&run->input), kind & 16);
        } else if (kind & 32) {
            app_ready(&run->app, kind & 16 ? run->node_timeout_ms : 0);
        } else {
            call_with_null(run);
        }
        break;
    case 4:
        if (kind & 128) {
            app_close(&run->app);
        } else {
            change_nodes(run);
        }
        break;
    default:
        deed_of_lock(run);
        break;
    }
}

static void react(struct app *app, struct hold *hold, void *arg) {
    (void)app;
    (void)hold;
    struct run *run = arg;
    for (unsigned i = input_below(&run->input, 4); i > 0; i--) {
        deed_of_caller(run);
    }
}

static void deed(struct run *run) {
    unsigned kind = input_byte(&run->input);
    switch (kind % 8) {
    case 0:
    case 1:
    case 2:
        deed_of_caller(run);
        break;
    case 3:
        if (kind & 8) {
            refuse_memory(run);
        } else {
            world_refuse_watches(kind / 16 % 8, kind < 128 ? 1 : 9);
        }
        break;
    default:
        deed_of_world(run);
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct run run;
    run.input = (struct input){data, size};
    app_begin(&run.app);
    run.app.world.react = react;
    run.app.world.react_arg = &run;
    create(&run);
    for (unsigned i = 0; i < DEEDS_MAX && run.input.left > 0 && run.app.client != NULL; i++) {
        deed(&run);
    }
    app_end(&run.app, run.node_timeout_ms);
    return 0;
}
