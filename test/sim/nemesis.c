#include "nemesis.h"

#include "actions.h"

#include "mishap.h"
#include "worker.h"

#include "core/answer_time.h"
#include "wire/fence.h"
#include "wire/script.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Number of dead waiters at the front of a queue: more than one call handles. */
#define CROWD_OF_DEAD 100

static uint64_t draw(struct nemesis *nemesis, uint64_t below) {
    return rng_below(&nemesis->world->rng, below);
}

static bool coin(struct nemesis *nemesis) {
    return rng_chance(&nemesis->world->rng, 500);
}

static struct server *any_server(struct nemesis *nemesis) {
    return &nemesis->network->servers[draw(nemesis, nemesis->plan->nodes)];
}

static struct app *any_app(struct nemesis *nemesis) {
    return &nemesis->apps[draw(nemesis, nemesis->plan->processes)];
}

/* Draws the duration of a fault: from much less than a round to more than a TTL. */
static uint64_t some_time(struct nemesis *nemesis) {
    const struct plan *plan = nemesis->plan;
    uint64_t ttl = plan->ttl_most_ms < 1500 ? plan->ttl_most_ms : 1500;
    uint64_t fixed = plan->options.node_timeout_ms;
    uint64_t timeout = fixed != 0 ? fixed : (plan_round_trip(plan) + ANSWER_MARGIN) / MS;
    uint64_t most = coin(nemesis) ? timeout * 2 : ttl * 3 / 2;
    return nemesis->world->now + draw(nemesis, most * MS) + MS;
}

/* ---- the network ---- */

static void hold_path(struct nemesis *nemesis) {
    const struct server *server = any_server(nemesis);
    const struct app *app = any_app(nemesis);
    struct path *path = &nemesis->network->paths[app->process.index][server->master.index];
    uint64_t until = some_time(nemesis);
    bool loses = coin(nemesis);
    uint64_t which = draw(nemesis, 3);
    TRACE(nemesis->world, "nemesis: process %u to node %u: %s %s", app->process.index,
          server->master.index,
          which == 0   ? "requests"
          : which == 1 ? "replies"
                       : "all is",
          loses ? "lost" : "held");
    struct link *link;
    TAILQ_FOREACH(link, &nemesis->network->links, all_link) {
        if (loses && link->server == server && link->process == &app->process) {
            link->requests.is_lost |= which != 1;
            link->replies.is_lost |= which != 0;
        }
    }
    path->requests_held_until = which != 1 ? until : path->requests_held_until;
    path->replies_held_until = which != 0 ? until : path->replies_held_until;
}

/* Cuts a process or a server off from the others. */
static void cut_off(struct nemesis *nemesis) {
    struct network *network = nemesis->network;
    uint64_t until = some_time(nemesis);
    bool is_server = coin(nemesis);
    unsigned one = is_server ? any_server(nemesis)->master.index : any_app(nemesis)->process.index;
    TRACE(nemesis->world, "nemesis: %s %u is cut off", is_server ? "node" : "process", one);
    for (unsigned i = 0; i < nemesis->plan->processes; i++) {
        for (unsigned j = 0; j < nemesis->plan->nodes; j++) {
            if ((is_server ? j : i) == one) {
                network->paths[i][j].requests_held_until = until;
                network->paths[i][j].replies_held_until = until;
            }
        }
    }
}

static void break_links(struct nemesis *nemesis) {
    struct link *link;
    TRACE(nemesis->world, "nemesis: connections break");
    TAILQ_FOREACH(link, &nemesis->network->links, all_link) {
        if (draw(nemesis, 4) == 0) {
            link_break(link);
        }
    }
}

/* ---- servers ---- */

static void pause_server(struct nemesis *nemesis) {
    struct server *server = any_server(nemesis);
    TRACE(nemesis->world, "nemesis: node %u is paused", server->master.index);
    server->paused_until = some_time(nemesis);
}

static void forget_keys(struct server *server) {
    master_forget(&server->master);
    check_forgotten(&server->master);
}

static void restart_with_data(struct nemesis *nemesis) {
    struct server *server = any_server(nemesis);
    TRACE(nemesis->world, "nemesis: node %u restarts with its data", server->master.index);
    mishap_stop(nemesis, server, some_time(nemesis));
}

/* Restarts a server after a delay: Redlock, "Performance, crash recovery and fsync". */
static void restart_late(struct nemesis *nemesis) {
    struct server *server = any_server(nemesis);
    uint64_t max_ttl = nemesis->plan->options.max_ttl_ms * MS;
    uint64_t until = nemesis->world->now + max_ttl + max_ttl / 2 + 10 * MS;
    if (nemesis->plan->ttl_most_ms > 3000) {
        return;
    }
    TRACE(nemesis->world, "nemesis: node %u restarts empty, and stays out", server->master.index);
    if (nemesis->plan->is_fenced) { /* fences need the counters from before */
        master_forget_locks(&server->master);
        check_forgotten(&server->master);
    } else {
        forget_keys(server);
    }
    mishap_stop(nemesis, server, until);
}

static void slow_down(struct nemesis *nemesis) {
    struct server *server = any_server(nemesis);
    server->slowness = coin(nemesis) ? 0 : draw(nemesis, 80 * MS);
}

static void have_errors(struct nemesis *nemesis) {
    static const char *const errors[] = {
        "LOADING Redis is loading the dataset in memory",
        "OOM command not allowed when used memory > 'maxmemory'.",
        "READONLY You can't write against a read only replica.",
        "NOPERM this user has no permissions",
        "BUSY Redis is busy running a script.",
        "NOAUTH Authentication required.",
        "ERR something else",
    };
    struct server *server = any_server(nemesis);
    server->error = errors[draw(nemesis, sizeof(errors) / sizeof(errors[0]))];
    server->error_until = some_time(nemesis);
    TRACE(nemesis->world, "nemesis: node %u answers %s", server->master.index, server->error);
}

static void run_words(struct master *master, unsigned count, const char *const *text) {
    struct words words = {.count = count};
    for (unsigned i = 0; i < count; i++) {
        words.word[i] = (struct word){text[i], strlen(text[i])};
    }
    master->store.commands++;
    master->store.db = master->world->checker->db;
    master_run(master, &words);
    actions_changed(master);
}

/* Puts a crowd of dead waiters at the front of a server's queues. */
static void crowd_queues(struct nemesis *nemesis, struct master *master) {
    const struct checker *checker = nemesis->world->checker;
    char queue[sizeof(checker->keys[0]) + sizeof(QUEUE_SUFFIX)], entry[80], ticket[16];
    master->store.db = nemesis->plan->db;
    for (unsigned key = 0; key < checker->key_count; key++) {
        snprintf(queue, sizeof(queue), "%s" QUEUE_SUFFIX, checker->keys[key]);
        const struct store_key *waiters = master_find(master, queue, strlen(queue));
        for (unsigned i = 1; waiters != NULL && waiters->type == STORE_SET && i <= CROWD_OF_DEAD;
             i++) {
            snprintf(entry, sizeof(entry), "%040u redlock:dead 1000 0 0", i);
            snprintf(ticket, sizeof(ticket), "%u", i);
            run_words(master, 4, (const char *[]){"ZADD", queue, ticket, entry});
        }
    }
}

static void disturb_pushes(struct nemesis *nemesis) {
    struct server *server = any_server(nemesis);
    if (nemesis->world->now % 3 == 0) { /* not drawn, so that seeds keep their worlds */
        crowd_queues(nemesis, &server->master);
    }
    TRACE(nemesis->world, "nemesis: node %u loses pushes", server->master.index);
    server->pushes_disturbed_until = some_time(nemesis);
}

/* Ends the channel connections of one process, and no others. */
static void break_channels(struct nemesis *nemesis) {
    const struct app *app = any_app(nemesis);
    struct link *link;
    TRACE(nemesis->world, "nemesis: process %u loses its channels", app->process.index);
    TAILQ_FOREACH(link, &nemesis->network->links, all_link) {
        if (link->process == &app->process && link->channel[0] != '\0' && coin(nemesis)) {
            link_break(link);
        }
    }
}

static void refuse_logins(struct nemesis *nemesis) {
    struct server *server = any_server(nemesis);
    server->login_refused_until = some_time(nemesis);
    TRACE(nemesis->world, "nemesis: node %u refuses logins", server->master.index);
    if (coin(nemesis)) { /* clients connect and log in again */
        server_break(server);
    }
}

static void flush_scripts(struct nemesis *nemesis) {
    any_server(nemesis)->master.store.scripts = 0;
}

static void lose_replicas(struct nemesis *nemesis) {
    struct master *master = &any_server(nemesis)->master;
    master->store.replicas = (unsigned)draw(nemesis, REPLICAS_MAX + 1);
    TRACE(nemesis->world, "nemesis: node %u has %u replicas", master->index,
          master->store.replicas);
}

/*
 * Makes a node answer an absurd counter: the largest possible, or one at the bound of what counts.
 * The same few nodes do so throughout, so that the others are a quorum. Counters are never set
 * back: if only these nodes and one other know a fence, a quorum of the rest does not.
 */
static void ruin_counter(struct nemesis *nemesis) {
    static const uint64_t ahead[] = {2 * FENCE_DAY, 5 * FENCE_DAY / 2, 3 * FENCE_DAY};
    const struct plan *plan = nemesis->plan;
    const struct checker *checker = nemesis->world->checker;
    unsigned few = plan->nodes - (plan->nodes / 2 + 1);
    if (few == 0 || plan->has_changes || plan->has_duplicate) {
        return;
    }
    struct master *master = &nemesis->network->servers[draw(nemesis, few)].master;
    uint64_t which = draw(nemesis, 4);
    uint64_t count =
        which == 3 ? FENCE_MAX - 1 : nemesis->world->now / 1000 + ahead[which] - draw(nemesis, 3);
    char name[sizeof(checker->keys[0]) + 16];
    char text[24];
    snprintf(name, sizeof(name), "%s" COUNTER_SUFFIX,
             checker->keys[draw(nemesis, checker->key_count)]);
    snprintf(text, sizeof(text), "%" PRIu64, count);
    master->store.db = plan->db;
    const struct store_key *counter = master_find(master, name, strlen(name));
    if (counter != NULL && strtoull(counter->value, NULL, 10) >= count) {
        return;
    }
    TRACE(nemesis->world, "nemesis: node %u has %s at %s", master->index, name, text);
    run_words(master, 3, (const char *[]){"SET", name, text});
}

/* Puts a key that is no lock, or that belongs to a foreign client. */
static void put_foreign_key(struct nemesis *nemesis) {
    if (nemesis->plan->is_fenced && coin(nemesis)) {
        ruin_counter(nemesis);
        return;
    }
    struct master *master = &any_server(nemesis)->master;
    master->store.db = nemesis->plan->db;
    struct checker *checker = nemesis->world->checker;
    unsigned number = (unsigned)draw(nemesis, checker->key_count);
    const char *key = checker->keys[number];
    check_taken(checker, number);
    switch (draw(nemesis, 3)) {
    case 0:
        if (master_find(master, key, strlen(key)) == NULL) {
            run_words(master, 3, (const char *[]){"LPUSH", key, "foreign"});
        }
        break;
    case 1:
        run_words(master, 4, (const char *[]){"SET", key, "foreign", "NX"});
        break;
    default:
        run_words(master, 6, (const char *[]){"SET", key, "foreign", "NX", "PX", "200"});
        break;
    }
}

static void remove_foreign_keys(struct nemesis *nemesis) {
    const struct checker *checker = nemesis->world->checker;
    for (unsigned i = 0; i < nemesis->plan->nodes; i++) {
        struct master *master = &nemesis->network->servers[i].master;
        master->store.db = nemesis->plan->db;
        for (unsigned j = 0; j < checker->key_count; j++) {
            const char *name = checker->keys[j];
            const struct store_key *key = master_find(master, name, strlen(name));
            if (key != NULL && key->expires_ms < 0) {
                run_words(master, 2, (const char *[]){"DEL", name});
            }
        }
    }
}

/* ---- processes ---- */

static void pause_process(struct nemesis *nemesis) {
    struct app *app = any_app(nemesis);
    if (!app->process.is_running && !app->process.is_paused) {
        app_pause(app, some_time(nemesis));
    }
}

/* Makes the first process hang for so long that a server removes its entries. */
static void hang_process(struct nemesis *nemesis) {
    struct app *app = &nemesis->apps[0];
    uint64_t until = nemesis->world->now + 5000 * MS;
    if (!app->process.is_running && !app->process.is_paused && until < nemesis->heals_at) {
        app_pause(app, until);
    }
}

static void kill_process(struct nemesis *nemesis) {
    struct app *app = any_app(nemesis);
    if (!app->process.is_running) {
        app_crash(app, some_time(nemesis));
    }
}

/* ---- breaches of the assumptions of promise 1 ---- */

static void forget(struct nemesis *nemesis) {
    struct server *server = any_server(nemesis);
    TRACE(nemesis->world, "nemesis: node %u forgets", server->master.index);
    forget_keys(server);
    if (coin(nemesis)) {
        mishap_stop(nemesis, server, nemesis->world->now + draw(nemesis, 20 * MS));
    }
}

static void forget_locks(struct nemesis *nemesis, struct server *server) {
    TRACE(nemesis->world, "nemesis: node %u loses its locks", server->master.index);
    master_forget_locks(&server->master);
    check_forgotten(&server->master);
}

static bool is_free(const struct nemesis *nemesis, struct master *master) {
    const char *key = nemesis->world->checker->keys[0];
    master->store.db = nemesis->plan->db;
    return master_find(master, key, strlen(key)) == NULL;
}

/*
 * Ends the contention once a hurried process has held the key at the node with the late top-up and
 * released it: cuts the hurried processes off from the servers, and makes the holders act soon, so
 * that they hand the lock over before anything else changes a counter.
 */
static void end_hurry(struct nemesis *nemesis) {
    uint64_t ttl = nemesis->plan->ttl_most_ms * MS;
    bool was_met = nemesis->is_met;
    nemesis->is_met = !is_free(nemesis, &nemesis->network->servers[nemesis->late].master);
    if (nemesis->is_met || !was_met) {
        nemesis->strikes_at = nemesis->world->now + 2 * MS;
        return;
    }
    TRACE(nemesis->world, "nemesis: the late top-up is cut off");
    nemesis->is_late = false;
    for (unsigned i = 0; i < nemesis->plan->processes; i++) {
        struct app *app = &nemesis->apps[i];
        for (unsigned j = 0; j < nemesis->plan->nodes && app_is_hurried(app); j++) {
            nemesis->network->paths[i][j].requests_held_until = nemesis->world->now + ttl / 2;
        }
        for (unsigned j = 0; j < nemesis->plan->workers && !app_is_hurried(app); j++) {
            if (app->workers[j].is_held) {
                worker_act_within(&app->workers[j], ttl / 4 / MS);
            }
        }
    }
}

/* Makes a node lose its locks, but no counters. */
static void lose_locks(struct nemesis *nemesis) {
    if (nemesis->is_late && nemesis->keys_rest_until > nemesis->world->now) {
        end_hurry(nemesis);
    } else if (nemesis->keys_rest_until <= nemesis->world->now) {
        nemesis->is_late = nemesis->is_met = false;
        nemesis->late = (unsigned)draw(nemesis, nemesis->plan->nodes);
        nemesis->is_lost = true;
        forget_locks(nemesis, &nemesis->network->servers[nemesis->late]);
    }
}

/*
 * Delays the top-up of the node that lost its locks, and makes a second node lose them: another
 * process has time to hold the lock at both, and to release it.
 */
static uint64_t delay_top_up(void *owner, const struct link *link) {
    struct nemesis *nemesis = owner;
    uint64_t ttl = nemesis->plan->ttl_most_ms * MS;
    if (!nemesis->is_lost || link->server->master.index != nemesis->late) {
        return 0;
    }
    TRACE(nemesis->world, "nemesis: the top-up of node %u is late", nemesis->late);
    nemesis->is_lost = false;
    nemesis->is_late = true;
    nemesis->keys_rest_until = nemesis->world->now + ttl;
    unsigned next = (nemesis->late + 1) % nemesis->plan->nodes;
    forget_locks(nemesis, &nemesis->network->servers[next]);
    task_schedule(nemesis->world, &nemesis->task, nemesis->world->now + 2 * MS);
    return ttl / 8 + draw(nemesis, ttl / 16);
}

static int64_t some_jump(struct nemesis *nemesis) {
    int64_t most = (int64_t)(nemesis->plan->ttl_most_ms * MS);
    int64_t by = (int64_t)draw(nemesis, (uint64_t)most * 2) - most;
    nemesis->set_back += by < 0 ? (uint64_t)-by : 0;
    return by;
}

static void set_server_clock(struct nemesis *nemesis) {
    struct tempo *clock = &any_server(nemesis)->master.clock;
    TRACE(nemesis->world, "nemesis: the clock of a node jumps");
    tempo_set(clock, nemesis->world->now, some_jump(nemesis), clock->ppm);
}

static void set_process_clock(struct nemesis *nemesis) {
    struct app *app = any_app(nemesis);
    TRACE(nemesis->world, "nemesis: the clock of process %u jumps", app->process.index);
    tempo_set(&app->process.clock, nemesis->world->now, some_jump(nemesis), app->process.clock.ppm);
    check_process(&app->process, true);
}

/* ---- one fault after the other ---- */

static void strike_on_purpose(struct nemesis *nemesis) {
    switch (nemesis->plan->cause) {
    case CAUSE_KEYS:
        lose_locks(nemesis);
        break;
    case CAUSE_AMNESIA:
        forget(nemesis);
        break;
    case CAUSE_NODES:
        set_server_clock(nemesis);
        break;
    case CAUSE_CLIENTS:
        set_process_clock(nemesis);
        break;
    case CAUSE_PAUSES:
        pause_process(nemesis);
        break;
    case CAUSE_RESTARTS:
        mishap_strike(nemesis);
        break;
    default:
        break;
    }
}

static void strike(struct nemesis *nemesis) {
    static void (*const faults[])(struct nemesis * nemesis) = {
        hold_path,     hold_path,      hold_path,      cut_off,       break_links,
        pause_server,  slow_down,      have_errors,    flush_scripts, restart_with_data,
        restart_late,  refuse_logins,  kill_process,   pause_process, put_foreign_key,
        lose_replicas, disturb_pushes, break_channels,
    };
    bool is_under_way = nemesis->is_late || nemesis->stage != STAGE_NONE;
    unsigned on_purpose = is_under_way ? 1000 : nemesis->plan->has_hurry ? 800 : 500;
    if (nemesis->plan->cause != CAUSE_NONE && rng_chance(&nemesis->world->rng, on_purpose)) {
        strike_on_purpose(nemesis);
    } else if (nemesis->plan->has_hung && coin(nemesis)) {
        hang_process(nemesis);
    } else {
        faults[draw(nemesis, sizeof(faults) / sizeof(faults[0]))](nemesis);
    }
}

/*
 * Has a node fail: it hangs until its keys have expired, or restarts without them. The next one
 * fails when clients count the node again, and holders had a renewal to bring their keys back. A
 * waiter that finds the key free at a node that was hung may take it for some seconds, until it
 * notices the holder; at a node that was restarted it takes none.
 */
static void fail_in_turn(struct nemesis *nemesis) {
    const redlock_options *options = &nemesis->plan->options;
    struct server *server = &nemesis->network->servers[nemesis->turn++ % nemesis->plan->nodes];
    uint64_t ttl = nemesis->plan->ttl_most_ms * MS;
    uint64_t until = nemesis->world->now + ttl + ttl / 3;
    nemesis->strikes_at = until + (options->reconnect_delay_max_ms + 500) * MS;
    if (coin(nemesis)) {
        mishap_restart(nemesis, server);
    } else {
        TRACE(nemesis->world, "nemesis: node %u is paused for long", server->master.index);
        server->paused_until = until;
        nemesis->strikes_at += ttl + 4500 * MS;
    }
}

static void wait(struct nemesis *nemesis) {
    uint64_t at = nemesis->strikes_at;
    if (at <= nemesis->world->now) {
        at = nemesis->world->now + draw(nemesis, 2 * nemesis->plan->fault_every) + 1;
    }
    task_schedule(nemesis->world, &nemesis->task, at);
}

static void on_task(void *owner) {
    struct nemesis *nemesis = owner;
    if (nemesis->plan->has_turns) {
        fail_in_turn(nemesis);
    } else {
        strike(nemesis);
    }
    wait(nemesis);
}

/* ---- the beginning and the end ---- */

static int64_t some_rate(struct nemesis *nemesis) {
    int64_t most = nemesis->plan->most_ppm;
    switch (draw(nemesis, 3)) { /* the limits are the hard cases */
    case 0:
        return most;
    case 1:
        return -most;
    default:
        return (int64_t)draw(nemesis, (uint64_t)most * 2 + 1) - most;
    }
}

void nemesis_init(struct nemesis *nemesis, struct network *network, struct app *apps,
                  const struct plan *plan) {
    *nemesis =
        (struct nemesis){.world = network->world, .network = network, .apps = apps, .plan = plan};
    nemesis->heals_at = network->world->now + plan->duration;
    task_init(&nemesis->task, on_task, nemesis);
    for (unsigned i = 0; i < plan->processes; i++) {
        apps[i].process.clock.ppm = some_rate(nemesis);
        apps[i].process.wall_ahead = plan->is_fenced ? draw(nemesis, 10000 * MS) : 0;
        for (unsigned j = 0; j < plan->nodes; j++) {
            network->paths[i][j].latency = draw(nemesis, plan->latency) + 1;
            network->paths[i][j].jitter = draw(nemesis, plan->jitter + 1);
            network->paths[i][j].latency +=
                rng_chance(&nemesis->world->rng, plan->slow_paths) ? plan->slow_latency : 0;
        }
    }
    for (unsigned j = 0; j < plan->nodes; j++) {
        network->servers[j].master.clock.ppm = some_rate(nemesis);
        network->servers[j].master.store.replicas = REPLICAS_MAX;
    }
    if (plan->is_distant) {
        distance_set(&plan->distance, network, plan->processes);
    }
    if (plan->cause == CAUSE_KEYS) {
        network->on_top_up = delay_top_up;
        network->top_up_owner = nemesis;
    }
    if (plan->fault_every > 0) {
        wait(nemesis);
    }
}

static uint64_t least(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

void nemesis_heal(struct nemesis *nemesis) {
    const struct plan *plan = nemesis->plan;
    TRACE(nemesis->world, "nemesis: all is mended");
    task_cancel(nemesis->world, &nemesis->task);
    nemesis->is_lost = nemesis->is_late = false;
    nemesis->stage = STAGE_NONE;
    for (unsigned j = 0; j < plan->nodes; j++) {
        struct server *server = &nemesis->network->servers[j];
        server->paused_until = server->slowness = 0;
        server->master.store.replicas = REPLICAS_MAX;
        if (server->master.store.is_replica) {
            mishap_promote(nemesis, server);
        }
        server->error_until = server->login_refused_until = 0;
        server->pushes_disturbed_until = 0;
        for (unsigned i = 0; i < plan->processes; i++) {
            struct path *path = &nemesis->network->paths[i][j];
            path->requests_held_until = path->replies_held_until = 0;
            path->latency = least(path->latency, plan->mended_latency);
            path->jitter = least(path->jitter, plan->mended_latency);
        }
    }
    remove_foreign_keys(nemesis);
}

void nemesis_fall_in_step(struct nemesis *nemesis) {
    const struct plan *plan = nemesis->plan;
    for (unsigned i = 0; i < plan->processes; i++) {
        struct event_base *process = &nemesis->apps[i].process;
        tempo_set(&process->clock, nemesis->world->now, 0, 0);
        loops_set_again(process);
        for (unsigned j = 0; j < plan->nodes; j++) {
            struct path *path = &nemesis->network->paths[i][j];
            *path = (struct path){.latency = j % plan->processes == i ? MS / 5 : MS};
        }
    }
}
