#include "app.h"

#include "faults.h"
#include "world.h"

#include <errno.h>
#include <string.h>

/* ---- the client ---- */

static bool is_struck(void) {
    return faults_struck() > 0;
}

static void on_line(struct app *app, const char *line) {
    CHECK(strstr(line, MASTERS_PASSWORD) == NULL);
    if (strstr(line, "TTL frees it") != NULL) {
        CHECK(is_struck());
        app->leaves_keys = true;
    }
    if (getenv("REDLOCK_TORTURE_LOG") != NULL) { /* to inspect one run */
        fprintf(stderr, "%s\n", line);
    }
}

void app_init(struct app *app, enum address address) {
    memset(app, 0, sizeof(*app));
    app->world =
        (struct app_world){.blocks = &app->out, .may_lack_memory = is_struck, .on_line = on_line};
    app->options = (redlock_options)REDLOCK_OPTIONS_INIT;
    for (unsigned i = 0; i < MASTERS_COUNT; i++) {
        app->uris[i] = masters_uri(i, address);
    }
    app->allocator = faults_allocator(&app->out);
    app->options.nodes = app->uris;
    app->options.node_count = MASTERS_COUNT;
    app->options.allocator = &app->allocator;
    app->options.log_level = REDLOCK_LOG_DEBUG;
    /* Sockets of this process answer at once; the network takes some of the world's turns. */
    app->options.node_timeout_ms = address == ADDRESS_SOCKET ? 20 : 1000;
    app->options.stall_timeout_ms = address == ADDRESS_SOCKET ? 60 : 3000;
    app->options.retry_delay_ms = 4;
    app->options.retry_delay_max_ms = 8;
    app->options.reconnect_delay_ms = 4;
    app->options.reconnect_delay_max_ms = 8;
}

/*
 * Checks the status of a creation: REDLOCK_ENOMEM only after a refused allocation, REDLOCK_ESYSTEM
 * if and only if sodium_init was refused, and no other error.
 */
static void check_creation(redlock_status status, bool is_struck) {
    bool is_memory = faults_kind() == FAULT_ALLOC;
    CHECK(status != REDLOCK_ENOMEM || (is_memory && is_struck));
    CHECK((status == REDLOCK_ESYSTEM) == (faults_kind() == FAULT_SODIUM_INIT && is_struck));
    CHECK(status == REDLOCK_OK || status == REDLOCK_ENOMEM || status == REDLOCK_ESYSTEM);
}

/* Returns the run's pollable loop; NULL when it was refused. */
static redlock_loop *open_loop(void) {
    unsigned struck = faults_struck();
    redlock_loop *loop = world_pollable();
    CHECK(loop != NULL || (faults_struck() > struck && errno == fault_errno(faults_kind())));
    return loop;
}

bool app_open(struct app *app) {
    redlock_loop *loop = world_is_pollable() ? open_loop() : NULL;
    redlock_error error;
    redlock_status status;
    unsigned struck = faults_struck();
    if (world_is_pollable() && loop == NULL) {
        return false;
    }
    status = loop != NULL ? app_create_on(app, loop, &app->options, &error)
                          : app_create(app, world_loop(), &app->options, &error);
    check_creation(status, faults_struck() > struck);
    return status == REDLOCK_OK;
}

redlock_status app_change_nodes(struct app *app, const char *const *uris, size_t count) {
    app->calls++;
    redlock_status status = redlock_client_change_nodes(app->client, uris, count);
    app->calls--;
    if (status != REDLOCK_OK) {
        app_check_refusal(app, status);
    }
    return status;
}

/* Ends a change. Keys at a node that leaves the lists stay until their TTL ends. */
static redlock_status end_change(struct app *app, redlock_status (*end)(redlock_client *client)) {
    app->calls++;
    redlock_status status = end(app->client);
    app->calls--;
    if (status != REDLOCK_OK) {
        app_check_refusal(app, status);
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

/* ---- locks ---- */

static void on_any_loss(redlock_lock *lock, redlock_status status, void *arg) {
    (void)lock;
    (void)status;
    (void)arg;
    CHECK(false); /* never called: the driver replaces on_lost */
}

redlock_request app_request(const char *key) {
    redlock_request request = REDLOCK_REQUEST_INIT;
    request.key = key;
    request.ttl_ms = 30000;
    request.on_lost = on_any_loss;
    return request;
}

static struct hold *acquire(struct app *app, const redlock_request *given, bool wants_handle) {
    redlock_request request = *given;
    struct hold *hold;
    redlock_status status = app_ask_for(app, &request, wants_handle, &hold);
    CHECK(status == REDLOCK_OK || app->is_closing || status == REDLOCK_ENOMEM);
    hold->min_validity_ms = hold->min_validity_ms > 0 ? hold->min_validity_ms : 1;
    return status == REDLOCK_OK ? hold : NULL;
}

struct hold *app_acquire(struct app *app, const redlock_request *request) {
    return acquire(app, request, true);
}

struct hold *app_acquire_blindly(struct app *app, const redlock_request *request) {
    return acquire(app, request, false);
}

/* ---- questions ---- */

static size_t ask_nodes(struct app *app, redlock_node_info infos[MASTERS_COUNT]) {
    size_t count = app_ask_client(app, infos, MASTERS_COUNT);
    CHECK(count >= app->options.node_count && count <= MASTERS_COUNT);
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

size_t app_pending_releases(struct app *app) {
    redlock_node_info infos[MASTERS_COUNT];
    size_t pending = 0;
    size_t nodes = ask_nodes(app, infos);
    for (size_t i = 0; i < nodes; i++) {
        pending += infos[i].pending_releases;
    }
    return pending;
}

bool app_is_busy(const struct app *app) {
    if (app->looks > 0) {
        return true;
    }
    for (unsigned i = 0; i < app->count; i++) {
        const struct hold *hold = &app->holds[i];
        if (hold->stage == HOLD_ACQUIRING || hold_is_awaited(hold)) {
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
