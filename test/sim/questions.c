/*
 * Crowds of questions about keys that no other process wants. Their bursts keep the queues of slow
 * nodes full for seconds, so that commands of locks run into the bounds.
 */
#include "worker.h"

#include <inttypes.h>
#include <stdlib.h>

/* Number of such keys of each process. */
#define KEYS_OF_ITS_OWN 64

static void on_view(redlock_status status, const redlock_view *view, void *arg) {
    struct app *app = arg;
    struct world *world = app_world(app);
    if (app->is_calling || running != &app->process || app->client == NULL ||
        app->questions_out == 0) {
        violate(world, INVARIANT_CALLBACKS, "on_view of a crowd was called at a wrong time");
        return;
    }
    app->questions_out--;
    if ((status == REDLOCK_ECLOSED) != app->is_closing ||
        (status != REDLOCK_OK && status != REDLOCK_ENOQUORUM && status != REDLOCK_ECLOSED)) {
        violate(world, INVARIANT_CALLBACKS, "on_view of a crowd: %s", redlock_status_name(status));
    } else if (status == REDLOCK_OK && view->held) {
        violate(world, INVARIANT_LOOKS, "somebody holds a key that nobody wants");
    }
}

static void ask(struct app *app) {
    char key[32];
    snprintf(key, sizeof(key), "own:%u:%" PRIu64, app->process.index,
             app_draw(app, KEYS_OF_ITS_OWN));
    app_begin_call(app);
    redlock_status status = redlock_inspect(app->client, key, 0, on_view, app);
    app_end_call(app);
    app->questions_out += status == REDLOCK_OK;
    if (status != REDLOCK_OK && (status != REDLOCK_ENOMEM || app->process.failed == 0)) {
        violate(app_world(app), INVARIANT_CALLBACKS, "a question was refused: %s",
                redlock_status_name(status));
    }
}

/* Returns slightly more than the number of questions that some node still accepts. */
static unsigned size_of(const struct app *app) {
    redlock_node_info infos[SERVERS_MAX];
    size_t count = redlock_client_nodes(app->client, infos, SERVERS_MAX);
    uint32_t least = app->plan->options.max_commands;
    for (size_t i = 0; i < count; i++) {
        least = infos[i].connected && infos[i].commands < least ? infos[i].commands : least;
    }
    return app->plan->options.max_commands - least + app->plan->questions;
}

static void on_alarm(void *owner) {
    struct app *app = owner;
    if (app->client == NULL || app->is_closing || app->phase != PHASE_FAULTS) {
        return;
    }
    unsigned size = size_of(app);
    TRACE(app_world(app), "process %u: a crowd of %u", app->process.index, size);
    for (unsigned i = 0; i < size; i++) {
        ask(app);
    }
    questions_come(app);
}

void questions_init(struct app *app) {
    alarm_init(&app->questions, &app->process, on_alarm, app);
}

void questions_come(struct app *app) {
    if (app->plan->questions > 0 && app_is_hurried(app)) {
        alarm_set(&app->questions,
                  app_world(app)->now + app_draw(app, app->plan->questions_every) + MS);
    }
}

void questions_end(struct app *app) {
    alarm_clear(&app->questions);
    app->questions_out = 0;
}
