/* Clients that are created, nodes that go. */
#include "scenarios.h"
#include "steps.h"

/* ---- the life of a client ---- */

static void create_and_close(struct app *app) {
    if (app_open(app)) {
        close_and_wait(app);
    }
}

static void connect_and_close(struct app *app) {
    if (open_connected(app)) {
        close_and_wait(app);
    }
}

static void connect_by_number(struct app *app) {
    struct hold *hold = begin_held(app);
    if (hold != NULL) {
        let_go(hold);
    }
}

#if HAS_NAMES
static void connect_by_name(struct app *app) {
    connect_by_number(app);
}
#endif

static void lookup_unanswered(struct app *app) {
    app->uris[0] = masters_uri(0, ADDRESS_ASKED);
    if (app_open(app)) {
        world_pass_ms(200);
        try_in_vain(app, REDLOCK_OK);
        EXPECT(app_connected(app) == 2);
    }
}

static void close_during_the_lookup(struct app *app) {
    app->uris[0] = masters_uri(0, ADDRESS_ASKED);
    if (app_open(app)) {
        world_pass_ms(1);
        close_and_wait(app);
    }
}

static void log_in_and_select(struct app *app) {
    connect_by_number(app);
}

static void login_refused(struct app *app) {
    masters_behave(FIRST, MANNER_LOCKED);
    if (app_open(app)) {
        world_pass_ms(30);
        try_in_vain(app, REDLOCK_OK);
        EXPECT(app_connected(app) == 2);
        masters_behave(FIRST, MANNER_WELL);
        wait_connected(app);
    }
}

static void no_name_and_few_words(struct app *app) {
    app->options.name = NULL;
    app->options.log = NULL;
    app->options.node_count = 1;
    connect_by_number(app);
}

static void two_clients(struct app *apps) {
    struct hold *hold = begin_held(&apps[0]);
    if (!open_connected(&apps[1])) {
        return;
    }
    if (hold != NULL) {
        try_in_vain(&apps[1], REDLOCK_EHELD);
        let_go(hold);
        close_and_wait(&apps[0]);
    }
    struct hold *second = hold_key(&apps[1], "another");
    if (second != NULL) {
        let_go(second);
    }
}

/* ---- connections that end ---- */

static void cut_and_connected_again(struct app *app) {
    struct hold *hold = begin_held(app);
    if (hold != NULL) {
        masters_cut(MASTERS_ALL);
        world_pass_ms(1);
        wait_connected(app);
        let_go(hold);
    }
}

static void reported_when_it_is_ready(struct app *app) {
    if (!app_open(app)) {
        return;
    }
    app_ready(app, 500);
    app_ready(app, REDLOCK_FOREVER);
    wait_idle(app);
    EXPECT(app->seen == REDLOCK_OK);
    masters_behave(FIRST_TWO, MANNER_LOCKED);
    masters_cut(FIRST_TWO);
    world_pass_ms(30);
    app_ready(app, 500);
    wait_idle(app);
    EXPECT(app->seen == REDLOCK_EACCESS);
    masters_behave(FIRST_TWO, MANNER_WELL);
    wait_connected(app);
    masters_behave(FIRST_TWO, MANNER_DEAF);
    masters_cut(FIRST_TWO);
    world_pass_ms(1);
    app_ready(app, 10);
    wait_idle(app);
    EXPECT(app->seen == REDLOCK_ENOQUORUM);
    app_ready(app, REDLOCK_FOREVER);
    close_and_wait(app);
    EXPECT(app->looks == 0 && app->seen == REDLOCK_ECLOSED);
}

static void cut_in_a_round(struct app *app) {
    redlock_request request = app_request(KEY);
    request.retries = 8;
    if (open_connected(app)) {
        masters_behave(MASTERS_ALL, MANNER_MUTE);
        struct hold *hold = app_acquire(app, &request);
        wait_asked(3);
        masters_cut(MASTERS_ALL);
        masters_behave(MASTERS_ALL, MANNER_WELL);
        wait_idle(app);
        if (hold != NULL) {
            let_go(hold);
        }
        wait_free(app);
    }
}

static void cut_in_the_handshake(struct app *app) {
    masters_behave(MASTERS_ALL, MANNER_DEAF);
    if (app_open(app)) {
        redlock_request request = app_request(KEY);
        app_acquire(app, &request);
        world_pass_ms(1);
        masters_cut(MASTERS_ALL);
        masters_behave(MASTERS_ALL, MANNER_WELL);
        wait_idle(app);
        wait_connected(app);
    }
}

static void stalled_and_dropped(struct app *app) {
    struct hold *hold = begin_held(app);
    if (hold != NULL) {
        masters_behave(FIRST, MANNER_DEAF);
        let_go(hold);
        world_pass_ms(80);
        EXPECT(app_connected(app) == 2);
        masters_behave(FIRST, MANNER_WELL);
        wait_connected(app);
        wait_free(app);
    }
}

static const struct scenario scenarios[] = {
#if HAS_NAMES
    AT(NAME, connect_by_name),
#endif
    ON_SOCKETS(create_and_close),
    ON_SOCKETS(connect_and_close),
    AT(NUMBER, connect_by_number),
    ON_SOCKETS(lookup_unanswered),
    ON_SOCKETS(close_during_the_lookup),
    AT(LOGIN, log_in_and_select),
    AT(LOGIN, login_refused),
    ON_SOCKETS(no_name_and_few_words),
    ON_SOCKETS(two_clients),
    ON_SOCKETS(cut_and_connected_again),
    ON_SOCKETS(cut_in_a_round),
    ON_SOCKETS(cut_in_the_handshake),
    ON_SOCKETS(stalled_and_dropped),
    AT(LOGIN, reported_when_it_is_ready),
};

const struct theme theme_connecting = THEME(scenarios);
