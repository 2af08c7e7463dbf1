#include "driver.h"

#include "base/nanos.h"
#include "check.h"
#include "core/validity.h"
#include "io/clock.h"

#include <string.h>

/*
 * An upper bound of the client's own commands at a node: the handshake with its scripts, and the
 * guard's.
 */
#define OWN_COMMANDS 64
#define OWN_BYTES ((size_t)64 << 10)

static bool may_lack_memory(const struct app *app) {
    return app->world.may_lack_memory == NULL || app->world.may_lack_memory();
}

/* ---- callbacks ---- */

static void enter(struct hold *hold, redlock_status status) {
    CHECK(hold->app->calls == 0); /* callbacks come from the loop, never from inside a call */
    CHECK(!hold->app->is_closed);
    CHECK(status <= REDLOCK_OK && status >= REDLOCK_EACCESS);
    CHECK(status != REDLOCK_ENOMEM || may_lack_memory(hold->app));
    hold->in_callback = true;
    app_ask(hold, REDLOCK_MAX_NODES);
}

static void leave(struct hold *hold) {
    struct app *app = hold->app;
    if (hold->then != NULL) {
        hold->then(hold);
    }
    if (app->world.react != NULL) {
        app->world.react(app, hold, app->world.react_arg);
    }
    hold->in_callback = false;
}

static void on_acquired(redlock_lock *lock, redlock_status status, void *arg) {
    struct hold *hold = arg;
    CHECK(hold->stage == HOLD_ACQUIRING);
    CHECK(hold->lock == NULL || hold->lock == lock);
    hold->lock = lock;
    hold->stage = status == REDLOCK_OK ? HOLD_HELD : HOLD_GONE;
    hold->acquired = status;
    if (status == REDLOCK_OK && hold->app->is_closing) {
        CHECK(redlock_validity_ms(lock) == 0);
    } else if (status == REDLOCK_OK) {
        CHECK(redlock_validity_ms(lock) >= hold->min_validity_ms);
        CHECK(!hold->is_tried_once || clock_now() < hold->valid_until);
    }
    enter(hold, status);
    leave(hold);
}

static void on_lost(redlock_lock *lock, redlock_status status, void *arg) {
    struct hold *hold = arg;
    CHECK(hold->stage == HOLD_HELD && hold->lock == lock);
    CHECK(status == REDLOCK_ELOST || status == REDLOCK_EEXPIRED || status == REDLOCK_ECLOSED);
    CHECK(redlock_validity_ms(lock) == 0);
    CHECK(status != REDLOCK_ECLOSED || hold->app->is_closing);
    hold->stage = status == REDLOCK_ECLOSED ? HOLD_CLOSED : HOLD_LOST;
    hold->lost = status;
    hold->losses++;
    enter(hold, status);
    leave(hold);
}

static void on_extended(redlock_lock *lock, redlock_status status, void *arg) {
    struct hold *hold = arg;
    CHECK(hold->is_extending && hold->lock == lock);
    CHECK(hold->stage == HOLD_HELD || hold->stage == HOLD_RELEASING);
    CHECK(status != REDLOCK_OK || hold->stage == HOLD_HELD);
    CHECK((status == REDLOCK_ECANCELED) <= (hold->stage == HOLD_RELEASING));
    hold->is_extending = false;
    hold->extended = status;
    hold->extensions++;
    enter(hold, status);
    leave(hold);
}

#define UNSENT "not released: out of memory, "

static void on_released(redlock_lock *lock, redlock_status status, void *arg) {
    struct hold *hold = arg;
    CHECK(hold->stage == HOLD_RELEASING && hold->lock == lock && !hold->is_extending);
    CHECK(status == REDLOCK_OK || status == REDLOCK_ELOST || status == REDLOCK_ENOQUORUM ||
          status == REDLOCK_ENOMEM);
    CHECK(status != REDLOCK_ENOMEM || strncmp(redlock_explain(lock), UNSENT, strlen(UNSENT)) == 0);
    hold->stage = HOLD_GONE;
    hold->released = status;
    hold->app->leaves_keys |= status == REDLOCK_ENOMEM;
    enter(hold, status);
    leave(hold);
}

/* Handles stay valid until on_closed has returned; no callback follows it. */
static void use_handles(struct app *app) {
    for (unsigned i = 0; i < app->count; i++) {
        const struct hold *hold = &app->holds[i];
        if (hold->lock != NULL && hold_is_ours(hold)) {
            CHECK(redlock_key(hold->lock, NULL)[0] != '\0');
            CHECK(redlock_release(hold->lock, on_released, app) == REDLOCK_ECLOSED);
            CHECK(redlock_cancel(hold->lock) == REDLOCK_ECLOSED);
        }
    }
}

static void on_closed(void *arg) {
    struct app *app = arg;
    CHECK(app->is_closing && !app->is_closed && app->calls == 0);
    use_handles(app);
    app->is_closed = true;
    app->client = NULL;
}

static void on_log(redlock_log_level level, const char *line, void *arg) {
    struct app *app = arg;
    CHECK(level >= REDLOCK_LOG_DEBUG && level <= REDLOCK_LOG_ERROR);
    CHECK(strlen(line) < 1024 && strchr(line, '\n') == NULL);
    if (app->world.on_line != NULL) {
        app->world.on_line(app, line);
    }
}

static void on_fence(redlock_status status, void *arg) {
    struct app *app = arg;
    CHECK(app->looks > 0 && app->calls == 0 && !app->is_closed);
    CHECK(status == REDLOCK_OK || status == REDLOCK_ELOST || status == REDLOCK_ENOQUORUM ||
          (status == REDLOCK_ECLOSED && app->is_closing));
    app->looks--;
    app->seen = status;
}

static void on_view(redlock_status status, const redlock_view *view, void *arg) {
    CHECK(view->owner != NULL && view->node_count <= REDLOCK_MAX_NODES);
    for (size_t i = 0; i < view->node_count; i++) {
        CHECK(view->nodes[i].node[0] != '\0');
        CHECK(view->nodes[i].answered || view->nodes[i].detail[0] != '\0');
    }
    CHECK(view->queue_owner_count <= REDLOCK_MAX_QUEUE_OWNERS);
    CHECK(view->queue_owner_count <= view->queue_length);
    for (size_t i = 0; i < view->queue_owner_count; i++) {
        CHECK(strlen(view->queue_owners[i]) <= 64);
    }
    CHECK(status != REDLOCK_ELOST);
    on_fence(status, arg);
}

static void on_ready(redlock_status status, void *arg) {
    struct app *app = arg;
    CHECK(app->looks > 0 && app->calls == 0 && !app->is_closed);
    CHECK(app->is_closing
              ? status == REDLOCK_ECLOSED
              : status == REDLOCK_OK || status == REDLOCK_ENOQUORUM || status == REDLOCK_EACCESS);
    app->looks--;
    app->seen = status;
}

/* ---- the client ---- */

static void begin_create(struct app *app, redlock_options *options) {
    options->log = on_log;
    options->log_arg = app;
    app->calls++;
}

static redlock_status end_create(struct app *app, redlock_status status,
                                 const redlock_error *error) {
    app->calls--;
    CHECK((status == REDLOCK_OK) == (app->client != NULL));
    CHECK(error == NULL || (error->status == status && error->message[0] != '\0'));
    CHECK(status == REDLOCK_OK || *app->world.blocks == 0);
    return status;
}

redlock_status app_create(struct app *app, struct event_base *base, redlock_options *options,
                          redlock_error *error) {
    begin_create(app, options);
    return end_create(app, redlock_client_create(base, options, &app->client, error), error);
}

redlock_status app_create_on(struct app *app, redlock_loop *loop, redlock_options *options,
                             redlock_error *error) {
    begin_create(app, options);
    return end_create(app, redlock_client_create_on(loop, options, &app->client, error), error);
}

void app_close(struct app *app) {
    app->calls++;
    redlock_client_close(app->client, on_closed, app);
    redlock_client_close(app->client, on_closed, app);
    app->calls--;
    app->is_closing = true;
}

void app_check_refusal(const struct app *app, redlock_status status) {
    CHECK(status < REDLOCK_OK);
    CHECK(redlock_client_error(app->client)[0] != '\0');
    CHECK(app->is_closing == (status == REDLOCK_ECLOSED));
    CHECK(status != REDLOCK_ENOMEM || may_lack_memory(app));
}

size_t app_ask_client(struct app *app, redlock_node_info *infos, size_t capacity) {
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
    return count;
}

/* ---- locks ---- */

bool hold_is_usable(const struct hold *hold) {
    return !hold->app->is_closed && hold->lock != NULL &&
           (hold->in_callback || hold->stage == HOLD_ACQUIRING || hold_is_ours(hold));
}

bool hold_is_ours(const struct hold *hold) {
    return hold->stage == HOLD_HELD || hold->stage == HOLD_LOST || hold->stage == HOLD_CLOSED;
}

bool hold_is_awaited(const struct hold *hold) {
    return hold->is_extending || (hold->stage == HOLD_RELEASING && hold->hears_of_release);
}

redlock_status app_ask_for(struct app *app, redlock_request *request, bool wants_handle,
                           struct hold **asked) {
    CHECK(app->count < APP_HOLDS_MAX);
    struct hold *hold = *asked = &app->holds[app->count++];
    /* in a shorter struct the last fields are not read */
    bool is_whole = request->size >= sizeof(*request);
    *hold = (struct hold){.app = app,
                          .is_tried_once = request->wait_ms == 0 && request->retries == 0,
                          .hears_of_loss = request->on_lost != NULL && is_whole,
                          .min_validity_ms = is_whole ? request->min_validity_ms : 0};
    uint64_t ttl = nanos_from_ms(request->ttl_ms);
    uint64_t valid_until = validity_end(clock_now(), ttl, app->options.drift);
    hold->valid_until = NANOS_NEVER;
    request->on_lost = hold->hears_of_loss ? on_lost : NULL;
    request->on_lost_arg = hold;
    app->calls++;
    redlock_status status =
        redlock_acquire(app->client, request, on_acquired, hold, wants_handle ? &hold->lock : NULL);
    app->calls--;
    if (status == REDLOCK_OK) {
        CHECK(!app->is_closing && wants_handle == (hold->lock != NULL));
        hold->stage = HOLD_ACQUIRING;
        /* A request that waits to be sent may be valid for longer. */
        bool is_sent =
            wants_handle && strstr(redlock_explain(hold->lock), "no node was asked") == NULL;
        hold->valid_until = is_whole && is_sent ? valid_until : NANOS_NEVER;
    } else {
        CHECK(hold->lock == NULL);
        app_check_refusal(app, status);
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
        app_check_refusal(app, status);
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
        CHECK(hold_is_ours(hold));
        hold->stage = HOLD_RELEASING;
        hold->hears_of_release = with_callback;
        /* nothing reports ENOMEM then */
        app->leaves_keys |= !with_callback && may_lack_memory(app);
    } else {
        CHECK(status == REDLOCK_EINVAL && redlock_client_error(app->client)[0] != '\0');
        CHECK(!hold_is_ours(hold));
    }
    return status;
}

redlock_status app_cancel(struct hold *hold) {
    struct app *app = hold->app;
    app->calls++;
    redlock_status status = redlock_cancel(hold->lock);
    app->calls--;
    if (status == REDLOCK_OK) {
        CHECK(hold->stage == HOLD_ACQUIRING);
    } else {
        CHECK(status == REDLOCK_EINVAL && redlock_client_error(app->client)[0] != '\0');
    }
    return status;
}

void app_ask(struct hold *hold, size_t capacity) {
    redlock_node_report reports[REDLOCK_MAX_NODES];
    size_t length;
    capacity = capacity < REDLOCK_MAX_NODES ? capacity : REDLOCK_MAX_NODES;
    hold->app->calls++;
    size_t count = redlock_report(hold->lock, reports, capacity);
    CHECK(count >= 1 && count == redlock_client_nodes(hold->app->client, NULL, 0));
    for (size_t i = 0; i < count && i < capacity; i++) {
        CHECK(reports[i].node[0] != '\0' && reports[i].vote <= REDLOCK_VOTE_LATE);
        CHECK(strlen(reports[i].detail) < 256);
        CHECK((reports[i].vote != REDLOCK_VOTE_UNREACHABLE &&
               reports[i].vote != REDLOCK_VOTE_REFUSED &&
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

/* ---- inspections ---- */

static redlock_status count_look(struct app *app, redlock_status status) {
    app->calls--;
    if (status == REDLOCK_OK) {
        app->looks++;
    } else {
        app_check_refusal(app, status);
    }
    return status;
}

redlock_status app_inspect(struct app *app, const char *key) {
    app->calls++;
    return count_look(app, redlock_inspect(app->client, key, 0, on_view, app));
}

redlock_status app_check_fence(struct app *app, const char *key, uint64_t fence) {
    app->calls++;
    return count_look(app, redlock_check_fence(app->client, key, 0, fence, on_fence, app));
}

redlock_status app_ready(struct app *app, uint64_t timeout_ms) {
    app->calls++;
    return count_look(app, redlock_client_ready(app->client, timeout_ms, on_ready, app));
}
