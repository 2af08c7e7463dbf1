/* Guards while queues are full, nodes are durable, or there are many locks. */
#include "scenarios.h"
#include "steps.h"

#include <stdio.h>
#include <string.h>

/* Number of locks: more than the shortest queues take at once. */
#define CROWD 40

static redlock_request request_of(unsigned number, char name[16]) {
    snprintf(name, 16, "crowd:%u", number);
    redlock_request request = app_request(name);
    request.ttl_ms = 9000;
    request.watchdog = true;
    return request;
}

static unsigned acquire_crowd(struct app *app) {
    unsigned held = 0;
    char name[16];
    for (unsigned i = 0; i < CROWD; i++) {
        redlock_request request = request_of(i, name);
        request.wait_ms = 200;
        app_acquire(app, &request);
    }
    wait_idle(app);
    for (unsigned i = 0; i < app->count; i++) {
        held += app->holds[i].stage == HOLD_HELD;
    }
    return held;
}

/* A heartbeat is due while the queue is full, and needs no room in it. */
static void full_queues_hide_nothing(struct app *app) {
    app->options.max_commands = 16;
    app->options.stall_timeout_ms = 3000;
    if (open_connected(app)) {
        masters_behave(FIRST, MANNER_MUTE);
        acquire_crowd(app);
        world_pass_ms(20);
        masters_behave(FIRST, MANNER_WELL);
        masters_cut(FIRST);
        close_and_wait(app);
    }
}

static void a_crowd_closes(struct app *app) {
    app->options.max_commands = 16;
    if (open_connected(app)) {
        EXPECT(acquire_crowd(app) > 0);
        close_and_wait(app);
        EXPECT(masters_having_any() == 0);
    }
}

static void durable_nodes_come_back(struct app *app) {
    static char texts[MASTERS_COUNT][200];
    for (unsigned i = 0; i < MASTERS_COUNT; i++) {
        snprintf(texts[i], sizeof(texts[i]), "%s?durable=yes", app->uris[i]);
        app->uris[i] = texts[i];
    }
    struct hold *hold = begin_held(app);
    if (hold != NULL && hold->stage == HOLD_HELD) {
        masters_stop(FIRST);
        world_pass_ms(10);
        masters_start(FIRST);
        wait_connected(app);
        app_extend(hold, 0, true);
        wait_idle(app);
        EXPECT(hold->extended == REDLOCK_OK);
        let_go(hold);
    }
}

/* The renewals of all locks fail together, and are brought forward together. */
static void a_crowd_is_renewed_when_nodes_come_back(struct app *app) {
    if (open_connected(app)) {
        acquire_crowd(app);
        masters_stop(FIRST_TWO);
        for (unsigned i = 0; i < app->count; i++) {
            if (app->holds[i].stage == HOLD_HELD) {
                app_extend(&app->holds[i], 0, true);
            }
        }
        wait_idle(app);
        masters_start(FIRST_TWO);
        wait_connected(app);
        world_pass_ms(5);
        for (unsigned i = 0; i < app->count; i++) {
            EXPECT(app->holds[i].losses == 0);
        }
        close_and_wait(app);
    }
}

static const struct scenario scenarios[] = {
    ON_SOCKETS(full_queues_hide_nothing),
    ON_SOCKETS(a_crowd_closes),
    ON_SOCKETS(durable_nodes_come_back),
    ON_SOCKETS(a_crowd_is_renewed_when_nodes_come_back),
};

const struct theme theme_guarded = THEME(scenarios);
