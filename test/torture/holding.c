/* Locks that are held, extended, lost and released. */
#include "scenarios.h"
#include "steps.h"

#include <stdio.h>

/* ---- holding ---- */

static void watchdog_renews(struct app *app) {
    redlock_request request = app_request(KEY);
    request.ttl_ms = 60;
    request.watchdog = true;
    struct hold *hold = open_connected(app) ? hold_for(app, &request) : NULL;
    if (hold != NULL) {
        world_pass_ms(150);
        EXPECT(hold->stage == HOLD_HELD);
        let_go(hold);
    }
}

static void watchdog_ends(struct app *app) {
    redlock_request request = app_request(KEY);
    request.ttl_ms = 60;
    request.watchdog = true;
    request.max_hold_ms = 50;
    struct hold *hold = open_connected(app) ? hold_for(app, &request) : NULL;
    if (hold != NULL) {
        wait_lost(hold);
        CHECK(hold->lost == REDLOCK_EEXPIRED);
        let_go(hold);
    }
}

static void extended(struct app *app) {
    struct hold *hold = begin_held(app);
    if (hold != NULL && hold->stage == HOLD_HELD) {
        app_extend(hold, 20000, true);
        EXPECT(app_extend(hold, 0, true) == REDLOCK_EBUSY);
        wait_idle(app);
        EXPECT(hold->extended == REDLOCK_OK && hold->extensions == 1);
        app_extend(hold, 0, false);
        world_pass_ms(2);
        let_go(hold);
    }
}

static void extended_and_released(struct app *app) {
    struct hold *hold = begin_held(app);
    if (hold != NULL && hold->stage == HOLD_HELD) {
        app_extend(hold, 20000, true);
        let_go(hold);
        EXPECT(hold->extended == REDLOCK_ECANCELED && hold->released == REDLOCK_OK);
        wait_free(app);
    }
}

static void extended_in_vain(struct app *app) {
    struct hold *hold = begin_held(app);
    if (hold != NULL && hold->stage == HOLD_HELD) {
        masters_behave(FIRST_TWO, MANNER_DEAF);
        app_extend(hold, 0, true);
        wait_idle(app);
        EXPECT(hold->extended == REDLOCK_ENOQUORUM);
        masters_behave(FIRST_TWO, MANNER_WELL);
        let_go(hold);
    }
}

static void lost_by_expiry(struct app *app) {
    redlock_request request = app_request(KEY);
    request.ttl_ms = 40;
    struct hold *hold = open_connected(app) ? hold_for(app, &request) : NULL;
    if (hold != NULL) {
        wait_lost(hold);
        CHECK(hold->lost == REDLOCK_EEXPIRED);
        let_go(hold);
    }
}

static void lost_to_another(struct app *app) {
    redlock_request request = app_request(KEY);
    request.ttl_ms = 90;
    request.watchdog = true;
    struct hold *hold = open_connected(app) ? hold_for(app, &request) : NULL;
    if (hold != NULL) {
        masters_occupy(FIRST_TWO, KEY, 50000);
        wait_lost(hold);
        EXPECT(hold->lost == REDLOCK_ELOST);
        let_go(hold);
        EXPECT(hold->released == REDLOCK_ELOST);
    }
}

static void lost_with_the_nodes(struct app *app) {
    redlock_request request = app_request(KEY);
    request.ttl_ms = 60;
    request.watchdog = true;
    struct hold *hold = open_connected(app) ? hold_for(app, &request) : NULL;
    if (hold != NULL) {
        masters_stop(FIRST_TWO);
        wait_lost(hold);
        EXPECT(hold->lost == REDLOCK_EEXPIRED);
        let_go(hold);
    }
}

static bool is_on_all(const void *arg) {
    return masters_having(arg) == MASTERS_COUNT;
}

static void topped_up(struct app *app) {
    struct hold *hold = begin_held(app);
    if (hold != NULL && hold->stage == HOLD_HELD) {
        redlock_request another = app_request("another");
        masters_forget(FIRST, KEY);
        app_extend(hold, 0, true);
        app_acquire(app, &another); /* uses up the library's spare memory */
        wait_idle(app);
        if (faults_struck() == 0) {
            world_wait(is_on_all, KEY, "the node that forgot has the key again");
        }
        let_go(hold);
    }
}

/* ---- releasing ---- */

static void release_many_at_once(struct app *app, unsigned count) {
    redlock_request request = app_request(NULL);
    if (!open_connected(app)) {
        return;
    }
    for (unsigned i = 0; i < count; i++) {
        char key[16];
        snprintf(key, sizeof(key), "many:%u", i);
        request.key = key;
        app_acquire(app, &request);
    }
    wait_idle(app);
    for (unsigned i = 0; i < app->count; i++) {
        if (is_ours(&app->holds[i])) {
            CHECK(app_release(&app->holds[i], true) == REDLOCK_OK);
        }
    }
    wait_idle(app);
    for (unsigned i = 0; i < count; i++) {
        EXPECT(app->holds[i].released == REDLOCK_OK && app->holds[i].stage == HOLD_GONE);
    }
}

static void release_many(struct app *app) {
    release_many_at_once(app, 8);
}

static void release_more_than_one_call_takes(struct app *app) {
    release_many_at_once(app, 70);
}

static void scripts_forgotten(struct app *app) {
    struct hold *hold = begin_held(app);
    if (hold != NULL) {
        masters_forget_scripts(MASTERS_ALL);
        if (hold->stage == HOLD_HELD) {
            app_extend(hold, 0, true);
            wait_idle(app);
            EXPECT(hold->extended == REDLOCK_OK);
        }
        let_go(hold);
        EXPECT(hold->released == REDLOCK_OK);
    }
}

static bool has_no_pending_release(const void *arg) {
    return app_pending_releases((struct app *)(uintptr_t)arg) == 0;
}

static void releases_retried_later(struct app *app) {
    struct hold *hold = begin_held(app);
    if (hold != NULL) {
        masters_stop(FIRST_TWO);
        let_go(hold);
        EXPECT(hold->released == REDLOCK_ENOQUORUM && app_pending_releases(app) == 2);
        masters_start(FIRST_TWO);
        world_wait(has_no_pending_release, app, "the pending releases are answered");
        wait_free(app);
    }
}

static void releases_after_an_error(struct app *app) {
    struct hold *hold = begin_held(app);
    if (hold != NULL) {
        masters_behave(FIRST, MANNER_ERROR);
        let_go(hold);
        world_pass_ms(12);
        masters_behave(FIRST, MANNER_WELL);
        world_wait(has_no_pending_release, app, "the pending releases are answered");
        wait_free(app);
    }
}

/* Two nodes release the key, the third one breaks before it answers. */
static void node_lost_in_a_release(struct app *app) {
    struct hold *hold = begin_held(app);
    if (hold != NULL) {
        masters_behave(FIRST, MANNER_DEAF);
        if (is_ours(hold)) {
            app_release(hold, true);
        }
        world_pass_ms(1);
        masters_cut(FIRST);
        masters_behave(FIRST, MANNER_WELL);
        wait_idle(app);
        wait_free(app);
    }
}

/* ---- watched keys ---- */

static bool is_watched(const void *arg) {
    (void)arg;
    return masters_watching() == MASTERS_COUNT || faults_struck() > 0;
}

/* Acquires KEY with a connected client; all masters watch it unless something has failed. */
static struct hold *begin_watched(struct app *app) {
    redlock_request request = app_request(KEY);
    request.ttl_ms = 9000;
    request.watchdog = true;
    request.watch_key = true;
    struct hold *hold = open_connected(app) ? hold_for(app, &request) : NULL;
    if (hold != NULL) {
        world_wait(is_watched, NULL, "all masters watch the key");
        if (faults_struck() > 0) {
            world_pass_ms(20);
        }
    }
    return hold;
}

static bool has_all(const void *arg) {
    (void)arg;
    return masters_having(KEY) == MASTERS_COUNT || faults_struck() > 0;
}

static void watched_and_topped_up(struct app *app) {
    struct hold *hold = begin_watched(app);
    if (hold != NULL) {
        masters_forget(FIRST, KEY);
        world_wait(has_all, NULL, "the key is set again");
        world_pass_ms(20);
        let_go(hold);
        wait_free(app);
    }
}

static void watched_and_lost(struct app *app) {
    struct hold *hold = begin_watched(app);
    if (hold != NULL) {
        masters_forget(MASTERS_ALL, KEY);
        wait_lost(hold);
        EXPECT(hold->lost == REDLOCK_ELOST);
        let_go(hold);
    }
}

static const struct scenario scenarios[] = {
    ON_SOCKETS(watchdog_renews),
    ON_SOCKETS(watchdog_ends),
    ON_SOCKETS(extended),
    ON_SOCKETS(extended_and_released),
    ON_SOCKETS(extended_in_vain),
    ON_SOCKETS(lost_by_expiry),
    ON_SOCKETS(lost_to_another),
    ON_SOCKETS(lost_with_the_nodes),
    ON_SOCKETS(topped_up),
    ON_SOCKETS(watched_and_topped_up),
    ON_SOCKETS(watched_and_lost),
    ON_SOCKETS(release_many),
    ON_SOCKETS(release_more_than_one_call_takes),
    ON_SOCKETS(scripts_forgotten),
    ON_SOCKETS(releases_retried_later),
    ON_SOCKETS(releases_after_an_error),
    ON_SOCKETS(node_lost_in_a_release),
};

const struct theme theme_holding = THEME(scenarios);
