#include "app.h"

#include "base/nanos.h"
#include "check.h"
#include "core/validity.h"
#include "io/clock.h"
#include "peers.h"
#include "world.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* More than a client asks of a node for itself at once: the handshake with its scripts, and guards.
 */
#define OWN_COMMANDS 64
#define OWN_BYTES ((size_t)64 << 10)

static int next_fd(void) {
    int fd = fcntl(0, F_DUPFD_CLOEXEC, 0);
    CHECK(fd >= 0);
    close(fd);
    return fd;
}

/* ---- callbacks ---- */

static void enter(struct hold *hold) {
    CHECK(hold->app->calls == 0); /* from the loop, never from inside a call */
    CHECK(!hold->app->is_closed);
    hold->in_callback = true;
    app_ask(hold, PEERS_MAX);
}

static void leave(struct hold *hold) {
    struct app *app = hold->app;
    if (app->react != NULL) {
        app->react(app, hold, app->react_arg);
    }
    hold->in_callback = false;
}

static void on_acquired(redlock_lock *lock, redlock_status status, void *arg) {
    struct hold *hold = arg;
    CHECK(hold->stage == HOLD_ACQUIRING);
    CHECK(hold->lock == NULL || hold->lock == lock);
    CHECK(status <= REDLOCK_OK && status >= REDLOCK_ESYSTEM);
    hold->lock = lock;
    hold->stage = status == REDLOCK_OK ? HOLD_HELD : HOLD_GONE;
    if (status == REDLOCK_OK && hold->app->is_closing) {
        CHECK(redlock_validity_ms(lock) == 0);
    } else if (status == REDLOCK_OK) {
        CHECK(redlock_validity_ms(lock) >= hold->min_validity_ms);
        CHECK(!hold->is_tried_once || clock_now() < hold->valid_until);
    }
    enter(hold);
    leave(hold);
}

static void on_lost(redlock_lock *lock, redlock_status status, void *arg) {
    struct hold *hold = arg;
    CHECK(hold->stage == HOLD_HELD && hold->lock == lock);
    CHECK(status == REDLOCK_ELOST || status == REDLOCK_EEXPIRED || status == REDLOCK_ECLOSED);
    CHECK(redlock_validity_ms(lock) == 0);
    CHECK((status == REDLOCK_ECLOSED) <= hold->app->is_closing);
    hold->stage = status == REDLOCK_ECLOSED ? HOLD_GONE : HOLD_LOST;
    enter(hold);
    leave(hold);
}

static void on_extended(redlock_lock *lock, redlock_status status, void *arg) {
    struct hold *hold = arg;
    CHECK(hold->is_extending && hold->lock == lock);
    CHECK(hold->stage == HOLD_HELD || hold->stage == HOLD_RELEASING);
    CHECK(status != REDLOCK_OK || hold->stage == HOLD_HELD);
    CHECK((status == REDLOCK_ECANCELED) <= (hold->stage == HOLD_RELEASING));
    hold->is_extending = false;
    enter(hold);
    leave(hold);
}

static void on_released(redlock_lock *lock, redlock_status status, void *arg) {
    struct hold *hold = arg;
    CHECK(hold->stage == HOLD_RELEASING && hold->lock == lock && !hold->is_extending);
    CHECK(status == REDLOCK_OK || status == REDLOCK_ELOST || status == REDLOCK_ENOQUORUM ||
          status == REDLOCK_ENOMEM);
    hold->stage = HOLD_GONE;
    enter(hold);
    leave(hold);
}

static void on_closed(void *arg) {
    struct app *app = arg;
    CHECK(app->is_closing && !app->is_closed && app->calls == 0);
    CHECK(app->heap.out == 0);
    app->is_closed = true;
    app->client = NULL;
}

static void on_log(redlock_log_level level, const char *line, void *arg) {
    (void)arg;
    CHECK(level >= REDLOCK_LOG_DEBUG && level <= REDLOCK_LOG_ERROR);
    CHECK(strlen(line) < 1024 && strchr(line, '\n') == NULL);
    CHECK(strstr(line, PEERS_PASSWORD) == NULL || peers_told_password());
    if (getenv("REDLOCK_FUZZ_LOG") != NULL) { /* for whoever looks into one input */
        fprintf(stderr, "%s\n", line);
    }
}

/* ---- calls ---- */

bool hold_is_usable(const struct hold *hold) {
    return !hold->app->is_closed && hold->lock != NULL &&
           (hold->in_callback || hold->stage == HOLD_ACQUIRING || hold->stage == HOLD_HELD ||
            hold->stage == HOLD_LOST);
}

static void check_refusal(const struct app *app, redlock_status status) {
    CHECK(status < REDLOCK_OK);
    CHECK(redlock_client_error(app->client)[0] != '\0');
    CHECK(app->is_closing == (status == REDLOCK_ECLOSED));
}

redlock_status app_create(struct app *app, redlock_options *options, redlock_error *error) {
    options->log = on_log;
    app->calls++;
    redlock_status status = redlock_client_create(app->base, options, &app->client, error);
    app->calls--;
    CHECK((status == REDLOCK_OK) == (app->client != NULL));
    CHECK(error == NULL || (error->status == status && error->message[0] != '\0'));
    CHECK(status == REDLOCK_OK || app->heap.out == 0);
    bool is_whole = options->size >= sizeof(*options); /* else the defaults count */
    app->options = is_whole ? *options : (redlock_options)REDLOCK_OPTIONS_INIT;
    return status;
}

redlock_status app_acquire(struct app *app, redlock_request *request, bool wants_handle) {
    CHECK(app->count < APP_HOLDS_MAX);
    struct hold *hold = &app->holds[app->count++];
    bool is_whole = request->size >= sizeof(*request); /* else the last fields are not looked at */
    *hold = (struct hold){.app = app,
                          .is_tried_once = request->wait_ms == 0 && request->retries == 0,
                          .hears_of_loss = request->on_lost != NULL && is_whole,
                          .min_validity_ms = is_whole ? request->min_validity_ms : 0};
    uint64_t ttl = nanos_from_ms(request->ttl_ms);
    hold->valid_until = is_whole ? validity_end(clock_now(), ttl, app->options.drift) : NANOS_NEVER;
    request->on_lost = hold->hears_of_loss ? on_lost : NULL;
    request->on_lost_arg = hold;
    app->calls++;
    redlock_status status =
        redlock_acquire(app->client, request, on_acquired, hold, wants_handle ? &hold->lock : NULL);
    app->calls--;
    if (status == REDLOCK_OK) {
        CHECK(!app->is_closing && wants_handle == (hold->lock != NULL));
        hold->stage = HOLD_ACQUIRING;
    } else {
        check_refusal(app, status);
    }
    return status;
}

redlock_status app_extend(struct hold *hold, uint64_t ttl_ms, bool with_callback) {
    struct app *app = hold->app;
    app->calls++;
    redlock_status status =
        redlock_extend(hold->lock, ttl_ms, with_callback ? on_extended : NULL, hold);
    app->calls--;
    if (status == REDLOCK_OK) {
        CHECK(hold->stage == HOLD_HELD && !hold->is_extending && !app->is_closing);
        hold->is_extending = with_callback;
    } else {
        check_refusal(app, status);
        CHECK(status != REDLOCK_EBUSY || hold->stage == HOLD_HELD);
    }
    return status;
}

redlock_status app_release(struct hold *hold, bool with_callback) {
    struct app *app = hold->app;
    app->calls++;
    redlock_status status = redlock_release(hold->lock, with_callback ? on_released : NULL, hold);
    app->calls--;
    if (status == REDLOCK_OK) {
        CHECK(!app->is_closing && (hold->stage == HOLD_HELD || hold->stage == HOLD_LOST));
        hold->stage = HOLD_RELEASING;
        hold->hears_of_release = with_callback;
    } else {
        check_refusal(app, status);
        CHECK(app->is_closing || (hold->stage != HOLD_HELD && hold->stage != HOLD_LOST));
    }
    return status;
}

redlock_status app_cancel(struct hold *hold) {
    struct app *app = hold->app;
    app->calls++;
    redlock_status status = redlock_cancel(hold->lock);
    app->calls--;
    if (status == REDLOCK_OK) {
        CHECK(!app->is_closing && hold->stage == HOLD_ACQUIRING);
    } else {
        check_refusal(app, status);
    }
    return status;
}

void app_close(struct app *app) {
    app->calls++;
    redlock_client_close(app->client, on_closed, app);
    app->calls--;
    app->is_closing = true;
}

void app_ask(struct hold *hold, size_t capacity) {
    redlock_node_report reports[REDLOCK_MAX_NODES];
    size_t length;
    capacity = capacity < REDLOCK_MAX_NODES ? capacity : REDLOCK_MAX_NODES;
    hold->app->calls++;
    size_t count = redlock_report(hold->lock, reports, capacity);
    CHECK(count >= 1 && count <= REDLOCK_MAX_NODES);
    for (size_t i = 0; i < count && i < capacity; i++) {
        CHECK(reports[i].node[0] != '\0' && reports[i].vote <= REDLOCK_VOTE_LATE);
        CHECK(strlen(reports[i].detail) < 256);
        CHECK((reports[i].vote != REDLOCK_VOTE_UNREACHABLE &&
               reports[i].vote != REDLOCK_VOTE_UNTRUSTED) ||
              reports[i].detail[0] != '\0');
    }
    const char *sentence = redlock_explain(hold->lock);
    CHECK(sentence[0] != '\0' && strchr(sentence, '\n') == NULL);
    CHECK(redlock_key(hold->lock, &length)[length] == '\0' && length > 0);
    CHECK(redlock_validity_ms(hold->lock) == 0 || hold->stage == HOLD_ACQUIRING ||
          hold->stage == HOLD_HELD);
    hold->app->calls--;
}

static void on_fence(redlock_status status, void *arg) {
    struct app *app = arg;
    CHECK(app->looks > 0 && app->calls == 0 && !app->is_closed);
    CHECK(status == REDLOCK_OK || status == REDLOCK_ELOST || status == REDLOCK_ENOQUORUM ||
          (status == REDLOCK_ECLOSED && app->is_closing));
    app->looks--;
}

static void on_view(redlock_status status, const redlock_view *view, void *arg) {
    for (size_t i = 0; i < view->node_count; i++) {
        CHECK(view->nodes[i].node[0] != '\0');
        CHECK(view->nodes[i].answered || view->nodes[i].detail[0] != '\0');
    }
    CHECK(status != REDLOCK_ELOST);
    on_fence(status, arg);
}

void app_look(struct app *app, const char *key, bool at_fence) {
    app->calls++;
    redlock_status status = at_fence ? redlock_check_fence(app->client, key, 0, 7, on_fence, app)
                                     : redlock_inspect(app->client, key, 0, on_view, app);
    app->calls--;
    CHECK((status == REDLOCK_ECLOSED) == app->is_closing);
    app->looks += status == REDLOCK_OK;
}

void app_ask_client(struct app *app, size_t capacity) {
    redlock_node_info infos[REDLOCK_MAX_NODES];
    capacity = capacity < REDLOCK_MAX_NODES ? capacity : REDLOCK_MAX_NODES;
    app->calls++;
    size_t count = redlock_client_nodes(app->client, infos, capacity);
    for (size_t i = 0; i < count && i < capacity; i++) {
        CHECK(infos[i].node[0] != '\0');
        CHECK(infos[i].connected == (infos[i].reason[0] == '\0'));
        CHECK((infos[i].commands == 0) == (infos[i].bytes == 0));
        CHECK(infos[i].commands <= (uint64_t)app->options.max_commands + OWN_COMMANDS);
        CHECK(infos[i].bytes <= OWN_BYTES || infos[i].bytes - OWN_BYTES <= app->options.max_bytes);
    }
    CHECK(redlock_client_error(app->client) != NULL);
    app->calls--;
}

/* ---- a run ---- */

static void be_silent(int severity, const char *message) {
    (void)severity;
    (void)message;
}

void app_begin(struct app *app) {
    static struct event_base *base;
    if (base == NULL) {
        event_set_log_callback(be_silent);
        base = event_base_new();
        CHECK(base != NULL);
    }
    world_begin();
    peers_begin();
    app->base = base;
    app->client = NULL;
    app->is_closing = app->is_closed = false;
    app->calls = app->count = 0;
    app->react = NULL;
    heap_init(&app->heap);
    app->next_fd = next_fd();
}

void app_turn(struct app *app) {
    peers_turn();
    world_turn(app->base);
    if (app->client != NULL) {
        app_ask_client(app, PEERS_MAX);
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

/*
 * Waits for the requests to the nodes, which end when their time is over, whatever the nodes
 * answer.
 */
static void wait_for_requests(struct app *app, uint64_t node_timeout_ms) {
    for (unsigned i = 0; i < 3 && app_pending(app) > 0; i++) {
        world_pass(nanos_from_ms(node_timeout_ms));
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

/* Releases end with node_timeout, the wait for those that nodes are owed with close_timeout. */
static void wait_for_the_end(struct app *app, uint64_t node_timeout_ms) {
    uint64_t step = nanos_from_ms(nanos_max(node_timeout_ms, app->options.close_timeout_ms));
    for (unsigned i = 0; i < 16 && !app->is_closed; i++) {
        app_turn(app);
        if (i >= 4) {
            world_pass(step);
        }
    }
    CHECK(app->is_closed);
}

void app_end(struct app *app, uint64_t node_timeout_ms) {
    app->react = NULL;
    if (app->client != NULL) {
        world_refuse_timers(0, 0);
        if (!app->is_closing) {
            wait_for_requests(app, node_timeout_ms);
            app_close(app);
        }
        wait_for_the_end(app, node_timeout_ms);
        check_holds(app);
    }
    CHECK(app->heap.out == 0);
    peers_end();
    world_turn(app->base); /* what the loop still has would touch what is freed */
    CHECK(event_base_get_num_events(app->base, EVENT_BASE_COUNT_ADDED | EVENT_BASE_COUNT_ACTIVE) ==
          0);
    CHECK(next_fd() == app->next_fd);
    world_end();
}
