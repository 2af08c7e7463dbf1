/* Readers, and writers that wait for them, all by scripts. */
#include "scenarios.h"
#include "steps.h"

static struct hold *hold_as(struct app *app, redlock_mode mode) {
    redlock_request request = app_request(KEY);
    request.mode = mode;
    return hold_for(app, &request);
}

static void shared(struct app *app) {
    struct hold *first = open_connected(app) ? hold_as(app, REDLOCK_READER) : NULL;
    struct hold *second = first != NULL ? hold_as(app, REDLOCK_READER) : NULL;
    if (second == NULL) {
        return;
    }
    let_go(first);
    app_extend(second, 0, true);
    wait_idle(app);
    EXPECT(second->extended == REDLOCK_OK);
    EXPECT(masters_having(KEY) == 3);
    let_go(second);
    wait_free(app);
}

/* The shares are acquired, released and acquired again in one turn of the loop. */
static void shared_by_many_at_once(struct app *app) {
    redlock_request request = app_request(KEY);
    struct hold *holds[4] = {NULL};
    request.mode = REDLOCK_READER;
    if (!open_connected(app)) {
        return;
    }
    for (unsigned i = 0; i < 4; i++) {
        holds[i] = app_acquire(app, &request);
    }
    if (holds[0] != NULL) {
        app_cancel(holds[0]);
    }
    wait_idle(app);
    for (unsigned i = 1; i < 4; i++) {
        if (holds[i] != NULL) {
            EXPECT(holds[i]->stage == HOLD_HELD);
            let_go(holds[i]);
        }
    }
    wait_free(app);
}

static void written_when_readers_have_gone(struct app *app) {
    redlock_request request = app_request(KEY);
    struct hold *reader = open_connected(app) ? hold_as(app, REDLOCK_READER) : NULL;
    request.mode = REDLOCK_WRITER;
    request.retries = 100;
    struct hold *writer = reader != NULL ? app_acquire(app, &request) : NULL;
    if (writer == NULL) {
        return;
    }
    wait_asked(6);
    let_go(reader);
    wait_idle(app);
    EXPECT(writer->stage == HOLD_HELD);
    if (writer->stage != HOLD_HELD) { /* its handle is gone */
        return;
    }
    app_extend(writer, 0, true);
    wait_idle(app);
    EXPECT(writer->extended == REDLOCK_OK);
    let_go(writer);
    wait_free(app);
}

static void written_with_a_fence(struct app *app) {
    redlock_request request = app_request(KEY);
    request.mode = REDLOCK_WRITER;
    request.fenced = true;
    struct hold *hold = open_connected(app) ? hold_for(app, &request) : NULL;
    if (hold != NULL) {
        CHECK(redlock_fence(hold->lock) > 0);
        let_go(hold);
        wait_free(app);
    }
}

static void shared_without_scripts(struct app *app) {
    struct hold *hold = open_connected(app) ? hold_as(app, REDLOCK_READER) : NULL;
    if (hold == NULL) {
        return;
    }
    masters_forget_scripts(MASTERS_ALL);
    app_extend(hold, 0, true);
    wait_idle(app);
    EXPECT(hold->extended == REDLOCK_OK);
    let_go(hold);
    wait_free(app);
    masters_forget_scripts(MASTERS_ALL);
    hold = hold_as(app, REDLOCK_READER);
    if (hold != NULL) {
        let_go(hold);
    }
}

static void shared_and_topped_up(struct app *app) {
    struct hold *hold = open_connected(app) ? hold_as(app, REDLOCK_READER) : NULL;
    if (hold == NULL) {
        return;
    }
    masters_forget(FIRST, KEY);
    masters_forget(FIRST, KEY "::readers");
    app_extend(hold, 0, true);
    wait_idle(app);
    world_pass_ms(2);
    EXPECT(masters_having(KEY) == 3);
    let_go(hold);
}

/* The share's release is pending, and done when the node is back. */
static void shared_with_a_node_that_was_away(struct app *app) {
    struct hold *hold = open_connected(app) ? hold_as(app, REDLOCK_READER) : NULL;
    if (hold == NULL) {
        return;
    }
    masters_stop(FIRST);
    let_go(hold);
    masters_start(FIRST);
    wait_connected(app);
    wait_free(app);
}

static const struct scenario scenarios[] = {
    ON_SOCKETS(shared),
    ON_SOCKETS(shared_by_many_at_once),
    ON_SOCKETS(written_when_readers_have_gone),
    ON_SOCKETS(written_with_a_fence),
    ON_SOCKETS(shared_without_scripts),
    ON_SOCKETS(shared_and_topped_up),
    ON_SOCKETS(shared_with_a_node_that_was_away),
};

const struct theme theme_sharing = THEME(scenarios);
