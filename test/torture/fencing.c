/* Fenced locks: acquired and renewed by scripts, with counters that are brought to agree. */
#include "scenarios.h"
#include "steps.h"

/* 1.5 days ahead of the masters' clocks: above any hint, and within the bound of counters. */
#define FAR (world_now() / 1000 + UINT64_C(129600000000))

static redlock_request fenced_request(void) {
    redlock_request request = app_request(KEY);
    request.fenced = true;
    return request;
}

/* Acquires a fenced lock with a connected client. */
static struct hold *take_fenced(struct app *app) {
    redlock_request request = fenced_request();
    return hold_for(app, &request);
}

static struct hold *hold_fenced(struct app *app) {
    return open_connected(app) ? take_fenced(app) : NULL;
}

static void fenced(struct app *app) {
    struct hold *hold = hold_fenced(app);
    if (hold == NULL) {
        return;
    }
    uint64_t first = redlock_fence(hold->lock);
    CHECK(first > 0);
    app_extend(hold, 0, true);
    wait_idle(app);
    EXPECT(hold->extended == REDLOCK_OK);
    CHECK(!is_ours(hold) || redlock_fence(hold->lock) == first);
    let_go(hold);
    wait_free(app);
    hold = take_fenced(app);
    if (hold != NULL) {
        CHECK(redlock_fence(hold->lock) > first);
        let_go(hold);
    }
}

/* The counters of the other masters start at the clock's hint, and are raised. */
static void fence_raised(struct app *app) {
    uint64_t far = FAR;
    masters_count(FIRST, KEY, far);
    struct hold *hold = hold_fenced(app);
    if (hold != NULL) {
        uint64_t fence = redlock_fence(hold->lock);
        EXPECT(fence == far + 1);
        let_go(hold);
        wait_free(app);
    }
}

/* Begins to acquire KEY where counters must be raised; returns NULL when refused. */
static struct hold *begin_raised(struct app *app) {
    redlock_request request = fenced_request();
    masters_count(FIRST, KEY, FAR);
    return open_connected(app) ? app_acquire(app, &request) : NULL;
}

static void fence_not_raised_in_time(struct app *app) {
    struct hold *hold = begin_raised(app);
    if (hold != NULL) {
        wait_asked(3);
        masters_behave(FIRST_TWO, MANNER_DEAF);
        wait_idle(app);
        let_go(hold);
    }
}

static void canceled_while_it_is_raised(struct app *app) {
    struct hold *hold = begin_raised(app);
    if (hold != NULL) {
        wait_asked(4);
        if (hold->stage == HOLD_ACQUIRING) {
            app_cancel(hold);
        }
        wait_idle(app);
        let_go(hold);
        wait_free(app);
    }
}

static void fenced_without_scripts(struct app *app) {
    struct hold *hold = hold_fenced(app);
    if (hold == NULL) {
        return;
    }
    let_go(hold);
    wait_free(app);
    masters_forget_scripts(MASTERS_ALL);
    hold = take_fenced(app);
    if (hold != NULL) {
        let_go(hold);
    }
}

static void fenced_and_topped_up(struct app *app) {
    struct hold *hold = hold_fenced(app);
    if (hold == NULL) {
        return;
    }
    masters_forget(FIRST, KEY);
    masters_count(FIRST, KEY, 0);
    app_extend(hold, 0, true);
    wait_idle(app);
    world_pass_ms(2);
    EXPECT(masters_having(KEY) == 3);
    let_go(hold);
}

#define OTHER_KEY "orders:43"

static void several_keys(struct app *app) {
    static const char *const keys[] = {KEY, OTHER_KEY};
    redlock_request request = app_request(NULL);
    request.keys = keys;
    request.key_count = 2;
    struct hold *hold = open_connected(app) ? hold_for(app, &request) : NULL;
    if (hold == NULL) {
        return;
    }
    app_extend(hold, 0, true);
    wait_idle(app);
    redlock_request one = app_request(OTHER_KEY);
    struct hold *late = app_acquire(app, &one);
    wait_idle(app);
    EXPECT(late != NULL && late->acquired == REDLOCK_EHELD);
    if (late != NULL) {
        let_go(late);
    }
    let_go(hold);
    wait_free(app);
    EXPECT(masters_having(OTHER_KEY) == 0);
}

static void confirmed_by_replicas(struct app *app) {
    redlock_request request = app_request(KEY);
    request.wait_replicas = 1;
    struct hold *hold = open_connected(app) ? hold_for(app, &request) : NULL;
    if (hold == NULL) {
        return;
    }
    app_extend(hold, 0, true);
    wait_idle(app);
    EXPECT(hold->extended == REDLOCK_OK);
    let_go(hold);
    wait_free(app);
    request.wait_replicas = 2;
    hold = app_acquire(app, &request);
    wait_idle(app);
    EXPECT(hold != NULL && hold->acquired == REDLOCK_ENOQUORUM);
    if (hold != NULL) {
        let_go(hold);
    }
}

static void stays(struct app *app) {
    redlock_request request = app_request(KEY);
    request.min_hold_ms = request.ttl_ms;
    struct hold *hold = open_connected(app) ? hold_for(app, &request) : NULL;
    app->leaves_keys = true;
    if (hold != NULL) {
        masters_behave(FIRST, MANNER_DEAF);
        let_go(hold);
        wait_idle(app);
        EXPECT(hold->released == REDLOCK_OK);
        EXPECT(masters_having(KEY) == 3);
        masters_behave(FIRST, MANNER_WELL);
        wait_connected(app);
    }
}

static void canceled_before_it_is_sent(struct app *app) {
    redlock_request request = fenced_request();
    if (open_connected(app)) {
        struct hold *given_up = app_acquire(app, &request);
        struct hold *kept = app_acquire(app, &request);
        if (given_up != NULL) {
            app_cancel(given_up);
        }
        wait_idle(app);
        if (kept != NULL) {
            EXPECT(kept->stage == HOLD_HELD);
            let_go(kept);
        }
    }
}

static void inspected(struct app *app) {
    struct hold *hold = hold_fenced(app);
    if (hold == NULL) {
        return;
    }
    uint64_t fence = redlock_fence(hold->lock);
    app_inspect(app, KEY);
    wait_idle(app);
    EXPECT(app->seen == REDLOCK_OK);
    app_check_fence(app, KEY, fence);
    wait_idle(app);
    EXPECT(app->seen == REDLOCK_OK);
    app_check_fence(app, KEY, fence - 1);
    wait_idle(app);
    EXPECT(app->seen == REDLOCK_ELOST);
    masters_forget_scripts(FIRST_TWO);
    masters_behave(FIRST_TWO, MANNER_DEAF);
    app_inspect(app, KEY);
    wait_idle(app);
    EXPECT(app->seen == REDLOCK_ENOQUORUM);
    masters_behave(FIRST_TWO, MANNER_WELL);
    wait_connected(app);
    let_go(hold);
}

static void closed_while_it_is_inspected(struct app *app) {
    if (open_connected(app)) {
        app_inspect(app, KEY);
        app_check_fence(app, KEY, 1);
        close_and_wait(app);
        CHECK(app->looks == 0);
    }
}

static const struct scenario scenarios[] = {
    ON_SOCKETS(fenced),
    ON_SOCKETS(fence_raised),
    ON_SOCKETS(fence_not_raised_in_time),
    ON_SOCKETS(canceled_while_it_is_raised),
    ON_SOCKETS(fenced_without_scripts),
    ON_SOCKETS(fenced_and_topped_up),
    ON_SOCKETS(several_keys),
    ON_SOCKETS(confirmed_by_replicas),
    ON_SOCKETS(stays),
    ON_SOCKETS(canceled_before_it_is_sent),
    ON_SOCKETS(inspected),
    ON_SOCKETS(closed_while_it_is_inspected),
};

const struct theme theme_fencing = THEME(scenarios);
