#include "app.h"

#include "network.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void act(struct worker *worker);
static void be_born(void *owner);

static struct world *world_of(const struct app *app) {
    return app->process.world;
}

static uint64_t draw(struct app *app, uint64_t below) {
    return rng_below(&world_of(app)->rng, below);
}

static bool chance(struct app *app, unsigned per_mille) {
    return rng_chance(&world_of(app)->rng, per_mille);
}

static uint64_t reading(const struct app *app) {
    return tempo_read(&app->process.clock, world_of(app)->now);
}

/* What it does next, it does within so many milliseconds. */
static void act_within(struct worker *worker, uint64_t ms) {
    alarm_set(&worker->alarm, world_of(worker->app)->now + draw(worker->app, ms * MS) + 1);
}

/* ---- requests, and the contract of their callbacks ---- */

static struct record *expect(struct worker *worker) {
    struct app *app = worker->app;
    struct record *record = calloc(1, sizeof(*record));
    if (record == NULL) {
        abort();
    }
    *record = (struct record){.app = app,
                              .worker = worker,
                              .life = app->process.life,
                              .is_open = true,
                              .asked_at = reading(app)};
    STAILQ_INSERT_TAIL(&app->records, record, link);
    return record;
}

/* The call was refused: no callback will come. */
static void expect_nothing(struct record *record) {
    record->is_open = false;
}

static void begin_call(struct app *app) {
    app->is_calling = true;
}

static void end_call(struct app *app) {
    app->is_calling = false;
}

/* What must be true of each callback. False: it was not, and the run is over. */
static bool arrive(struct record *record, const char *what, redlock_status status) {
    struct app *app = record->app;
    struct world *world = world_of(app);
    TRACE(world, "process %u worker %u: %s: %s", app->process.index, record->worker->index, what,
          redlock_status_name(status));
    if (!record->is_open) {
        violate(world, INVARIANT_CALLBACKS, "%s was called again", what);
    } else if (app->is_calling || running != &app->process) {
        violate(world, INVARIANT_CALLBACKS, "%s was called inside a call", what);
    } else if (record->life != app->process.life || app->client == NULL) {
        violate(world, INVARIANT_CALLBACKS, "%s was called after its client had ended", what);
    } else if ((status == REDLOCK_ECLOSED) && !app->is_closing) {
        violate(world, INVARIANT_CALLBACKS, "%s: ECLOSED without a close", what);
    } else if (status == REDLOCK_ECANCELED && !record->was_canceled) {
        violate(world, INVARIANT_CALLBACKS, "%s: ECANCELED without a cancel", what);
    } else if (status == REDLOCK_ENOMEM && app->process.failed == 0) {
        violate(world, INVARIANT_CALLBACKS, "%s: ENOMEM without a failed allocation", what);
    }
    record->is_open = false;
    return !world->violated;
}

/* A callback may call anything: once in a while it does. */
static void be_rash(struct worker *worker) {
    struct app *app = worker->app;
    if (app->phase == PHASE_FAULTS && chance(app, 200)) {
        struct worker *other = &app->workers[draw(app, app->plan->workers)];
        act(chance(app, 500) ? worker : other);
    }
}

/* ---- callbacks ---- */

static void forget_lock(struct worker *worker) {
    if (worker->is_held) {
        check_unheld(&worker->hold);
    }
    worker->is_held = false;
    worker->lock = NULL;
    worker->acquires = worker->extends = worker->losses = NULL;
}

static bool fits_acquisition(redlock_status status) {
    switch (status) {
    case REDLOCK_OK:
    case REDLOCK_EHELD:
    case REDLOCK_ENOQUORUM:
    case REDLOCK_EEXPIRED:
    case REDLOCK_ECANCELED:
    case REDLOCK_ECLOSED:
    case REDLOCK_ENOMEM:
        return true;
    default:
        return false;
    }
}

static void on_acquired(redlock_lock *lock, redlock_status status, void *arg) {
    struct record *record = arg;
    struct worker *worker = record->worker;
    struct app *app = record->app;
    if (!arrive(record, "on_acquired", status)) {
        return;
    }
    if (lock != worker->lock || !fits_acquisition(status)) {
        violate(world_of(app), INVARIANT_CALLBACKS, "on_acquired: wrong lock or status %s",
                redlock_status_name(status));
    }
    worker->acquires = NULL;
    if (status == REDLOCK_OK) {
        check_held(&worker->hold, &app->process, lock, worker->key, record->min_validity);
        worker->is_held = true;
        act_within(worker, app->phase == PHASE_LAST ? 5 : app->plan->hold_ms);
    } else {
        app->checker->failed++;
        expect_nothing(worker->losses);
        check_over(&app->process, lock);
        if (redlock_explain(lock)[0] == '\0') {
            violate(world_of(app), INVARIANT_CALLBACKS, "a failure without an explanation");
        }
        forget_lock(worker);
        act_within(worker, app->plan->think_ms);
    }
    be_rash(worker);
}

static void on_extended(redlock_lock *lock, redlock_status status, void *arg) {
    struct record *record = arg;
    struct worker *worker = record->worker;
    if (!arrive(record, "on_extended", status)) {
        return;
    }
    (void)lock;
    if (worker->extends == record) {
        worker->extends = NULL;
    }
    if (status == REDLOCK_OK) {
        check_extended(&worker->hold, record->asked_at);
    }
    be_rash(worker);
}

static void on_lost(redlock_lock *lock, redlock_status status, void *arg) {
    struct record *record = arg;
    struct worker *worker = record->worker;
    struct app *app = record->app;
    if (!arrive(record, "on_lost", status) || status == REDLOCK_ECLOSED) {
        return;
    }
    if (redlock_validity_ms(lock) != 0) {
        violate(world_of(app), INVARIANT_CALLBACKS, "on_lost: the lock still claims validity");
    }
    if (status == REDLOCK_EEXPIRED) {
        check_expired(&worker->hold);
    }
    act_within(worker, app->plan->think_ms); /* to release it */
    be_rash(worker);
}

static void on_released(redlock_lock *lock, redlock_status status, void *arg) {
    struct record *record = arg;
    struct app *app = record->app;
    if (!arrive(record, "on_released", status)) {
        return;
    }
    (void)lock;
    app->checker->released += status == REDLOCK_OK;
    be_rash(record->worker);
}

static void on_closed(void *arg) {
    struct record *record = arg;
    struct app *app = record->app;
    struct world *world = world_of(app);
    if (!arrive(record, "on_closed", REDLOCK_OK)) {
        return;
    }
    STAILQ_FOREACH(record, &app->records, link) {
        if (record->is_open && record->life == app->process.life) {
            violate(world, INVARIANT_CALLBACKS, "the client has ended without a callback");
        }
    }
    if (app->process.block_count != 0) {
        violate(world, INVARIANT_BOUNDS, "the client has ended and left %zu bytes",
                app->process.bytes);
    }
    app->client = NULL;
    app->is_closing = false;
    app->process.life++;
    if (app->phase != PHASE_END) {
        alarm_set(&app->rebirth, world->now + draw(app, 100 * MS) + 1);
    }
}

/* ---- calls ---- */

static void close_client(struct app *app) {
    if (app->client == NULL || app->is_closing) {
        return;
    }
    TRACE(world_of(app), "process %u closes its client", app->process.index);
    for (unsigned i = 0; i < app->plan->workers; i++) {
        struct worker *worker = &app->workers[i];
        if (worker->is_held) {
            check_unheld(&worker->hold);
            worker->is_held = false;
        }
        alarm_clear(&worker->alarm);
    }
    app->is_closing = true;
    begin_call(app);
    redlock_client_close(app->client, on_closed, expect(&app->workers[0]));
    end_call(app);
}

/* Mostly none; else something, or almost all of the TTL. */
static uint64_t draw_min_validity_ms(struct app *app, uint64_t ttl_ms) {
    uint64_t most = ttl_ms - (uint64_t)((double)ttl_ms * app->plan->options.drift) - 3;
    switch (draw(app, 12)) {
    case 0:
        return draw(app, most);
    case 1:
        return most - draw(app, 20);
    default:
        return 0;
    }
}

static void acquire(struct worker *worker) {
    struct app *app = worker->app;
    const struct plan *plan = app->plan;
    redlock_request request = REDLOCK_REQUEST_INIT;
    bool is_last = app->phase == PHASE_LAST;
    worker->key = (unsigned)(is_last ? worker->index % plan->keys : draw(app, plan->keys));
    request.key = app->checker->keys[worker->key];
    request.ttl_ms = plan->ttl_least_ms + draw(app, plan->ttl_most_ms - plan->ttl_least_ms + 1);
    if (is_last) {
        request.wait_ms = REDLOCK_FOREVER;
    } else {
        request.wait_ms = chance(app, 500) ? 1 + draw(app, 1000) : 0;
        request.retries = chance(app, 300) ? (uint32_t)draw(app, 5) : 0;
        request.min_validity_ms = draw_min_validity_ms(app, request.ttl_ms);
    }
    request.watchdog = chance(app, 400);
    request.max_hold_ms = chance(app, 300) ? draw(app, 2000) : 0;
    worker->acquires = expect(worker);
    worker->acquires->min_validity = request.min_validity_ms * MS;
    worker->losses = expect(worker);
    request.on_lost = on_lost;
    request.on_lost_arg = worker->losses;
    uint64_t *asked = &app->checker->asked_ttl_ms[app->process.index][worker->key];
    *asked = *asked > request.ttl_ms ? *asked : request.ttl_ms;
    TRACE(world_of(app), "process %u worker %u: acquire key %u for %" PRIu64 " ms",
          app->process.index, worker->index, worker->key, request.ttl_ms);
    begin_call(app);
    redlock_status status =
        redlock_acquire(app->client, &request, on_acquired, worker->acquires, &worker->lock);
    end_call(app);
    if (status == REDLOCK_OK) {
        if (!is_last && chance(app, 150)) {
            act_within(worker, 1 + draw(app, 100)); /* to cancel it */
        }
        return;
    }
    if (status != REDLOCK_ENOMEM && status != REDLOCK_EINVAL) { /* min_validity may be too much */
        violate(world_of(app), INVARIANT_CALLBACKS, "acquire was refused: %s",
                redlock_status_name(status));
    }
    expect_nothing(worker->acquires);
    expect_nothing(worker->losses);
    forget_lock(worker);
    act_within(worker, plan->think_ms);
}

static void cancel(struct worker *worker) {
    struct app *app = worker->app;
    TRACE(world_of(app), "process %u worker %u: cancel", app->process.index, worker->index);
    worker->acquires->was_canceled = true;
    begin_call(app);
    redlock_status status = redlock_cancel(worker->lock);
    end_call(app);
    /* Refused when the news of the verdict are on their way. */
    if (status != REDLOCK_OK && status != REDLOCK_EINVAL) {
        violate(world_of(app), INVARIANT_CALLBACKS, "cancel was refused: %s",
                redlock_status_name(status));
    }
}

static void extend(struct worker *worker) {
    struct app *app = worker->app;
    const struct plan *plan = app->plan;
    uint64_t ttl = chance(app, 300)
                       ? 0
                       : plan->ttl_least_ms + draw(app, plan->ttl_most_ms - plan->ttl_least_ms + 1);
    uint64_t *asked = &app->checker->asked_ttl_ms[app->process.index][worker->key];
    struct record *record = worker->extends = expect(worker);
    *asked = *asked > ttl ? *asked : ttl;
    TRACE(world_of(app), "process %u worker %u: extend by %" PRIu64, app->process.index,
          worker->index, ttl);
    begin_call(app);
    redlock_status status = redlock_extend(worker->lock, ttl, on_extended, record);
    end_call(app);
    if (status != REDLOCK_OK) {
        expect_nothing(record);
        worker->extends = NULL;
    }
}

static void release(struct worker *worker) {
    struct app *app = worker->app;
    struct record *record = chance(app, 700) ? expect(worker) : NULL;
    if (worker->extends != NULL) {
        worker->extends->was_canceled = true;
    }
    TRACE(world_of(app), "process %u worker %u: release", app->process.index, worker->index);
    check_over(&app->process, worker->lock);
    if (worker->losses->is_open) {
        check_not_lost(&worker->hold);
    }
    begin_call(app);
    redlock_status status =
        redlock_release(worker->lock, record != NULL ? on_released : NULL, record);
    end_call(app);
    if (status != REDLOCK_OK) {
        violate(world_of(app), INVARIANT_CALLBACKS, "release was refused: %s",
                redlock_status_name(status));
    }
    expect_nothing(worker->losses);
    forget_lock(worker);
    worker->has_finished = app->phase == PHASE_LAST;
    act_within(worker, app->plan->think_ms);
}

/* ---- what workers do ---- */

static void act_on_held(struct worker *worker) {
    struct app *app = worker->app;
    redlock_validity_ms(worker->lock);
    if (app->phase != PHASE_FAULTS || chance(app, 450)) {
        release(worker);
        return;
    }
    if (worker->extends == NULL && chance(app, 400)) {
        extend(worker);
    }
    if (worker->lock != NULL) { /* extending may have made nothing of it, but does not call back */
        act_within(worker, app->plan->hold_ms);
    }
}

static void act(struct worker *worker) {
    struct app *app = worker->app;
    if (app->client == NULL || app->is_closing) {
        return;
    }
    if (app->phase == PHASE_FAULTS && chance(app, 3)) {
        close_client(app);
    } else if (worker->is_held) {
        act_on_held(worker);
    } else if (worker->acquires != NULL) {
        cancel(worker);
    } else if (app->phase == PHASE_FAULTS || (app->phase == PHASE_LAST && !worker->has_finished)) {
        acquire(worker);
    }
}

static void on_alarm(void *owner) {
    act(owner);
}

/* ---- clients ---- */

static void on_log(redlock_log_level level, const char *line, void *arg) {
    const struct app *app = arg;
    (void)level;
    TRACE(world_of(app), "process %u: %s", app->process.index, line);
}

static void be_born(void *owner) {
    struct app *app = owner;
    redlock_options options = app->plan->options;
    redlock_error error;
    if (app->client != NULL || app->phase == PHASE_END) {
        return;
    }
    options.nodes = app->nodes;
    options.node_count = app->plan->nodes;
    options.allocator = &app->process.allocator;
    options.log = on_log;
    options.log_arg = app;
    options.log_level = world_of(app)->trace != NULL ? REDLOCK_LOG_DEBUG : REDLOCK_LOG_ERROR;
    begin_call(app);
    redlock_status status = redlock_client_create(&app->process, &options, &app->client, &error);
    end_call(app);
    if (status != REDLOCK_OK && app->process.failed == 0) {
        violate(world_of(app), INVARIANT_CALLBACKS, "no client could be made: %s", error.message);
    } else if (status != REDLOCK_OK) {
        alarm_set(&app->rebirth, world_of(app)->now + 10 * MS);
        return;
    }
    for (unsigned i = 0; i < app->plan->workers; i++) {
        forget_lock(&app->workers[i]);
        act_within(&app->workers[i], app->phase == PHASE_FAULTS ? app->plan->think_ms : 1);
    }
}

static void name_nodes(struct app *app) {
    for (unsigned i = 0; i < app->plan->nodes; i++) {
        bool has_name = app->plan->has_names && i % 2 == 0;
        snprintf(app->uris[i], sizeof(app->uris[i]), "redis://%s%s:%u/%u",
                 app->plan->has_password ? "me:secret@" : "", has_name ? "node1" : "10.0.0.1",
                 7000 + i, app->plan->db);
        app->nodes[i] = app->uris[i];
    }
}

/* It was in the middle of its work, and goes on with it before its loop can tell it anything. */
static void on_awake(void *owner) {
    struct app *app = owner;
    for (unsigned i = 0; i < app->plan->workers; i++) {
        if (app->workers[i].is_held) {
            check_used(&app->workers[i].hold);
        }
    }
}

static void set_up(struct app *app) {
    const struct plan *plan = app->plan;
    task_init(&app->awake, on_awake, app);
    alarm_init(&app->rebirth, &app->process, be_born, app);
    for (unsigned i = 0; i < plan->workers; i++) {
        struct worker *worker = &app->workers[i];
        *worker = (struct worker){.app = app, .index = i};
        alarm_init(&worker->alarm, &app->process, on_alarm, worker);
    }
}

void app_init(struct app *app, const struct plan *plan, struct checker *checker, unsigned index) {
    *app = (struct app){.plan = plan, .checker = checker};
    struct event_base *process = &app->process;
    process_init(process, checker->world, index);
    process->network = checker->network;
    process->on_check = check_process;
    process->lateness = plan->lateness;
    process->preemptions = plan->preemptions;
    process->preempted_for = plan->preempted_for;
    process->failures = plan->failures;
    STAILQ_INIT(&app->records);
    name_nodes(app);
    set_up(app);
    alarm_set(&app->rebirth, checker->world->now + 1);
}

static void drop_records(struct app *app) {
    struct record *record;
    while ((record = STAILQ_FIRST(&app->records)) != NULL) {
        STAILQ_REMOVE_HEAD(&app->records, link);
        free(record);
    }
}

static void die(struct app *app) {
    for (unsigned i = 0; i < app->plan->workers; i++) {
        forget_lock(&app->workers[i]);
    }
    task_cancel(world_of(app), &app->awake);
    network_bury(app->process.network, &app->process);
    process_finish(&app->process);
    drop_records(app);
    app->client = NULL;
    app->is_closing = false;
    app->process.life++;
}

void app_finish(struct app *app) {
    die(app);
}

void app_crash(struct app *app, uint64_t again_at) {
    TRACE(world_of(app), "process %u dies", app->process.index);
    die(app);
    app->process.is_paused = false;
    alarm_set(&app->rebirth, again_at);
}

void app_pause(struct app *app, uint64_t until) {
    TRACE(world_of(app), "process %u is paused for %" PRIu64 " ms", app->process.index,
          (until - world_of(app)->now) / MS);
    process_pause(&app->process, until);
    if (app->plan->cause == CAUSE_PAUSES) {
        task_schedule(world_of(app), &app->awake, until);
    }
}

/* ---- phases ---- */

static void enter(struct worker *worker) {
    struct app *app = worker->app;
    struct world *world = world_of(app);
    if (app->phase == PHASE_SETTLE) {
        act_within(worker, 20);
    } else if (app->phase == PHASE_LAST) {
        alarm_set(&worker->alarm,
                  world->now + 1000 * MS + (app->plan->in_step ? 0 : draw(app, 100 * MS)));
    }
}

void app_enter(struct app *app, enum phase phase) {
    app->phase = phase;
    app->process.failures = app->process.preemptions = 0;
    app->process.lateness = app->plan->in_step ? 0 : app->process.lateness;
    running = &app->process;
    if (phase == PHASE_END) {
        close_client(app);
    } else if (app->client == NULL) {
        alarm_set(&app->rebirth, world_of(app)->now + 1);
    }
    for (unsigned i = 0; i < app->plan->workers && !app->is_closing; i++) {
        enter(&app->workers[i]);
    }
    running = NULL;
}

bool app_has_finished(const struct app *app) {
    for (unsigned i = 0; i < app->plan->workers; i++) {
        if (!app->workers[i].has_finished) {
            return false;
        }
    }
    return true;
}

void app_check_idle(struct app *app) {
    redlock_node_info infos[SERVERS_MAX];
    if (app->client == NULL || app->is_closing) {
        return;
    }
    size_t count = redlock_client_nodes(app->client, infos, SERVERS_MAX);
    for (size_t i = 0; i < count; i++) {
        if (infos[i].commands != 0 || infos[i].bytes != 0 || infos[i].release_debts != 0) {
            violate(world_of(app), INVARIANT_BOUNDS,
                    "process %u is idle, but node %zu has %" PRIu32
                    " commands under way and is owed %zu releases",
                    app->process.index, i, infos[i].commands, infos[i].release_debts);
        }
    }
}

void app_check_end(struct app *app) {
    struct record *record;
    if (app->client != NULL) {
        violate(world_of(app), INVARIANT_CALLBACKS, "process %u: the client does not end",
                app->process.index);
    }
    STAILQ_FOREACH(record, &app->records, link) {
        if (record->is_open) {
            violate(world_of(app), INVARIANT_CALLBACKS, "process %u: a callback never came",
                    app->process.index);
        }
    }
}
