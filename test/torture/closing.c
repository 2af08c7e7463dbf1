/* A client that is closed in each state of a lock. */
#include "scenarios.h"
#include "steps.h"

static void close_while_acquiring(struct app *app) {
    if (open_connected(app)) {
        struct hold *hold = begin(app);
        close_and_wait(app);
        EXPECT(hold->acquired == REDLOCK_ECLOSED);
    }
}

static void close_with_sets_under_way(struct app *app) {
    if (open_connected(app)) {
        masters_behave(FIRST_TWO, MANNER_MUTE);
        begin(app);
        wait_asked(3);
        close_and_wait(app);
    }
}

static void close_in_the_backoff(struct app *app) {
    masters_occupy(MASTERS_ALL, KEY, 50000);
    if (open_connected(app)) {
        begin(app);
        world_pass_ms(3);
        close_and_wait(app);
    }
}

static void close_while_it_asks_who(struct app *app) {
    redlock_request request = app_request(KEY);
    masters_occupy(FIRST_TWO, KEY, 50000);
    if (open_connected(app)) {
        app_acquire(app, &request);
        world_turn();
        masters_behave(MASTERS_ALL, MANNER_DEAF);
        world_pass_ms(1);
        close_and_wait(app);
    }
}

static void close_while_holding(struct app *app) {
    struct hold *hold = begin_held(app);
    if (hold != NULL) {
        close_and_wait(app);
        EXPECT(hold->losses == 1 && hold->lost == REDLOCK_ECLOSED);
        EXPECT(masters_having(KEY) == 0);
    }
}

static void close_while_extending(struct app *app) {
    struct hold *hold = begin_held(app);
    if (hold != NULL && hold->stage == HOLD_HELD) {
        app_extend(hold, 0, true);
        close_and_wait(app);
        EXPECT(hold->extended == REDLOCK_ECLOSED && hold->lost == REDLOCK_ECLOSED);
    }
}

static void close_while_releasing(struct app *app) {
    struct hold *hold = begin_held(app);
    if (hold != NULL && is_ours(hold)) {
        app_release(hold, true);
        close_and_wait(app);
        EXPECT(hold->released == REDLOCK_OK);
    }
}

static void release_during_a_close(struct app *app) {
    struct hold *hold = begin_held(app);
    if (hold != NULL && is_ours(hold) && !app->is_closing) {
        app_close(app);
        CHECK(app_release(hold, true) == REDLOCK_OK);
        close_and_wait(app);
        EXPECT(hold->losses == 0 && hold->released == REDLOCK_OK);
        EXPECT(masters_having(KEY) == 0);
    }
}

static void release_when_closed(struct hold *hold) {
    if (hold->stage == HOLD_CLOSED) {
        CHECK(app_release(hold, true) == REDLOCK_OK);
    }
}

static void release_inside_the_on_lost_of_a_close(struct app *app) {
    struct hold *hold = begin_held(app);
    if (hold != NULL) {
        hold->then = release_when_closed;
        close_and_wait(app);
        EXPECT(hold->losses == 1 && hold->released == REDLOCK_OK);
    }
}

static bool none_has_it(const void *arg) {
    return masters_having(KEY) == 0 || ((const struct app *)arg)->is_closed;
}

/*
 * One master of three does not answer: no callback has reported the outcome of the close's release.
 */
static void release_what_a_close_has_released(struct app *app) {
    struct hold *hold = begin_held(app);
    if (hold != NULL && !app->is_closing) {
        masters_behave(FIRST, MANNER_MUTE);
        app_close(app);
        world_wait(none_has_it, app, "the close releases the lock");
        world_turn();
        if (!app->is_closed && hold_is_ours(hold)) {
            CHECK(app_release(hold, true) == REDLOCK_OK);
        }
        world_wait(is_closed, app, "the client is closed");
    }
}

static void cancel_during_a_close(struct app *app) {
    if (open_connected(app)) {
        struct hold *hold = begin(app);
        if (hold != NULL && hold->stage == HOLD_ACQUIRING && !app->is_closing) {
            app_close(app);
            CHECK(app_cancel(hold) == REDLOCK_OK);
            close_and_wait(app);
            EXPECT(hold->acquired == REDLOCK_ECANCELED);
        }
    }
}

static void close_with_nodes_that_do_not_answer(struct app *app) {
    struct hold *hold = begin_held(app);
    if (hold != NULL) {
        uint64_t begun = world_now();
        masters_behave(MASTERS_ALL, MANNER_DEAF);
        close_and_wait(app);
        /* By the program's clock, closing waits until the nodes count as stalled, and no longer. */
        EXPECT(world_now() - begun < 2 * app->options.stall_timeout_ms * 1000000);
        EXPECT(world_now() - begun < app->options.close_timeout_ms * 1000000);
    }
}

static void close_with_pending_releases(struct app *app) {
    struct hold *hold = begin_held(app);
    if (hold != NULL) {
        masters_stop(MASTERS_ALL);
        let_go(hold);
        close_and_wait(app);
    }
}

static const struct scenario scenarios[] = {
    ON_SOCKETS(close_while_acquiring),
    ON_SOCKETS(close_with_sets_under_way),
    ON_SOCKETS(close_in_the_backoff),
    ON_SOCKETS(close_while_it_asks_who),
    ON_SOCKETS(close_while_holding),
    ON_SOCKETS(close_while_extending),
    ON_SOCKETS(close_while_releasing),
    ON_SOCKETS(close_with_nodes_that_do_not_answer),
    ON_SOCKETS(close_with_pending_releases),
    ON_SOCKETS(release_during_a_close),
    ON_SOCKETS(release_inside_the_on_lost_of_a_close),
    ON_SOCKETS(release_what_a_close_has_released),
    ON_SOCKETS(cancel_during_a_close),
};

const struct theme theme_closing = THEME(scenarios);
