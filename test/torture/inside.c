/* Calls from inside callbacks. */
#include "scenarios.h"
#include "steps.h"

static void close_from(struct hold *hold) {
    if (!hold->app->is_closing) {
        app_close(hold->app);
    }
}

static void close_inside_on_acquired(struct app *app) {
    if (open_connected(app)) {
        struct hold *hold = begin(app);
        if (hold != NULL) {
            hold->then = close_from;
            world_wait(is_closed, app, "the client is closed");
        }
    }
}

static void close_inside_on_lost(struct app *app) {
    redlock_request request = app_request(KEY);
    request.ttl_ms = 40;
    struct hold *hold = open_connected(app) ? hold_for(app, &request) : NULL;
    if (hold != NULL && hold->stage == HOLD_HELD) {
        hold->then = close_from;
        world_wait(is_closed, app, "the client is closed");
    }
}

static void close_inside_on_released(struct app *app) {
    struct hold *hold = begin_held(app);
    if (hold != NULL && is_ours(hold)) {
        hold->then = close_from;
        app_release(hold, true);
        world_wait(is_closed, app, "the client is closed");
    }
}

static void close_inside_on_extended(struct app *app) {
    struct hold *hold = begin_held(app);
    if (hold != NULL && hold->stage == HOLD_HELD) {
        hold->then = close_from;
        app_extend(hold, 0, true);
        world_wait(is_closed, app, "the client is closed");
    }
}

static void release_from(struct hold *hold) {
    if (is_ours(hold)) {
        app_release(hold, true);
    }
}

static void release_inside_on_acquired(struct app *app) {
    if (open_connected(app)) {
        struct hold *hold = begin(app);
        if (hold != NULL) {
            hold->then = release_from;
            wait_idle(app);
            wait_free(app);
        }
    }
}

static void release_inside_on_lost(struct app *app) {
    redlock_request request = app_request(KEY);
    request.ttl_ms = 40;
    struct hold *hold = open_connected(app) ? hold_for(app, &request) : NULL;
    if (hold != NULL && hold->stage == HOLD_HELD) {
        hold->then = release_from;
        wait_lost(hold);
    }
}

static void extend_from(struct hold *hold) {
    if (hold->stage == HOLD_HELD && hold->extensions == 0) {
        app_extend(hold, 0, true);
    }
}

static void extend_inside_on_acquired(struct app *app) {
    if (open_connected(app)) {
        struct hold *hold = begin(app);
        if (hold != NULL) {
            hold->then = extend_from;
            wait_idle(app);
            EXPECT(hold->extended == REDLOCK_OK && hold->extensions == 1);
            let_go(hold);
        }
    }
}

static void acquire_from(struct hold *hold) {
    redlock_request request = app_request(KEY);
    request.wait_ms = 5000;
    if (hold->app->count < 5) {
        struct hold *next = app_acquire(hold->app, &request);
        if (next != NULL) {
            next->then = acquire_from;
        }
    }
    release_from(hold);
}

static void acquire_inside_callbacks(struct app *app) {
    if (open_connected(app)) {
        struct hold *hold = begin(app);
        if (hold != NULL) {
            hold->then = acquire_from;
            wait_idle(app);
            EXPECT(app->count == 5);
        }
    }
}

static const struct scenario scenarios[] = {
    ON_SOCKETS(close_inside_on_acquired),   ON_SOCKETS(close_inside_on_lost),
    ON_SOCKETS(close_inside_on_released),   ON_SOCKETS(close_inside_on_extended),
    ON_SOCKETS(release_inside_on_acquired), ON_SOCKETS(release_inside_on_lost),
    ON_SOCKETS(extend_inside_on_acquired),  ON_SOCKETS(acquire_inside_callbacks),
};

const struct theme theme_inside = THEME(scenarios);
