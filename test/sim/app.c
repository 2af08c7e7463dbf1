#include "worker.h"

#include "network.h"

#include <inttypes.h>
#include <stdlib.h>

static void be_born(void *owner);

/* ---- the list of nodes ---- */

static void name_node(struct app *app, unsigned index, unsigned server, bool has_name) {
    snprintf(app->uris[index], sizeof(app->uris[index]), "redis://%s%s:%u/%u%s",
             app->plan->has_password ? "me:secret@" : "", has_name ? "node1" : "10.0.0.1",
             SIM_FIRST_PORT + server, app->plan->db,
             app->plan->durable >> server & 1 ? "?durable=yes" : "");
}

static void name_nodes(struct app *app) {
    const struct plan *plan = app->plan;
    for (unsigned i = 0; i < plan->nodes; i++) {
        name_node(app, i, i, plan->has_names && i % 2 == 0);
    }
    if (plan->has_duplicate) {
        name_node(app, plan->nodes, 0, !plan->has_names);
    }
}

/* Writes the URIs of a mask of servers to `nodes`. Returns their number. */
static size_t list_nodes(const struct app *app, uint32_t list, const char **nodes) {
    size_t count = 0;
    for (unsigned i = 0; i < app->plan->nodes; i++) {
        if (list >> i & 1) {
            nodes[count++] = app->uris[i];
        }
    }
    if (app->plan->has_duplicate) {
        nodes[count++] = app->uris[app->plan->nodes];
    }
    return count;
}

static redlock_status change(struct app *app, uint32_t list) {
    const char *nodes[SERVERS_MAX + 1];
    size_t count = list_nodes(app, list, nodes);
    app_begin_call(app);
    redlock_status status = redlock_client_change_nodes(app->client, nodes, count);
    app_end_call(app);
    if (status == REDLOCK_OK) {
        app->lists.next = list;
        check_next_list(&app->process, list);
    } else if (status != REDLOCK_ENOMEM || app->process.failed == 0) {
        violate(app_world(app), INVARIANT_CALLBACKS, "no change of nodes: %s",
                redlock_client_error(app->client));
    }
    return status;
}

static void commit(struct app *app) {
    app_begin_call(app);
    redlock_status status = redlock_client_commit_nodes(app->client);
    app_end_call(app);
    if (status == REDLOCK_OK) {
        app->lists = (struct app_lists){app->lists.next, 0};
        check_lists(&app->process, app->lists.now);
        check_next_list(&app->process, app->lists.next);
    } else if (status != REDLOCK_EBUSY) { /* by its own clock the commit may be too early */
        violate(app_world(app), INVARIANT_CALLBACKS, "no commit: %s",
                redlock_client_error(app->client));
    }
}

static void abandon(struct app *app) {
    app_begin_call(app);
    redlock_status status = redlock_client_abandon_nodes(app->client);
    app_end_call(app);
    app->lists.next = 0;
    check_lists(&app->process, app->lists.now);
    check_next_list(&app->process, app->lists.next);
    if (status != REDLOCK_OK) {
        violate(app_world(app), INVARIANT_CALLBACKS, "no abandoning: %s",
                redlock_client_error(app->client));
    }
}

static void on_step(void *owner) {
    struct app *app = owner;
    if (app->client == NULL || app->is_closing || app_is_joint(app) != (app->step != STEP_CHANGE)) {
        return; /* a new client was made with that list, or already has it */
    }
    TRACE(app_world(app), "process %u takes step %d", app->process.index, (int)app->step);
    if (app->step == STEP_CHANGE) {
        change(app, app->step_list);
    } else if (app->step == STEP_COMMIT) {
        commit(app);
    } else {
        abandon(app);
    }
}

void app_is_born_with(struct app *app, uint32_t list, uint32_t next) {
    app->birth = (struct app_lists){list, next};
}

void app_take_step(struct app *app, enum app_step step, uint32_t list) {
    app->step = step;
    app->step_list = list;
    process_notify(&app->process, &app->stepping);
}

void app_forget_step(struct app *app) {
    process_forget(&app->process, &app->stepping);
}

bool app_has_client(const struct app *app) {
    return app->is_starting || (app->client != NULL && !app->is_closing);
}

bool app_is_joint(const struct app *app) {
    return app->lists.next != 0;
}

/* ---- clients ---- */

static void on_closed(void *arg) {
    struct record *record = arg;
    struct app *app = record->app;
    struct world *world = app_world(app);
    if (!record_arrive(record, "on_closed", REDLOCK_OK)) {
        return;
    }
    STAILQ_FOREACH(record, &app->records, link) {
        if (record->is_open && record->life == app->process.life) {
            violate(world, INVARIANT_CALLBACKS, "the client has ended without a callback");
        }
    }
    if (app->questions_out != 0) {
        violate(world, INVARIANT_CALLBACKS, "the client has ended without a callback");
    }
    for (unsigned i = 0; i < app->plan->workers; i++) {
        alarm_clear(&app->workers[i].alarm);
        worker_forget_lock(&app->workers[i]); /* handles are valid until on_closed returns */
    }
    app->client = NULL;
    app->lists = (struct app_lists){0, 0};
    app->is_closing = false;
    app->process.life++;
    if (app->phase != PHASE_END) {
        alarm_set(&app->rebirth, world->now + app_draw(app, 100 * MS) + 1);
    }
}

void app_close_client(struct app *app) {
    if (app->client == NULL || app->is_closing) {
        return;
    }
    TRACE(app_world(app), "process %u closes its client", app->process.index);
    for (unsigned i = 0; i < app->plan->workers; i++) {
        struct worker *worker = &app->workers[i];
        if (worker->is_held && worker->losses->is_open) {
            check_closed(&worker->hold);
        }
        if (worker->is_held) {
            check_unheld(&worker->hold);
            worker->is_held = false;
        }
        alarm_clear(&worker->alarm);
        alarm_clear(&worker->looks);
        if (app_chance(app, 500)) {
            worker_act_within(worker, 1 + app_draw(app, 100)); /* ... to let go of its lock */
        }
    }
    alarm_clear(&app->questions);
    app->is_closing = true;
    app->checker->is_closing[app->process.index] = app->process.life + 1;
    app_begin_call(app);
    redlock_client_close(app->client, on_closed, record_expect(&app->workers[0]));
    app_end_call(app);
}

static void on_log(redlock_log_level level, const char *line, void *arg) {
    const struct app *app = arg;
    (void)level;
    TRACE(app_world(app), "process %u: %s", app->process.index, line);
}

/* A client frees its last memory after on_closed has returned. */
static void check_freed(const struct app *app) {
    if (app->client == NULL && app->process.block_count != 0) {
        violate(app_world(app), INVARIANT_BOUNDS, "the client has ended and left %zu bytes",
                app->process.bytes);
    }
}

static void be_born(void *owner) {
    struct app *app = owner;
    redlock_options options = app->plan->options;
    redlock_error error;
    check_freed(app);
    if (app->client != NULL || app->phase == PHASE_END) {
        return;
    }
    const char *nodes[SERVERS_MAX + 1];
    app->lists = app->birth;
    options.nodes = nodes;
    options.node_count = list_nodes(app, app->lists.now, nodes);
    options.owner = app->plan->has_owners ? "some-application" : NULL;
    options.allocator = &app->process.allocator;
    options.log = on_log;
    options.log_arg = app;
    options.log_level = app_world(app)->trace != NULL ? REDLOCK_LOG_DEBUG : REDLOCK_LOG_ERROR;
    app->born_at = app_world(app)->now;
    app->is_starting = true; /* simulated time may pass meanwhile */
    app_begin_call(app);
    redlock_status status = redlock_client_create(&app->process, &options, &app->client, &error);
    app_end_call(app);
    app->is_starting = false;
    if (status != REDLOCK_OK && app->process.failed == 0) {
        violate(app_world(app), INVARIANT_CALLBACKS, "no client could be made: %s", error.message);
    } else if (status != REDLOCK_OK) {
        alarm_set(&app->rebirth, app_world(app)->now + 10 * MS);
        return;
    }
    check_lists(&app->process, app->lists.now);
    check_next_list(&app->process, app->lists.next);
    if (app->lists.next != 0 && change(app, app->lists.next) != REDLOCK_OK) {
        app_close_client(app); /* the client must not work without the next list: try again */
        return;
    }
    for (unsigned i = 0; i < app->plan->workers; i++) {
        worker_act_within(&app->workers[i], app->phase == PHASE_FAULTS ? app_think_ms(app) : 1);
        worker_look_within(&app->workers[i], app->plan->look_ms);
    }
    questions_come(app);
}

/*
 * Acts on the held locks, as if paused in the middle of the work, before the loop can report a
 * loss.
 */
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
    questions_init(app);
    occurrence_init(&app->stepping, on_step, app, false);
    for (unsigned i = 0; i < plan->workers; i++) {
        worker_init(&app->workers[i], app, i);
    }
}

void app_init(struct app *app, const struct plan *plan, struct checker *checker, unsigned index) {
    *app = (struct app){.plan = plan, .checker = checker};
    struct event_base *process = &app->process;
    process_init(process, checker->world, index);
    process->network = checker->network;
    process->on_check = check_process;
    process->lateness = plan->lateness;
    process->preemptions = app_is_hurried(app) == plan->has_hurry ? plan->preemptions : 0;
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
        struct worker *worker = &app->workers[i];
        if (worker->is_held) {
            check_delays(&worker->hold, app->plan->lock_delay_ms);
        }
        worker_forget_lock(worker);
    }
    app->is_starting = false;
    questions_end(app);
    task_cancel(app_world(app), &app->awake);
    network_bury(app->process.network, &app->process);
    process_finish(&app->process);
    drop_records(app);
    app->lists = (struct app_lists){0, 0};
    app->client = NULL;
    app->is_closing = false;
    app->process.life++;
}

void app_finish(struct app *app) {
    die(app);
}

void app_crash(struct app *app, uint64_t again_at) {
    TRACE(app_world(app), "process %u dies", app->process.index);
    die(app);
    app->process.is_paused = false;
    alarm_set(&app->rebirth, again_at);
}

void app_pause(struct app *app, uint64_t until) {
    TRACE(app_world(app), "process %u is paused for %" PRIu64 " ms", app->process.index,
          (until - app_world(app)->now) / MS);
    process_pause(&app->process, until);
    if (app->plan->cause == CAUSE_PAUSES) {
        task_schedule(app_world(app), &app->awake, until);
    }
}

/* ---- phases ---- */

static void enter(struct worker *worker) {
    struct app *app = worker->app;
    struct world *world = app_world(app);
    if (app->phase == PHASE_QUIESCE) {
        worker_act_within(worker, 20);
    } else if (app->phase == PHASE_LAST) {
        alarm_set(&worker->alarm,
                  world->now + 1000 * MS + (app->plan->in_step ? 0 : app_draw(app, 100 * MS)));
    }
}

void app_enter(struct app *app, enum phase phase) {
    app->phase = phase;
    app->process.failures = app->process.preemptions = 0;
    app->process.lateness = app->plan->in_step ? 0 : app->process.lateness;
    running = &app->process;
    if (phase == PHASE_END) {
        app_close_client(app);
    } else if (app->client == NULL) {
        alarm_set(&app->rebirth, app_world(app)->now + 1);
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
    running = &app->process;
    size_t count = redlock_client_nodes(app->client, infos, SERVERS_MAX);
    running = NULL;
    /* The only commands left: a heartbeat, the role question, or both; a channel's probe. */
    bool is_guarded = app->plan->options.guards != REDLOCK_GUARDS_OFF;
    unsigned own = is_guarded && app->plan->is_reticent ? 3 : 2;
    for (size_t i = 0; i < count; i++) {
        if (infos[i].commands > own || infos[i].pending_releases != 0) {
            violate(app_world(app), INVARIANT_BOUNDS,
                    "process %u is idle, but node %zu has %" PRIu32
                    " commands under way and has %zu pending releases",
                    app->process.index, i, infos[i].commands, infos[i].pending_releases);
        }
    }
}

void app_check_end(struct app *app) {
    struct record *record;
    check_freed(app);
    if (app->client != NULL) {
        violate(app_world(app), INVARIANT_CALLBACKS, "process %u: the client does not end",
                app->process.index);
    }
    STAILQ_FOREACH(record, &app->records, link) {
        if (record->is_open) {
            violate(app_world(app), INVARIANT_CALLBACKS, "process %u: a callback never came",
                    app->process.index);
        }
    }
}
