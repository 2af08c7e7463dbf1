/* Permits: requests that go on to another key when the key of their try is taken. */
#include "scenarios.h"
#include "steps.h"

#define FIRST_PERMIT KEY ":0"
#define SECOND_PERMIT KEY ":1"

/* A time longer than a run. */
#define LONG_MS 50000

static redlock_request permit_request(void) {
    redlock_request request = app_request(KEY);
    request.permits = 2;
    return request;
}

static struct hold *hold_permit(struct app *app) {
    redlock_request request = permit_request();
    return hold_for(app, &request);
}

/* Returns whether all permits are free, or the application was notified that a key stays. */
static bool are_free(const void *arg) {
    const struct app *app = arg;
    return app->leaves_keys || masters_having(FIRST_PERMIT) + masters_having(SECOND_PERMIT) == 0;
}

static void wait_all_free(const struct app *app) {
    world_wait(are_free, app, "no master has a permit");
}

static void permit(struct app *app) {
    if (!open_connected(app)) {
        return;
    }
    struct hold *hold = hold_permit(app);
    if (hold != NULL) {
        app_extend(hold, 0, true);
        wait_idle(app);
        EXPECT(hold->extended == REDLOCK_OK);
        let_go(hold);
        EXPECT(hold->released == REDLOCK_OK);
    }
    wait_all_free(app);
}

/* Some requests try either of the two permits first. */
static void permit_by_a_second_try(struct app *app) {
    masters_occupy(MASTERS_ALL, FIRST_PERMIT, LONG_MS);
    if (!open_connected(app)) {
        return;
    }
    for (unsigned i = 0; i < 6; i++) {
        struct hold *hold = hold_permit(app);
        if (hold != NULL) {
            EXPECT(masters_having(SECOND_PERMIT) == MASTERS_COUNT);
            let_go(hold);
        }
    }
    masters_forget(MASTERS_ALL, FIRST_PERMIT);
    wait_all_free(app);
}

/* Grants of a permit that is given up for another one are undone. */
static void permit_left_half_taken(struct app *app) {
    masters_occupy(FIRST_TWO, FIRST_PERMIT, LONG_MS);
    masters_occupy(FIRST, SECOND_PERMIT, LONG_MS);
    if (!open_connected(app)) {
        return;
    }
    for (unsigned i = 0; i < 4; i++) {
        struct hold *hold = hold_permit(app);
        if (hold != NULL) {
            let_go(hold);
        }
    }
    masters_forget(FIRST_TWO, FIRST_PERMIT);
    masters_forget(FIRST, SECOND_PERMIT);
    wait_all_free(app);
}

static void permits_are_all_taken(struct app *app) {
    redlock_request request = permit_request();
    request.retries = 2;
    masters_occupy(FIRST_TWO, FIRST_PERMIT, LONG_MS);
    masters_occupy(FIRST_TWO, SECOND_PERMIT, LONG_MS);
    if (open_connected(app)) {
        acquire_in_vain(app, &request, REDLOCK_EHELD);
        masters_forget(FIRST_TWO, FIRST_PERMIT);
        masters_forget(FIRST_TWO, SECOND_PERMIT);
        wait_all_free(app);
    }
}

static void permit_waited_for(struct app *app) {
    redlock_request request = permit_request();
    request.wait_ms = 5000;
    masters_occupy(MASTERS_ALL, FIRST_PERMIT, LONG_MS);
    masters_occupy(MASTERS_ALL, SECOND_PERMIT, 30);
    if (open_connected(app)) {
        struct hold *hold = hold_for(app, &request);
        if (hold != NULL) {
            let_go(hold);
        }
    }
}

static void canceled_on_the_way_to_another(struct app *app) {
    redlock_request request = permit_request();
    masters_occupy(FIRST_TWO, FIRST_PERMIT, LONG_MS);
    masters_occupy(FIRST_TWO, SECOND_PERMIT, LONG_MS);
    request.wait_ms = REDLOCK_FOREVER;
    struct hold *hold = open_connected(app) ? app_acquire(app, &request) : NULL;
    if (hold != NULL) {
        wait_asked(3);
        masters_forget(FIRST_TWO, FIRST_PERMIT);
        masters_forget(FIRST_TWO, SECOND_PERMIT);
        if (hold->stage == HOLD_ACQUIRING) {
            app_cancel(hold);
        }
        wait_idle(app);
        let_go(hold);
        wait_all_free(app);
    }
}

static void closed_on_the_way_to_another(struct app *app) {
    redlock_request request = permit_request();
    masters_occupy(MASTERS_ALL, FIRST_PERMIT, LONG_MS);
    if (open_connected(app)) {
        for (unsigned i = 0; i < 4; i++) {
            app_acquire(app, &request);
        }
        wait_asked(4);
        close_and_wait(app);
    }
}

/* The permit has a lock's fence, renewals and top-ups. */
static void fenced_permit_without_scripts(struct app *app) {
    redlock_request request = permit_request();
    request.fenced = true;
    if (!open_connected(app)) {
        return;
    }
    for (unsigned i = 0; i < 2; i++) {
        struct hold *hold = hold_for(app, &request);
        masters_forget_scripts(MASTERS_ALL);
        if (hold != NULL) {
            CHECK(redlock_fence(hold->lock) > 0);
            masters_forget(FIRST, redlock_key(hold->lock, NULL));
            app_extend(hold, 0, true);
            wait_idle(app);
            world_pass_ms(2);
            let_go(hold);
        }
    }
    wait_all_free(app);
}

static const struct scenario scenarios[] = {
    ON_SOCKETS(permit),
    ON_SOCKETS(permit_by_a_second_try),
    ON_SOCKETS(permit_left_half_taken),
    ON_SOCKETS(permits_are_all_taken),
    ON_SOCKETS(permit_waited_for),
    ON_SOCKETS(canceled_on_the_way_to_another),
    ON_SOCKETS(closed_on_the_way_to_another),
    ON_SOCKETS(fenced_permit_without_scripts),
};

const struct theme theme_permits = THEME(scenarios);
