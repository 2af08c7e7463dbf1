/*
 * A worker waits, acquires a lock, holds it, perhaps extends it, and releases it. Sometimes it
 * cancels, closes the client, or does any of these inside a callback.
 */
#include "worker.h"

#include "lock/lock.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The wait of a reader in a world of brief readers: too short for a second poll. */
#define BRIEF_WAIT_MS 20

/* Schedules the worker's next action within `ms`. */
void worker_act_within(struct worker *worker, uint64_t ms) {
    alarm_set(&worker->alarm, app_world(worker->app)->now + app_draw(worker->app, ms * MS) + 1);
}

static uint64_t reading(const struct app *app) {
    return tempo_read(&app->process.clock, app_world(app)->now);
}

/* ---- requests, and the contract of their callbacks ---- */

struct record *record_expect(struct worker *worker) {
    struct app *app = worker->app;
    struct record *record = calloc(1, sizeof(*record));
    if (record == NULL) {
        abort();
    }
    *record = (struct record){.app = app,
                              .worker = worker,
                              .life = app->process.life,
                              .is_open = true,
                              .asked_at = reading(app),
                              .began_at = app_world(app)->now};
    STAILQ_INSERT_TAIL(&app->records, record, link);
    return record;
}

/* Ends the record of a refused call: no callback will come. */
void record_close(struct record *record) {
    record->is_open = false;
}

/* Checks the rules of every callback. Returns false on a violation, which ends the run. */
bool record_arrive(struct record *record, const char *what, redlock_status status) {
    struct app *app = record->app;
    struct world *world = app_world(app);
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

void worker_be_rash(struct worker *worker) {
    struct app *app = worker->app;
    if (app->phase == PHASE_FAULTS && app_chance(app, 200)) {
        struct worker *other = &app->workers[app_draw(app, app->plan->workers)];
        worker_act(app_chance(app, 500) ? worker : other);
    } else if (app->phase == PHASE_FAULTS && app_chance(app, 30)) {
        worker_look(worker);
    }
}

/* ---- callbacks ---- */

void worker_forget_lock(struct worker *worker) {
    if (worker->is_held) {
        check_unheld(&worker->hold);
    }
    /* The release of a canceled try may be sent after the worker's next request. */
    check_claims_end(&worker->app->process, worker->was_canceled ? WORKERS_MAX : worker->index,
                     worker->claimed);
    worker->claimed = 0;
    worker->is_held = worker->is_releasable = false;
    worker->lock = NULL;
    worker->acquires = worker->extends = worker->losses = NULL;
}

static bool fits_acquisition(redlock_status status) {
    switch (status) {
    case REDLOCK_OK:
    case REDLOCK_EHELD:
    case REDLOCK_ENOQUORUM:
    case REDLOCK_EACCESS:
    case REDLOCK_EEXPIRED:
    case REDLOCK_ECANCELED:
    case REDLOCK_ECLOSED:
    case REDLOCK_ENOMEM:
        return true;
    default:
        return false;
    }
}

static uint32_t mask_of(const struct worker *worker) {
    uint32_t mask = 0;
    for (unsigned i = 0; i < worker->key_count; i++) {
        mask |= UINT32_C(1) << worker->keys[i];
    }
    return mask;
}

/*
 * Draws holds: long ones beside short ones, so that other clients come and go while one relies on
 * its lock.
 */
static uint64_t draw_hold_ms(const struct worker *worker) {
    struct app *app = worker->app;
    const struct plan *plan = app->plan;
    if (app_is_hurried(app)) {
        return plan->cause == CAUSE_KEYS ? 10 : 100;
    }
    if ((plan->has_open && app->process.index == 0) ||
        (plan->has_hung && worker->mode != REDLOCK_READER)) {
        return 50;
    }
    if (plan->extends_soon) {
        return plan_round_trip(plan) / MS;
    }
    return plan->has_long_ttls && !plan->has_hurry && app_chance(app, 600) ? 100 : plan->hold_ms;
}

/*
 * Checks a failure: without faults, a request without a contender gets its lock if its TTL leaves
 * validity, unless two late messages in a row make so many nodes late that no quorum is left.
 */
static void check_failure(const struct worker *worker, const struct record *record,
                          const redlock_lock *lock, redlock_status status) {
    const struct app *app = worker->app;
    const struct plan *plan = app->plan;
    bool is_wanted = status != REDLOCK_ECANCELED && status != REDLOCK_ECLOSED;
    if (plan->is_distant && plan_is_calm(plan) && is_wanted && !record->was_canceled &&
        record->is_ample && !plan->has_min_holds &&
        !check_had_contender(&app->process, worker->claimed, record->began_at) &&
        check_was_in_reach(&app->process, record->began_at)) {
        violate(app_world(app), INVARIANT_LIVENESS,
                "process %u has not got keys %" PRIx32 ", which no other wants: %s",
                app->process.index, worker->claimed, redlock_explain(lock));
    }
}

/* Checks that a failure has an explanation, in which each vote that has a reason gives it. */
static void check_explanation(const struct app *app, const char *text) {
    if (text[0] == '\0' || strstr(text, ": (") != NULL) {
        violate(app_world(app), INVARIANT_CALLBACKS, "a failure without an explanation: \"%s\"",
                text);
    }
}

/*
 * Checks that no node has denied the first request for a key: nobody else can have it. Without
 * memory to release an earlier try, the request's own key may be in its way, and so at a server
 * that is in the list twice, until it is known to be.
 */
static void check_denials(const struct worker *worker, const redlock_lock *lock) {
    const struct app *app = worker->app;
    if (app->plan->permits == 0 && app->process.failed == 0 && !app->plan->has_duplicate &&
        check_is_first(&app->process, worker->claimed) &&
        check_voters(lock, REDLOCK_VOTE_DENIED) != 0) {
        violate(app_world(app), INVARIANT_CALLBACKS,
                "keys %" PRIx32 " are nobody's, but were denied: %s", worker->claimed,
                redlock_explain(lock));
    }
}

static void on_acquired(redlock_lock *lock, redlock_status status, void *arg) {
    struct record *record = arg;
    struct worker *worker = record->worker;
    struct app *app = record->app;
    if (!record_arrive(record, "on_acquired", status)) {
        return;
    }
    if (lock != worker->lock || !fits_acquisition(status)) {
        violate(app_world(app), INVARIANT_CALLBACKS, "on_acquired: wrong lock or status %s",
                redlock_status_name(status));
    } else if (status == REDLOCK_OK && app->is_closing) {
        violate(app_world(app), INVARIANT_CALLBACKS, "on_acquired: OK while the client closes");
    }
    worker->acquires = NULL;
    if (status == REDLOCK_OK) {
        if (app->plan->permits > 0) {
            worker->keys[0] = check_permit(app->checker, lock);
        }
        check_handed_over(&app->process, lock, record->began_at,
                          app->plan->options.max_local_handoffs);
        check_held(&worker->hold, &app->process, lock, mask_of(worker), worker->mode,
                   record->min_validity);
        check_fence(&worker->hold, record->began_at);
        worker->is_held = worker->is_releasable = true;
        worker_act_within(worker, app->phase == PHASE_FAULTS ? draw_hold_ms(worker) : 5);
    } else {
        app->checker->failed++;
        check_failure(worker, record, lock, status);
        record_close(worker->losses);
        check_over(&app->process, lock);
        check_explanation(app, redlock_explain(lock));
        check_denials(worker, lock);
        worker_forget_lock(worker);
        worker_act_within(worker, app_think_ms(app));
    }
    worker_be_rash(worker);
}

static void on_extended(redlock_lock *lock, redlock_status status, void *arg) {
    struct record *record = arg;
    struct worker *worker = record->worker;
    if (!record_arrive(record, "on_extended", status)) {
        return;
    }
    (void)lock;
    if (worker->extends == record) {
        worker->extends = NULL;
    }
    if (status == REDLOCK_OK) {
        check_extended(&worker->hold, record->asked_at);
    }
    worker_be_rash(worker);
}

static void on_lost(redlock_lock *lock, redlock_status status, void *arg) {
    struct record *record = arg;
    struct worker *worker = record->worker;
    struct app *app = record->app;
    if (!record_arrive(record, "on_lost", status)) {
        return;
    }
    check_notified(&app->process, lock);
    if (status == REDLOCK_ECLOSED) {
        worker_be_rash(worker);
        return;
    }
    if (redlock_validity_ms(lock) != 0) {
        violate(app_world(app), INVARIANT_CALLBACKS, "on_lost: the lock still has validity");
    }
    if (status == REDLOCK_EEXPIRED) {
        check_expired(&worker->hold);
    }
    bool is_calm = plan_is_calm(app->plan) && app->plan->is_distant;
    bool must_last = is_calm || (app->plan->has_turns && app->phase == PHASE_FAULTS);
    if (worker->is_watched && must_last) {
        violate(app_world(app), INVARIANT_RENEWAL,
                "process %u lost key %u, which a watchdog renews: %s", app->process.index,
                worker->hold.key, redlock_explain(lock));
    }
    worker_act_within(worker, app_think_ms(app)); /* ... to release it */
    worker_be_rash(worker);
}

static void on_released(redlock_lock *lock, redlock_status status, void *arg) {
    struct record *record = arg;
    struct app *app = record->app;
    if (!record_arrive(record, "on_released", status)) {
        return;
    }
    (void)lock;
    if (status != REDLOCK_OK && status != REDLOCK_ELOST && status != REDLOCK_ENOQUORUM &&
        status != REDLOCK_ENOMEM) {
        violate(app_world(app), INVARIANT_CALLBACKS, "on_released: wrong status %s",
                redlock_status_name(status));
    }
    app->checker->released += status == REDLOCK_OK;
    worker_be_rash(record->worker);
}

/* ---- calls ---- */

/* Draws min_validity_ms: mostly 0; otherwise some time, or almost all of the TTL. */
static uint64_t draw_min_validity_ms(struct app *app, uint64_t ttl_ms) {
    uint64_t most = ttl_ms - (uint64_t)((double)ttl_ms * app->plan->options.drift) - 3;
    switch (app_draw(app, 12)) {
    case 0:
        return app_draw(app, most);
    case 1:
        return most - app_draw(app, 20);
    default:
        return 0;
    }
}

/* Draws keys. In the last phase each worker requests each key, or all keys, in different orders. */
static void draw_keys(struct worker *worker) {
    struct app *app = worker->app;
    const struct plan *plan = app->plan;
    bool is_last = app->phase == PHASE_LAST;
    unsigned *keys = worker->keys;
    for (unsigned i = 0; i < plan->keys; i++) {
        unsigned index = (unsigned)app_draw(app, i + 1);
        keys[i] = keys[index];
        keys[index] = i;
    }
    worker->key_count = 1;
    if (plan->has_own_keys) {
        keys[0] = app->process.index * plan->workers + worker->index;
    } else if (plan->has_sets && (is_last || app_chance(app, 600))) {
        worker->key_count = is_last ? plan->keys : 1 + (unsigned)app_draw(app, plan->keys);
    } else if (is_last) {
        keys[0] = worker->index % plan->keys;
    }
}

/*
 * Records the TTL for the checker: no node may keep the keys for longer. With a semaphore, the TTL
 * applies to the keys of all permits.
 */
static void remember_ttl(const struct worker *worker, uint64_t ttl_ms) {
    const struct app *app = worker->app;
    uint64_t node_ttl_ms = ttl_ms + app->plan->lock_delay_ms;
    uint32_t keys = app->plan->permits > 0 ? (UINT32_C(1) << app->plan->keys) - 1 : mask_of(worker);
    for (; keys != 0; keys &= keys - 1) {
        uint64_t *asked = &app->checker->asked_ttl_ms[app->process.index][__builtin_ctz(keys)];
        *asked = *asked > node_ttl_ms ? *asked : node_ttl_ms;
    }
}

/*
 * Returns whether a request, and each renewal, leaves enough validity after its round trips: a
 * fenced request may need two.
 */
static bool leaves_validity(const struct app *app, const redlock_request *request) {
    const struct plan *plan = app->plan;
    double ttl_ms = (double)request->ttl_ms * (1 - plan->options.drift) - 2;
    uint64_t most_ms = 2 * plan_round_trip(plan) / MS + request->min_validity_ms;
    return ttl_ms > (double)most_ms;
}

/* Passes a single key as `key` or as `keys`: both must have the same effect. */
static void name_keys(struct worker *worker, redlock_request *request,
                      const char *names[KEYS_MAX]) {
    struct app *app = worker->app;
    for (unsigned i = 0; i < worker->key_count; i++) {
        names[i] = app->checker->keys[worker->keys[i]];
    }
    request->permits = app->plan->permits;
    if (app->plan->permits > 0) {
        request->key = app->checker->semaphore;
    } else if (worker->key_count == 1 && !app->plan->has_sets) {
        request->key = names[0];
    } else {
        request->keys = names;
        request->key_count = worker->key_count;
    }
}

static redlock_mode draw_mode(struct app *app) {
    static const redlock_mode modes[10] = {
        REDLOCK_READER, REDLOCK_READER, REDLOCK_READER, REDLOCK_READER, REDLOCK_READER,
        REDLOCK_READER, REDLOCK_WRITER, REDLOCK_WRITER, REDLOCK_WRITER, REDLOCK_EXCLUSIVE};
    return app->plan->has_readers ? modes[app_draw(app, 10)] : REDLOCK_EXCLUSIVE;
}

/* If acquisitions stay open, the first process has the longest TTL, the others short ones. */
static uint64_t draw_ttl_ms(struct app *app) {
    const struct plan *plan = app->plan;
    uint64_t range = plan->ttl_most_ms - plan->ttl_least_ms;
    if (plan->has_open) {
        return app->process.index == 0 ? plan->ttl_most_ms
                                       : plan->ttl_least_ms + app_draw(app, plan->ttl_least_ms);
    }
    return plan->ttl_least_ms + app_draw(app, range + 1);
}

static void acquire(struct worker *worker) {
    struct app *app = worker->app;
    const struct plan *plan = app->plan;
    redlock_request request = REDLOCK_REQUEST_INIT;
    bool is_last = app->phase == PHASE_LAST;
    bool has_lost_keys = plan->cause == CAUSE_KEYS && !is_last;
    bool is_patient = plan->has_one_queue || has_lost_keys || plan->has_open;
    const char *names[KEYS_MAX];
    draw_keys(worker);
    name_keys(worker, &request, names);
    request.ttl_ms = draw_ttl_ms(app);
    if (is_last) {
        request.wait_ms = REDLOCK_FOREVER;
    } else {
        request.wait_ms =
            app_chance(app, is_patient ? 900 : 500) ? 1 + app_draw(app, plan->wait_ms) : 0;
        request.retries = app_chance(app, is_patient ? 50 : 300) ? (uint32_t)app_draw(app, 5) : 0;
        request.min_validity_ms = draw_min_validity_ms(app, request.ttl_ms);
    }
    if (!is_last && plan->has_hurry && app_is_hurried(app) == has_lost_keys) {
        request.wait_ms = request.retries = 0; /* leaves keys that nodes have lost to others */
        request.watchdog = false;              /* does not notice a loss for long */
    } else if (!is_last && plan->has_open) {
        request.wait_ms = request.retries = 0; /* a queued waiter's try ends soon */
    }
    request.watchdog = app_chance(app, is_patient || plan->has_hung ? 800 : 400);
    request.max_hold_ms = app_chance(app, 300) ? app_draw(app, 2000) : 0;
    if (plan->has_turns) {
        request.wait_ms = REDLOCK_FOREVER;
        request.watchdog = true;
        request.retries = 0;
        request.max_hold_ms = 0;
        request.min_validity_ms = 0; /* slow renewals would not leave it */
    }
    worker->acquires = record_expect(worker);
    worker->acquires->min_validity = request.min_validity_ms * MS;
    /* The time of a request that waits may be over before its client is connected. */
    bool is_in_time = request.wait_ms == 0 || app_is_connected(app, app_world(app)->now);
    bool is_ample = leaves_validity(app, &request);
    worker->acquires->is_ample = is_ample && is_in_time;
    worker->was_canceled = false;
    worker->is_watched = request.watchdog && request.max_hold_ms == 0 && is_ample;
    worker->losses = record_expect(worker);
    request.mode = worker->mode = draw_mode(app);
    if (!is_last && plan->has_brief_readers && request.mode == REDLOCK_READER) {
        request.wait_ms = BRIEF_WAIT_MS;
        request.retries = 0;
    }
    request.fenced = plan->is_fenced && request.mode != REDLOCK_READER;
    request.min_hold_ms = worker->min_hold_ms =
        plan->has_min_holds && !is_last && request.mode != REDLOCK_READER && app_chance(app, 600)
            ? app_draw(app, request.ttl_ms + 1)
            : 0;
    request.lock_delay_ms = plan->lock_delay_ms;
    request.wait_replicas = plan->wait_replicas;
    request.on_lost = on_lost;
    request.on_lost_arg = worker->losses;
    remember_ttl(worker, request.ttl_ms);
    static const char *const as[] = {"", " to read", " to write"};
    TRACE(app_world(app), "process %u worker %u: acquire keys %" PRIx32 "%s for %" PRIu64 " ms",
          app->process.index, worker->index, mask_of(worker), as[request.mode], request.ttl_ms);
    worker->claimed = plan->permits > 0 ? (UINT32_C(1) << plan->keys) - 1 : mask_of(worker);
    check_claims(&app->process, worker->index, worker->claimed);
    app_begin_call(app);
    redlock_status status =
        redlock_acquire(app->client, &request, on_acquired, worker->acquires, &worker->lock);
    app_end_call(app);
    if (status == REDLOCK_OK) {
        if (!is_last && !plan->has_open && app_chance(app, 150)) {
            worker_act_within(worker, 1 + app_draw(app, 100)); /* ... to cancel it */
        }
        return;
    }
    if (status != REDLOCK_ENOMEM &&
        status != REDLOCK_EINVAL) { /* min_validity_ms may be too large */
        violate(app_world(app), INVARIANT_CALLBACKS, "acquire was refused: %s",
                redlock_status_name(status));
    }
    record_close(worker->acquires);
    record_close(worker->losses);
    worker_forget_lock(worker);
    worker_act_within(worker, app_think_ms(app));
}

static void cancel(struct worker *worker) {
    struct app *app = worker->app;
    TRACE(app_world(app), "process %u worker %u: cancel", app->process.index, worker->index);
    worker->acquires->was_canceled = worker->was_canceled = true;
    app_begin_call(app);
    redlock_status status = redlock_cancel(worker->lock);
    app_end_call(app);
    /* Refused when the notification of the outcome is already pending. */
    if (status != REDLOCK_OK && status != REDLOCK_EINVAL) {
        violate(app_world(app), INVARIANT_CALLBACKS, "cancel was refused: %s",
                redlock_status_name(status));
    }
}

static void extend(struct worker *worker) {
    struct app *app = worker->app;
    uint64_t ttl = app_chance(app, 300) ? 0 : draw_ttl_ms(app);
    struct record *record = worker->extends = record_expect(worker);
    remember_ttl(worker, ttl);
    TRACE(app_world(app), "process %u worker %u: extend by %" PRIu64, app->process.index,
          worker->index, ttl);
    app_begin_call(app);
    redlock_status status = redlock_extend(worker->lock, ttl, on_extended, record);
    app_end_call(app);
    if (status != REDLOCK_OK) {
        record_close(record);
        worker->extends = NULL;
    }
}

static void release(struct worker *worker) {
    struct app *app = worker->app;
    struct record *record = app_chance(app, 700) ? record_expect(worker) : NULL;
    if (worker->extends != NULL) {
        worker->extends->was_canceled = true;
    }
    TRACE(app_world(app), "process %u worker %u: release", app->process.index, worker->index);
    check_over(&app->process, worker->lock);
    check_notified(&app->process, worker->lock);
    if (worker->losses->is_open && worker->is_held) {
        check_not_lost(&worker->hold);
        check_stays(&worker->hold, worker->min_hold_ms);
    }
    app_begin_call(app);
    redlock_status status =
        redlock_release(worker->lock, record != NULL ? on_released : NULL, record);
    app_end_call(app);
    if (status != REDLOCK_OK) {
        violate(app_world(app), INVARIANT_CALLBACKS, "release was refused: %s",
                redlock_status_name(status));
    }
    check_parting(&app->process, worker->lock);
    record_close(worker->losses);
    worker_forget_lock(worker);
    worker->has_finished =
        app->phase == PHASE_LAST && ++worker->turns >= plan_last_turns(app->plan);
    worker_act_within(worker, app_think_ms(app));
}

/* ---- what workers do ---- */

static void act_on_held(struct worker *worker) {
    struct app *app = worker->app;
    redlock_validity_ms(worker->lock);
    bool has_faults = app->phase == PHASE_FAULTS;
    bool extends = has_faults && app->plan->extends_soon && app_chance(app, 700);
    if (!extends && (!has_faults || app_chance(app, app_is_hurried(app) ? 900 : 450))) {
        release(worker);
        return;
    }
    if (worker->extends == NULL && (extends || app_chance(app, app->plan->has_hurry ? 50 : 400))) {
        extend(worker);
    }
    if (worker->lock != NULL) { /* the extension may have lost the lock, but does not call back */
        worker_act_within(worker, draw_hold_ms(worker));
    }
}

/*
 * Ends the worker's interest in its lock, because the client closes: no loss is reported any more.
 */
static void let_go(struct worker *worker) {
    if (worker->is_releasable) {
        release(worker);
    } else if (worker->acquires != NULL) {
        cancel(worker);
    }
}

void worker_act(struct worker *worker) {
    struct app *app = worker->app;
    if (app->client == NULL) {
        return;
    }
    if (app->is_closing) {
        let_go(worker);
    } else if (app->phase == PHASE_FAULTS && app_chance(app, 3)) {
        app_close_client(app);
    } else if (worker->is_held) {
        act_on_held(worker);
    } else if (worker->acquires != NULL) {
        cancel(worker);
    } else if (app->phase == PHASE_FAULTS || (app->phase == PHASE_LAST && !worker->has_finished)) {
        acquire(worker);
    }
}

static void on_alarm(void *owner) {
    worker_act(owner);
}

void worker_init(struct worker *worker, struct app *app, unsigned index) {
    *worker = (struct worker){.app = app, .index = index};
    alarm_init(&worker->alarm, &app->process, on_alarm, worker);
    looker_init(worker);
}
