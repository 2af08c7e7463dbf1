/*
 * A worker's questions: it inspects a key's holder, or whether a fence is still the newest, from
 * timers and inside callbacks. Sometimes it closes the client inside an answer.
 */
#include "worker.h"

#include <inttypes.h>

/* ---- answers ---- */

static void go_on(struct worker *worker) {
    struct app *app = worker->app;
    if (app->phase == PHASE_FAULTS && app_chance(app, 8)) {
        app_close_client(app);
    } else {
        worker_be_rash(worker);
    }
}

/* Checks that without faults a quorum answers, unless so many nodes have late messages. */
static void check_answers(const struct record *record, const redlock_view *view) {
    const struct app *app = record->app;
    unsigned answered = 0;
    for (size_t i = 0; i < view->node_count; i++) {
        answered += view->nodes[i].answered;
    }
    if (app->plan->is_distant && plan_is_calm(app->plan) &&
        app_is_connected(app, record->began_at) && answered < view->node_count / 2 + 1 &&
        check_was_in_reach(&app->process, record->began_at)) {
        violate(app_world(app), INVARIANT_LIVENESS, "only %u of %zu nodes answered process %u",
                answered, view->node_count, app->process.index);
    }
}

static void on_view(redlock_status status, const redlock_view *view, void *arg) {
    struct record *record = arg;
    struct app *app = record->app;
    if (!record_arrive(record, "on_view", status)) {
        return;
    }
    if (status != REDLOCK_OK && status != REDLOCK_ENOQUORUM && status != REDLOCK_ECLOSED) {
        violate(app_world(app), INVARIANT_CALLBACKS, "on_view: wrong status %s",
                redlock_status_name(status));
    }
    if (status == REDLOCK_OK) {
        check_seen(&record->look, &app->process, view);
    } else if (status == REDLOCK_ENOQUORUM) {
        check_answers(record, view);
    }
    go_on(record->worker);
}

static void on_fence(redlock_status status, void *arg) {
    struct record *record = arg;
    struct app *app = record->app;
    if (!record_arrive(record, "on_fence", status)) {
        return;
    }
    switch (status) {
    case REDLOCK_OK:
    case REDLOCK_ELOST:
        check_compared(&record->look, &app->process, status);
        break;
    case REDLOCK_ENOQUORUM:
    case REDLOCK_ECLOSED:
        break;
    default:
        violate(app_world(app), INVARIANT_CALLBACKS, "on_fence: wrong status %s",
                redlock_status_name(status));
    }
    go_on(record->worker);
}

/* ---- questions ---- */

/*
 * Draws a fence: that of the worker's own lock, if it has one; otherwise the key's newest, or an
 * outdated one.
 */
static uint64_t draw_fence(struct worker *worker, unsigned key) {
    struct app *app = worker->app;
    const struct fences *fences = &app->checker->fences[key];
    if (worker->is_held && (worker->hold.keys >> key & 1) && app_chance(app, 700)) {
        return redlock_fence(worker->lock);
    }
    return fences->count > 0 ? fences->list[app_draw(app, fences->count)].number : app_draw(app, 9);
}

static unsigned draw_key(struct worker *worker) {
    struct app *app = worker->app;
    return worker->is_held && app_chance(app, 500) ? worker->hold.key
                                                   : (unsigned)app_draw(app, app->plan->keys);
}

static redlock_status ask(struct worker *worker, struct record *record) {
    struct app *app = worker->app;
    unsigned key = draw_key(worker);
    const char *name = app->checker->keys[key];
    if (app->plan->is_fenced && app_chance(app, 500)) {
        check_asks(&record->look, &app->process, key, draw_fence(worker, key));
        return redlock_check_fence(app->client, name, 0, record->look.fence, on_fence, record);
    }
    check_asks(&record->look, &app->process, key, 0);
    return redlock_inspect(app->client, name, 0, on_view, record);
}

void worker_look(struct worker *worker) {
    struct app *app = worker->app;
    if (app->client == NULL || app->is_closing) {
        return;
    }
    struct record *record = record_expect(worker);
    app_begin_call(app);
    redlock_status status = ask(worker, record);
    app_end_call(app);
    TRACE(app_world(app), "process %u worker %u: looks at key %u, fence %" PRIu64,
          app->process.index, worker->index, record->look.key, record->look.fence);
    if (status != REDLOCK_OK) {
        record_close(record);
    }
    if (status != REDLOCK_OK && (status != REDLOCK_ENOMEM || app->process.failed == 0)) {
        violate(app_world(app), INVARIANT_CALLBACKS, "a question was refused: %s",
                redlock_status_name(status));
    }
}

/* ---- when ---- */

void worker_look_within(struct worker *worker, uint64_t ms) {
    if (ms > 0) {
        alarm_set(&worker->looks, app_world(worker->app)->now + app_draw(worker->app, ms * MS) + 1);
    }
}

static void on_alarm(void *owner) {
    struct worker *worker = owner;
    struct app *app = worker->app;
    if (app->client == NULL || app->is_closing || app->phase == PHASE_QUIESCE) {
        return;
    }
    worker_look(worker);
    worker_look_within(worker, app->plan->look_ms);
}

void looker_init(struct worker *worker) {
    alarm_init(&worker->looks, &worker->app->process, on_alarm, worker);
}
