/* Nodes are replaced while locks come and go: two of three masters are the first nodes. */
#include "scenarios.h"
#include "steps.h"

#define MAX_TTL_MS 60

/* Makes a connected client of the first two masters. Returns false when it was refused. */
static bool open_two(struct app *app) {
    app->options.node_count = 2;
    app->options.max_ttl_ms = MAX_TTL_MS;
    return open_connected(app);
}

static redlock_request short_request(void) {
    redlock_request request = app_request(KEY);
    request.ttl_ms = MAX_TTL_MS;
    request.watchdog = true;
    return request;
}

static struct hold *hold_at_two(struct app *app) {
    redlock_request request = short_request();
    return open_two(app) ? hold_for(app, &request) : NULL;
}

/* Begins a change to the last two masters. */
static bool change(struct app *app) {
    redlock_status status = app_change_nodes(app, app->uris + 1, 2);
    EXPECT(status == REDLOCK_OK);
    return status == REDLOCK_OK;
}

static void commit(struct app *app) {
    CHECK(app_commit_nodes(app) == REDLOCK_EBUSY);
    world_pass_ms(MAX_TTL_MS + 1);
    CHECK(app_commit_nodes(app) == REDLOCK_OK);
}

static void moved_while_held(struct app *app) {
    struct hold *hold = hold_at_two(app);
    if (hold == NULL || !change(app)) {
        return;
    }
    commit(app);
    world_pass_ms(MAX_TTL_MS);
    EXPECT(hold->stage == HOLD_HELD);
    let_go(hold);
}

static void moved_and_back(struct app *app) {
    struct hold *hold = hold_at_two(app);
    if (hold == NULL || !change(app)) {
        return;
    }
    CHECK(app_change_nodes(app, app->uris, 3) == REDLOCK_EBUSY);
    world_pass_ms(MAX_TTL_MS);
    CHECK(app_abandon_nodes(app) == REDLOCK_OK);
    CHECK(app_abandon_nodes(app) == REDLOCK_EINVAL);
    world_pass_ms(MAX_TTL_MS);
    EXPECT(hold->stage == HOLD_HELD);
    let_go(hold);
}

static void moved_while_it_acquires(struct app *app) {
    redlock_request request = short_request();
    struct hold *hold = open_two(app) ? app_acquire(app, &request) : NULL;
    if (hold == NULL || !change(app)) {
        return;
    }
    wait_idle(app);
    EXPECT(hold->stage == HOLD_HELD);
    world_pass_ms(MAX_TTL_MS);
    let_go(hold);
}

static void left_with_calls_under_way(struct app *app) {
    struct hold *hold = hold_at_two(app);
    if (hold == NULL || !change(app)) {
        return;
    }
    world_pass_ms(MAX_TTL_MS - 10);
    masters_behave(FIRST, MANNER_DEAF);
    if (is_ours(hold)) {
        app_extend(hold, 0, true);
    }
    commit(app);
    wait_idle(app);
    world_pass_ms(MAX_TTL_MS);
    let_go(hold);
}

static void closed_while_joint(struct app *app) {
    if (hold_at_two(app) != NULL && change(app)) {
        world_pass_ms(1);
        close_and_wait(app);
    }
}

static void refused_lists(struct app *app) {
    const char *twice[] = {app->uris[2], app->uris[1], app->uris[2]};
    if (open_two(app)) {
        redlock_status status = app_change_nodes(app, twice, 3);
        EXPECT(status == REDLOCK_EINVAL);
        EXPECT(app_connected(app) == 2);
        CHECK(app_commit_nodes(app) == REDLOCK_EINVAL);
    }
}

static const struct scenario scenarios[] = {
    ON_SOCKETS(moved_while_held),        ON_SOCKETS(moved_and_back),
    ON_SOCKETS(moved_while_it_acquires), ON_SOCKETS(left_with_calls_under_way),
    ON_SOCKETS(closed_while_joint),      ON_SOCKETS(refused_lists),
    AT(NAME, moved_while_held),
};

const struct theme theme_moving = THEME(scenarios);
