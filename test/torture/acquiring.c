/* Requests that succeed, wait, fail, or are canceled. */
#include "scenarios.h"
#include "steps.h"

#include <stdlib.h>
#include <string.h>

/* ---- acquiring ---- */

static void acquire_before_connected(struct app *app) {
    if (app_open(app)) {
        struct hold *hold = hold_key(app, KEY);
        if (hold != NULL) {
            let_go(hold);
            EXPECT(hold->released == REDLOCK_OK);
        }
    }
}

static void acquire_and_release(struct app *app) {
    struct hold *hold = begin_held(app);
    if (hold != NULL) {
        let_go(hold);
        EXPECT(hold->released == REDLOCK_OK);
        wait_free(app);
    }
}

static void acquire_again_and_again(struct app *app) {
    if (open_connected(app)) {
        for (unsigned i = 0; i < 4; i++) {
            struct hold *hold = hold_key(app, KEY);
            if (hold != NULL) {
                let_go(hold);
            }
        }
    }
}

static void release_unheard(struct app *app) {
    struct hold *hold = begin_held(app);
    if (hold != NULL) {
        CHECK(!is_ours(hold) || app_release(hold, false) == REDLOCK_OK);
        wait_free(app);
    }
}

static void acquire_without_a_handle(struct app *app) {
    redlock_request request = app_request(KEY);
    if (open_connected(app)) {
        struct hold *hold = app_acquire_blindly(app, &request);
        if (hold != NULL) {
            wait_idle(app);
            let_go(hold);
        }
    }
}

static void denied(struct app *app) {
    masters_occupy(MASTERS_ALL, KEY, 50000);
    if (open_connected(app)) {
        try_in_vain(app, REDLOCK_EHELD);
        CHECK(masters_having(KEY) == MASTERS_COUNT);
    }
}

static void denied_and_undone(struct app *app) {
    masters_occupy(FIRST_TWO, KEY, 50000);
    if (open_connected(app)) {
        try_in_vain(app, REDLOCK_EHELD);
        masters_forget(FIRST_TWO, KEY);
        wait_free(app);
    }
}

static void denied_until_free(struct app *app) {
    redlock_request request = app_request(KEY);
    request.wait_ms = 5000;
    masters_occupy(MASTERS_ALL, KEY, 30);
    if (open_connected(app)) {
        struct hold *hold = hold_for(app, &request);
        if (hold != NULL) {
            let_go(hold);
        }
    }
}

static void denied_too_often(struct app *app) {
    redlock_request request = app_request(KEY);
    request.retries = 3;
    masters_occupy(FIRST_TWO, KEY, 50000);
    if (open_connected(app)) {
        acquire_in_vain(app, &request, REDLOCK_EHELD);
    }
}

static void waited_too_long(struct app *app) {
    redlock_request request = app_request(KEY);
    request.wait_ms = 15;
    masters_occupy(MASTERS_ALL, KEY, 50000);
    if (open_connected(app)) {
        acquire_in_vain(app, &request, REDLOCK_EHELD);
    }
}

static void no_quorum_in_time(struct app *app) {
    if (open_connected(app)) {
        masters_behave(FIRST_TWO, MANNER_MUTE);
        try_in_vain(app, REDLOCK_ENOQUORUM);
        masters_behave(FIRST_TWO, MANNER_WELL);
        wait_free(app);
    }
}

static void no_quorum_is_up(struct app *app) {
    masters_stop(FIRST_TWO);
    if (app_open(app)) {
        try_in_vain(app, REDLOCK_ENOQUORUM);
        masters_start(FIRST_TWO);
        wait_connected(app);
    }
}

static void refused_by_number(struct app *app) {
    no_quorum_is_up(app);
}

static void retried_without_a_quorum(struct app *app) {
    redlock_request request = app_request(KEY);
    request.retries = 2;
    if (open_connected(app)) {
        masters_stop(FIRST_TWO);
        acquire_in_vain(app, &request, REDLOCK_ENOQUORUM);
    }
}

static void errors_for_answers(struct app *app) {
    masters_behave(FIRST_TWO, MANNER_ERROR);
    if (open_connected(app)) {
        try_in_vain(app, REDLOCK_ENOQUORUM);
    }
}

static void nonsense_for_answers(struct app *app) {
    masters_behave(FIRST_TWO, MANNER_NONSENSE);
    if (open_connected(app)) {
        try_in_vain(app, REDLOCK_ENOQUORUM);
    }
}

static void hold_long_key(struct app *app, size_t length) {
    redlock_request request = app_request(NULL);
    char *key = malloc(length);
    CHECK(key != NULL);
    memset(key, 'k', length);
    request.key = key;
    request.key_length = length;
    struct hold *hold = open_connected(app) ? hold_for(app, &request) : NULL;
    free(key);
    if (hold != NULL) {
        app_extend(hold, 0, true);
        wait_idle(app);
        let_go(hold);
    }
}

static void long_key(struct app *app) {
    hold_long_key(app, 300);
}

static void longest_key(struct app *app) {
    hold_long_key(app, REDLOCK_MAX_KEY);
}

/* ---- canceling ---- */

static void cancel(struct hold *hold) {
    if (hold != NULL && hold->stage == HOLD_ACQUIRING) {
        redlock_status status = app_cancel(hold);
        wait_idle(hold->app);
        EXPECT(status == REDLOCK_OK && hold->acquired == REDLOCK_ECANCELED);
    }
}

static void cancel_before_connected(struct app *app) {
    if (app_open(app)) {
        cancel(begin(app));
        masters_cut(MASTERS_ALL);
        wait_connected(app);
    }
}

static void cancel_at_once(struct app *app) {
    if (open_connected(app)) {
        cancel(begin(app));
        world_pass_ms(5);
        wait_free(app);
    }
}

static void cancel_under_way(struct app *app) {
    if (open_connected(app)) {
        masters_behave(FIRST_TWO, MANNER_MUTE);
        struct hold *hold = begin(app);
        wait_asked(3);
        cancel(hold);
        masters_behave(FIRST_TWO, MANNER_WELL);
        wait_free(app);
    }
}

static void cancel_in_the_backoff(struct app *app) {
    app->options.retry_delay_ms = app->options.retry_delay_max_ms = 500;
    masters_occupy(MASTERS_ALL, KEY, 50000);
    if (open_connected(app)) {
        struct hold *hold = begin(app);
        wait_asked(3);
        world_pass_ms(1);
        cancel(hold);
    }
}

/*
 * Cancels in the DIAGNOSE round: the masters deny, and then do not answer the question for their
 * holder.
 */
static void cancel_while_it_asks_who(struct app *app) {
    redlock_request request = app_request(KEY);
    masters_occupy(FIRST_TWO, KEY, 50000);
    if (open_connected(app)) {
        struct hold *hold = app_acquire(app, &request);
        if (hold == NULL) {
            return;
        }
        world_turn();
        masters_behave(MASTERS_ALL, MANNER_DEAF);
        world_pass_ms(1);
        cancel(hold);
        masters_behave(MASTERS_ALL, MANNER_WELL);
        masters_forget(FIRST_TWO, KEY);
        wait_free(app);
    }
}

/* Cancels the first lock, in a callback of another one, in the turn in which it was denied. */
static void cancel_first(struct hold *hold) {
    struct hold *first = &hold->app->holds[0];
    if (first->stage == HOLD_ACQUIRING) {
        app_cancel(first);
    }
}

static void cancel_inside_on_acquired_of_another(struct app *app) {
    redlock_request request = app_request(KEY);
    masters_occupy(FIRST_TWO, KEY, 50000);
    if (open_connected(app)) {
        app_acquire(app, &request);
        request.key = "another";
        struct hold *hold = app_acquire(app, &request);
        if (hold != NULL) {
            hold->then = cancel_first;
        }
        wait_idle(app);
        masters_forget(FIRST_TWO, KEY);
        wait_free(app);
    }
}

static const struct scenario scenarios[] = {
    AT(NUMBER, refused_by_number),
    ON_SOCKETS(acquire_before_connected),
    ON_SOCKETS(acquire_and_release),
    ON_SOCKETS(acquire_again_and_again),
    ON_SOCKETS(release_unheard),
    ON_SOCKETS(acquire_without_a_handle),
    ON_SOCKETS(denied),
    ON_SOCKETS(denied_and_undone),
    ON_SOCKETS(denied_until_free),
    ON_SOCKETS(denied_too_often),
    ON_SOCKETS(waited_too_long),
    ON_SOCKETS(no_quorum_in_time),
    ON_SOCKETS(no_quorum_is_up),
    ON_SOCKETS(retried_without_a_quorum),
    ON_SOCKETS(errors_for_answers),
    ON_SOCKETS(nonsense_for_answers),
    ON_SOCKETS(long_key),
    ON_SOCKETS(longest_key),
    ON_SOCKETS(cancel_before_connected),
    ON_SOCKETS(cancel_at_once),
    ON_SOCKETS(cancel_under_way),
    ON_SOCKETS(cancel_in_the_backoff),
    ON_SOCKETS(cancel_while_it_asks_who),
    ON_SOCKETS(cancel_inside_on_acquired_of_another),
};

const struct theme theme_acquiring = THEME(scenarios);
