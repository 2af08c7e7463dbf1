#include "app.h"

#include "faults.h"
#include "world.h"

#include <string.h>

/* ---- callbacks ---- */

static void enter(struct hold *hold) {
    CHECK(hold->app->calls == 0); /* from the loop, never from inside a call */
    CHECK(!hold->app->is_closed);
    app_ask(hold);
}

static void leave(struct hold *hold) {
    if (hold->then != NULL) {
        hold->then(hold);
    }
}

static void on_acquired(redlock_lock *lock, redlock_status status, void *arg) {
    struct hold *hold = arg;
    CHECK(hold->stage == HOLD_ACQUIRING);
    CHECK(hold->lock == NULL || hold->lock == lock);
    CHECK(status <= REDLOCK_OK && status >= REDLOCK_ESYSTEM);
    CHECK(status != REDLOCK_ENOMEM || faults_struck() > 0);
    hold->lock = lock;
    hold->stage = status == REDLOCK_OK ? HOLD_HELD : HOLD_GONE;
    hold->acquired = status;
    CHECK(status != REDLOCK_OK || hold->app->is_closing || redlock_validity_ms(lock) > 0);
    enter(hold);
    leave(hold);
}

static void on_lost(redlock_lock *lock, redlock_status status, void *arg) {
    struct hold *hold = arg;
    CHECK(hold->stage == HOLD_HELD && hold->lock == lock);
    CHECK(status == REDLOCK_ELOST || status == REDLOCK_EEXPIRED || status == REDLOCK_ECLOSED);
    CHECK(redlock_validity_ms(lock) == 0);
    CHECK(status != REDLOCK_ECLOSED || hold->app->is_closing);
    hold->stage = status == REDLOCK_ECLOSED ? HOLD_GONE : HOLD_LOST;
    hold->lost = status;
    hold->losses++;
    enter(hold);
    leave(hold);
}

static void on_extended(redlock_lock *lock, redlock_status status, void *arg) {
    struct hold *hold = arg;
    CHECK(hold->is_extending && hold->lock == lock);
    CHECK(hold->stage == HOLD_HELD || hold->stage == HOLD_RELEASING);
    CHECK(status != REDLOCK_OK || hold->stage == HOLD_HELD);
    CHECK((status == REDLOCK_ECANCELED) <= (hold->stage == HOLD_RELEASING));
    CHECK(status != REDLOCK_ENOMEM || faults_struck() > 0);
    hold->is_extending = false;
    hold->extended = status;
    hold->extensions++;
    enter(hold);
    leave(hold);
}

static void on_released(redlock_lock *lock, redlock_status status, void *arg) {
    struct hold *hold = arg;
    CHECK(hold->stage == HOLD_RELEASING && hold->lock == lock && !hold->is_extending);
    CHECK(status == REDLOCK_OK || status == REDLOCK_ELOST || status == REDLOCK_ENOQUORUM ||
          (status == REDLOCK_ENOMEM && faults_struck() > 0));
    hold->stage = HOLD_GONE;
    hold->released = status;
    hold->app->leaves_keys |= status == REDLOCK_ENOMEM;
    enter(hold);
    leave(hold);
}

static void on_closed(void *arg) {
    struct app *app = arg;
    CHECK(app->is_closing && !app->is_closed && app->calls == 0);
    CHECK(app->out == 0);
    app->is_closed = true;
    app->client = NULL;
}

static void on_log(redlock_log_level level, const char *line, void *arg) {
    struct app *app = arg;
    CHECK(level >= REDLOCK_LOG_DEBUG && level <= REDLOCK_LOG_ERROR);
    CHECK(strlen(line) < 1024 && strchr(line, '\n') == NULL);
    CHECK(strstr(line, MASTERS_PASSWORD) == NULL);
    if (strstr(line, "TTL frees it") != NULL) {
        CHECK(faults_struck() > 0);
        app->leaves_keys = true;
    }
    if (getenv("REDLOCK_TORTURE_LOG") != NULL) { /* for whoever looks into one run */
        fprintf(stderr, "%s\n", line);
    }
}

/* ---- the client ---- */

void app_init(struct app *app, enum address address) {
    memset(app, 0, sizeof(*app));
    app->options = (redlock_options)REDLOCK_OPTIONS_INIT;
    for (unsigned i = 0; i < MASTERS_COUNT; i++) {
        app->uris[i] = masters_uri(i, address);
    }
    app->allocator = faults_allocator(&app->out);
    app->options.nodes = app->uris;
    app->options.node_count = MASTERS_COUNT;
    app->options.allocator = &app->allocator;
    app->options.log = on_log;
    app->options.log_arg = app;
    app->options.log_level = REDLOCK_LOG_DEBUG;
    /* Sockets of this process answer at once; the network needs some of the world's turns. */
    app->options.node_timeout_ms = address == ADDRESS_SOCKET ? 20 : 1000;
    app->options.stall_timeout_ms = address == ADDRESS_SOCKET ? 60 : 3000;
    app->options.retry_delay_ms = 4;
    app->options.retry_delay_max_ms = 8;
    app->options.reconnect_delay_ms = 4;
    app->options.reconnect_delay_max_ms = 8;
}

/*
 * Checks the status of a creation: REDLOCK_ENOMEM only after a refused allocation, REDLOCK_ESYSTEM
 * exactly after a refused sodium_init, and no other error.
 */
static void check_creation(redlock_status status, bool has_struck) {
    bool is_memory = faults_kind() == FAULT_ALLOC;
    CHECK(status != REDLOCK_ENOMEM || (is_memory && has_struck));
    CHECK((status == REDLOCK_ESYSTEM) == (faults_kind() == FAULT_SODIUM_INIT && has_struck));
    CHECK(status == REDLOCK_OK || status == REDLOCK_ENOMEM || status == REDLOCK_ESYSTEM);
}

bool app_open(struct app *app) {
    redlock_error error;
    unsigned struck = faults_struck();
    app->calls++;
    redlock_status status =
        redlock_client_create(world_loop(), &app->options, &app->client, &error);
    app->calls--;
    CHECK((status == REDLOCK_OK) == (app->client != NULL));
    CHECK(error.status == status && error.message[0] != '\0');
    CHECK(status == REDLOCK_OK || app->out == 0);
    check_creation(status, faults_struck() > struck);
    return status == REDLOCK_OK;
}

void app_close(struct app *app) {
    app->calls++;
    redlock_client_close(app->client, on_closed, app);
    redlock_client_close(app->client, on_closed, app);
    app->calls--;
    app->is_closing = true;
}

/* ---- calls ---- */

static void check_refusal(const struct app *app, redlock_status status) {
    CHECK(status < REDLOCK_OK);
    CHECK(redlock_client_error(app->client)[0] != '\0');
    CHECK(app->is_closing == (status == REDLOCK_ECLOSED));
    CHECK(status != REDLOCK_ENOMEM || faults_struck() > 0);
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
    CHECK(view->owner != NULL && view->node_count <= MASTERS_COUNT);
    for (size_t i = 0; i < view->node_count; i++) {
        CHECK(view->nodes[i].answered || view->nodes[i].detail[0] != '\0');
    }
    on_fence(status, arg);
}

static redlock_status count_look(struct app *app, redlock_status status) {
    app->calls--;
    if (status != REDLOCK_OK) {
        check_refusal(app, status);
    } else {
        app->looks++;
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

redlock_status app_change_nodes(struct app *app, const char *const *uris, size_t count) {
    app->calls++;
    redlock_status status = redlock_client_change_nodes(app->client, uris, count);
    app->calls--;
    if (status != REDLOCK_OK) {
        check_refusal(app, status);
    }
    return status;
}

/* Keys of a lock at a node that leaves the lists stay until their TTL is over. */
static redlock_status end_change(struct app *app, redlock_status (*end)(redlock_client *client)) {
    app->calls++;
    redlock_status status = end(app->client);
    app->calls--;
    if (status != REDLOCK_OK) {
        check_refusal(app, status);
    } else {
        app->leaves_keys = true;
    }
    return status;
}

redlock_status app_commit_nodes(struct app *app) {
    return end_change(app, redlock_client_commit_nodes);
}

redlock_status app_abandon_nodes(struct app *app) {
    return end_change(app, redlock_client_abandon_nodes);
}

redlock_request app_request(const char *key) {
    redlock_request request = REDLOCK_REQUEST_INIT;
    request.key = key;
    request.ttl_ms = 30000;
    request.on_lost = on_lost;
    return request;
}

static struct hold *acquire(struct app *app, const redlock_request *given, bool wants_handle) {
    CHECK(app->count < APP_HOLDS_MAX);
    struct hold *hold = &app->holds[app->count++];
    redlock_request request = *given;
    *hold = (struct hold){.app = app, .hears_of_loss = given->on_lost != NULL};
    request.on_lost_arg = hold;
    app->calls++;
    redlock_status status = redlock_acquire(app->client, &request, on_acquired, hold,
                                            wants_handle ? &hold->lock : NULL);
    app->calls--;
    if (status != REDLOCK_OK) {
        CHECK(hold->lock == NULL && (app->is_closing || status == REDLOCK_ENOMEM));
        check_refusal(app, status);
        return NULL;
    }
    CHECK(!app->is_closing && wants_handle == (hold->lock != NULL));
    hold->stage = HOLD_ACQUIRING;
    return hold;
}

struct hold *app_acquire(struct app *app, const redlock_request *request) {
    return acquire(app, request, true);
}

struct hold *app_acquire_blindly(struct app *app, const redlock_request *request) {
    return acquire(app, request, false);
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
        app->leaves_keys |= !with_callback && faults_struck() > 0; /* it would not hear of it */
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

/* ---- questions ---- */

void app_ask(struct hold *hold) {
    redlock_node_report reports[MASTERS_COUNT];
    size_t length;
    hold->app->calls++;
    CHECK(redlock_report(hold->lock, reports, MASTERS_COUNT) ==
          redlock_client_nodes(hold->app->client, NULL, 0));
    for (size_t i = 0; i < hold->app->options.node_count; i++) {
        CHECK(reports[i].node[0] != '\0' && reports[i].vote <= REDLOCK_VOTE_UNTRUSTED);
        CHECK(reports[i].vote != REDLOCK_VOTE_UNREACHABLE || reports[i].detail[0] != '\0');
    }
    const char *sentence = redlock_explain(hold->lock);
    CHECK(sentence[0] != '\0' && strchr(sentence, '\n') == NULL);
    CHECK(redlock_key(hold->lock, &length)[length] == '\0' && length > 0);
    CHECK(redlock_validity_ms(hold->lock) == 0 || hold->stage == HOLD_ACQUIRING ||
          hold->stage == HOLD_HELD);
    hold->app->calls--;
}

static size_t ask_nodes(struct app *app, redlock_node_info infos[MASTERS_COUNT]) {
    app->calls++;
    size_t count = redlock_client_nodes(app->client, infos, MASTERS_COUNT);
    CHECK(count >= app->options.node_count && count <= MASTERS_COUNT);
    for (size_t i = 0; i < count; i++) {
        CHECK(infos[i].connected == (infos[i].reason[0] == '\0'));
        CHECK((infos[i].commands == 0) == (infos[i].bytes == 0));
    }
    app->calls--;
    return count;
}

unsigned app_connected(struct app *app) {
    redlock_node_info infos[MASTERS_COUNT];
    unsigned count = 0;
    size_t nodes = ask_nodes(app, infos);
    for (size_t i = 0; i < nodes; i++) {
        count += infos[i].connected;
    }
    return count;
}

size_t app_debts(struct app *app) {
    redlock_node_info infos[MASTERS_COUNT];
    size_t debts = 0;
    size_t nodes = ask_nodes(app, infos);
    for (size_t i = 0; i < nodes; i++) {
        debts += infos[i].release_debts;
    }
    return debts;
}

bool app_is_busy(const struct app *app) {
    if (app->looks > 0) {
        return true;
    }
    for (unsigned i = 0; i < app->count; i++) {
        const struct hold *hold = &app->holds[i];
        if (hold->stage == HOLD_ACQUIRING || hold->is_extending ||
            (hold->stage == HOLD_RELEASING && hold->hears_of_release)) {
            return true;
        }
    }
    return false;
}

void app_check_end(const struct app *app) {
    CHECK(app->client == NULL && app->out == 0 && !app_is_busy(app));
    for (unsigned i = 0; i < app->count; i++) {
        CHECK(app->holds[i].stage != HOLD_HELD || !app->holds[i].hears_of_loss);
    }
}
