#include "steps.h"

#include "world.h"

/* Looking at all nodes costs more than all else in a turn. */
#define TURNS_BETWEEN_LOOKS 8

struct connecting {
    struct app *app;
    unsigned turns;
};

static bool is_connected(const void *arg) {
    struct connecting *connecting = (struct connecting *)(uintptr_t)arg;
    struct app *app = connecting->app;
    return connecting->turns++ % TURNS_BETWEEN_LOOKS == 0 &&
           app_connected(app) == app->options.node_count;
}

void wait_connected(struct app *app) {
    struct connecting connecting = {.app = app};
    world_wait(is_connected, &connecting, "all nodes are connected");
}

bool open_connected(struct app *app) {
    if (!app_open(app)) {
        return false;
    }
    wait_connected(app);
    return true;
}

static bool is_idle(const void *arg) {
    return !app_is_busy(arg);
}

void wait_idle(struct app *app) {
    world_wait(is_idle, app, "all callbacks have come");
}

struct hold *hold_for(struct app *app, const redlock_request *request) {
    struct hold *hold = app_acquire(app, request);
    if (hold == NULL) {
        return NULL;
    }
    wait_idle(app);
    EXPECT(hold->stage == HOLD_HELD);
    return hold->stage == HOLD_HELD ? hold : NULL;
}

struct hold *hold_key(struct app *app, const char *key) {
    redlock_request request = app_request(key);
    return hold_for(app, &request);
}

struct hold *begin_held(struct app *app) {
    return open_connected(app) ? hold_key(app, KEY) : NULL;
}

bool is_ours(const struct hold *hold) {
    return hold->stage == HOLD_HELD || hold->stage == HOLD_LOST;
}

void let_go(struct hold *hold) {
    if (is_ours(hold)) {
        unsigned before = masters_released();
        CHECK(app_release(hold, true) == REDLOCK_OK);
        wait_idle(hold->app);
        if (hold->released == REDLOCK_ENOMEM) { /* it could not be sent, and is tried again */
            CHECK(faults_struck() > 1 || app_pending_releases(hold->app) > 0 ||
                  masters_released() > before);
        }
    }
}

static bool is_lost(const void *arg) {
    return ((const struct hold *)arg)->losses > 0;
}

void wait_lost(const struct hold *hold) {
    world_wait(is_lost, hold, "the loss is reported");
}

bool is_closed(const void *arg) {
    return ((const struct app *)arg)->is_closed;
}

void close_and_wait(struct app *app) {
    app_close(app);
    world_wait(is_closed, app, "the client is closed");
}

void acquire_in_vain(struct app *app, const redlock_request *request, redlock_status expected) {
    struct hold *hold = app_acquire(app, request);
    if (hold != NULL) {
        wait_idle(app);
        EXPECT(hold->acquired == expected);
        let_go(hold);
    }
}

void try_in_vain(struct app *app, redlock_status expected) {
    redlock_request request = app_request(KEY);
    acquire_in_vain(app, &request, expected);
}

static bool was_asked(const void *arg) {
    return masters_asked() >= *(const unsigned *)arg || faults_struck() > 0;
}

void wait_asked(unsigned count) {
    world_wait(was_asked, &count, "the masters are asked");
    if (faults_struck() > 0) {
        world_pass_ms(5);
    }
}

/* Returns whether the key is free, or the application was notified that it stays. */
static bool is_free(const void *arg) {
    return masters_having(KEY) == 0 || ((const struct app *)arg)->leaves_keys;
}

void wait_free(const struct app *app) {
    world_wait(is_free, app, "no master has the key");
}

struct hold *begin(struct app *app) {
    redlock_request request = app_request(KEY);
    request.wait_ms = REDLOCK_FOREVER;
    return app_acquire(app, &request);
}
