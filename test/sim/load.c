#include "load.h"

#include "check_load.h"
#include "core/ticks.h"

#include <inttypes.h>
#include <string.h>

/* ---- the plan ---- */

static unsigned draw_locks(struct rng *rng) {
    unsigned size = (unsigned)rng_below(rng, 1000);
    return (unsigned)(size < 550   ? rng_between(rng, 100, 300)
                      : size < 920 ? rng_between(rng, 300, 1000)
                                   : rng_between(rng, 1000, 5000));
}

static void draw_options(struct load_plan *plan, struct rng *rng) {
    redlock_options *options = &plan->options;
    *options = (redlock_options)REDLOCK_OPTIONS_INIT;
    options->node_timeout_ms = rng_between(rng, 10, 60);
    options->stall_timeout_ms = rng_between(rng, 150, 400);
    options->max_ttl_ms = plan->ttl_ms;
    options->retry_delay_ms = rng_between(rng, 10, 80);
    options->retry_delay_max_ms = options->retry_delay_ms * rng_between(rng, 2, 4);
    options->reconnect_delay_ms = rng_between(rng, 5, 50);
    options->reconnect_delay_max_ms = options->reconnect_delay_ms * rng_between(rng, 1, 3);
    options->guards = rng_chance(rng, 500) ? REDLOCK_GUARDS_ON : REDLOCK_GUARDS_OFF;
    if (rng_chance(rng, 200)) {
        options->max_commands = (uint32_t)rng_between(rng, 24, 128);
    }
}

/* Draws rates that are ample for the renewals, but not for all of them at once. */
static void draw_rates(struct load_plan *plan, struct rng *rng) {
    uint64_t locks = plan->locks * plan->crowds;
    uint64_t interval = plan->ttl_ms * MS / 3;
    uint64_t longest = interval / (locks * rng_between(rng, 2, 10));
    plan->key_time = longest < 300000 ? longest : rng_between(rng, 50000, 300000);
    plan->command_time = rng_between(rng, 5000, 50000);
    plan->socket_size = rng_between(rng, 4, 64) * 1024;
    uint64_t window = plan->options.node_timeout_ms * MS / 4 /
                      ((plan->key_time + plan->command_time) * plan->crowds);
    uint64_t most = plan->options.max_commands / 4 < 32 ? plan->options.max_commands / 4 : 32;
    plan->window = (unsigned)(window < 4 ? 4 : window > most ? most : window);
    plan->cost = rng_between(rng, 100, 400);
}

/* Draws a number of simultaneous requests that leaves the masters time for the renewals. */
static void draw_contention(struct load_plan *plan, struct rng *rng) {
    uint64_t each = 3 * (plan->key_time + plan->command_time) * plan->crowds;
    uint64_t most = plan->ttl_ms * MS / 8 / each;
    most = most < 2000 ? most : 2000;
    if (rng_chance(rng, 500) && most > 10) {
        plan->contenders = (unsigned)rng_between(rng, most / 2, most);
        plan->contested_nodes = (unsigned)rng_between(rng, 1, plan->nodes / 2 + 1);
    }
}

/* Draws a queue that fills soon; a node's pending releases have the same bound, or 64 KiB. */
static void draw_bytes(struct load_plan *plan, struct rng *rng) {
    uint64_t owed = (plan->locks + plan->contenders) * 220;
    uint64_t least = owed > 64 * 1024 ? owed : 12 * 1024;
    if (rng_chance(rng, 300)) {
        plan->options.max_bytes = rng_between(rng, least, least + 12 * 1024);
    }
}

/*
 * Returns whether all locks may be requested at once: the queues have room, and the application
 * waits for the answers.
 */
static bool may_burst(const struct load_plan *plan) {
    return plan->locks <= 1000 && plan->options.max_commands > 2 * plan->locks &&
           plan->options.max_bytes > 500 * (size_t)plan->locks;
}

static void plan_draw_load(struct load_plan *plan, struct rng *rng) {
    *plan = (struct load_plan){0};
    plan->nodes = rng_chance(rng, 400) ? 3 : 5;
    plan->locks = draw_locks(rng);
    plan->crowds =
        plan->locks <= 300 && rng_chance(rng, 150) ? (unsigned)rng_between(rng, 2, 3) : 1;
    plan->ttl_ms = rng_between(rng, 1500, 9000);
    plan->fenced = rng_chance(rng, 300) ? 200 : 0;
    plan->is_burst = rng_chance(rng, 500);
    plan->has_majority_faults = rng_chance(rng, 550);
    plan->incidents = (unsigned)rng_between(rng, 0, 4);
    draw_options(plan, rng);
    draw_rates(plan, rng);
    draw_contention(plan, rng);
    draw_bytes(plan, rng);
    plan->is_burst &= may_burst(plan);
}

/* Draws options: mostly the defaults, so that timeouts follow the answers. */
static void draw_burst_options(struct load_plan *plan, struct rng *rng) {
    redlock_options *options = &plan->options;
    *options = (redlock_options)REDLOCK_OPTIONS_INIT;
    if (rng_chance(rng, 300)) { /* enough for one answer, not for a queue of them */
        options->node_timeout_ms =
            distance_round_trip(&plan->distance) / MS + rng_between(rng, 50, 200);
    }
    if (rng_chance(rng, 500)) { /* some requests wait for room */
        options->max_commands = (uint32_t)rng_between(rng, 2048, 16384);
    }
}

/*
 * Draws a burst from a client far from its nodes. In some worlds the nodes need longer for it than
 * a heartbeat proves anything.
 */
static void plan_draw_burst(struct load_plan *plan, struct rng *rng) {
    bool is_slow = rng_chance(rng, 250);
    *plan = (struct load_plan){.is_distant = true, .is_burst = true, .crowds = 1};
    plan->nodes = rng_chance(rng, 400) ? 3 : 5;
    plan->locks = 10000;
    plan->ttl_ms = rng_between(rng, 10000, 30000);
    plan->distance = distance_draw(rng);
    draw_burst_options(plan, rng);
    plan->is_brief = is_slow || rng_chance(rng, 600);
    /* The first answers take longer: the timeout is enough if it follows the answers. */
    plan->is_early = plan->options.node_timeout_ms == 0 && rng_chance(rng, 300);
    plan->key_time = is_slow ? 250000 : rng_between(rng, 5000, 50000);
    plan->command_time = rng_between(rng, 5000, 50000);
    plan->socket_size = rng_between(rng, 256, 1024) * 1024;
    plan->cost = rng_between(rng, 20, 100);
}

/* ---- the beginning ---- */

static void connect_paths(struct load_world *load) {
    if (load->plan.is_distant) {
        distance_set(&load->plan.distance, &load->network, load->plan.crowds);
        return;
    }
    struct rng *rng = &load->world.rng;
    for (unsigned i = 0; i < load->plan.crowds; i++) {
        for (unsigned j = 0; j < load->plan.nodes; j++) {
            struct path *path = &load->network.paths[i][j];
            path->latency = rng_between(rng, MS / 20, MS);
            path->jitter = rng_between(rng, 0, MS);
        }
    }
}

static void begin(struct load_world *load, uint64_t seed, bool is_distant, FILE *trace) {
    struct world *world = &load->world;
    struct load_plan *plan = &load->plan;
    world_init(world, seed, trace);
    (is_distant ? plan_draw_burst : plan_draw_load)(plan, &world->rng);
    TRACE(world,
          "seed %" PRIu64 ": %u nodes, %u clients of %u locks, TTL %" PRIu64 " ms, %" PRIu64
          " us a key, %u incidents%s",
          seed, plan->nodes, plan->crowds, plan->locks, plan->ttl_ms, plan->key_time / 1000,
          plan->incidents, plan->has_majority_faults ? " of any kind" : "");
    network_init(&load->network, world, plan->nodes);
    check_init(&load->checker, &load->network, 0);
    load->checker.load = load;
    load->network.socket_size = plan->socket_size;
    connect_paths(load);
    for (unsigned i = 0; i < plan->nodes; i++) {
        master_seem_old(&load->network.servers[i].master, 0);
        load->up_since[i] = world->now - 100000 * MS;
    }
    for (unsigned i = 0; i < plan->crowds; i++) {
        crowd_init(&load->crowds[i], load, i);
    }
}

/* ---- time ---- */

static void pass(struct load_world *load, uint64_t ns) {
    world_run_until(&load->world, load->world.now + ns);
}

static uint64_t ttl_of(const struct load_world *load) {
    return load->plan.ttl_ms * MS;
}

static void disturb(struct load_world *load, uint64_t until) {
    for (unsigned i = 0; i < load->plan.crowds; i++) {
        check_load_disturbed(load, &load->crowds[i], until);
    }
}

static bool all(const struct load_world *load, bool (*holds)(const struct crowd *crowd)) {
    bool is_so = true;
    for (unsigned i = 0; i < load->plan.crowds; i++) {
        is_so &= holds(&load->crowds[i]);
    }
    return is_so;
}

/* Waits until `holds` is true of all crowds, at most for the limit in ms. */
static void wait_for(struct load_world *load, bool (*holds)(const struct crowd *crowd),
                     const char *what, uint64_t most_ms) {
    uint64_t until = load->world.now + most_ms * MS;
    while (!all(load, holds) && !load->world.violated) {
        if (load->world.now >= until) {
            violate(&load->world, INVARIANT_LIVENESS, "%s takes longer than %" PRIu64 " ms", what,
                    most_ms);
        }
        pass(load, 10 * MS);
    }
}

static void set_rates(struct load_world *load) {
    load->network.command_time = load->plan.command_time;
    load->network.key_time = load->plan.key_time;
}

/* ---- acquiring ---- */

/* Returns whether a client has other ticks after it has acquired all locks than before. */
static bool changes_ticks(const struct load_plan *plan) {
    struct ticks ticks;
    uint64_t seed = 0;
    ticks_init(&ticks, plan->options.max_commands, &seed);
    uint32_t before = ticks.count;
    for (unsigned i = 0; i < plan->locks; i++) {
        ticks_add(&ticks);
    }
    return ticks.count != before;
}

static void acquire(struct load_world *load) {
    if (!load->plan.is_burst || load->plan.is_distant) {
        set_rates(load);
    }
    for (unsigned i = 0; i < load->plan.crowds; i++) {
        crowd_wish(&load->crowds[i], CROWD_BEGIN);
        /* Renewals of a burst that has not ended yet are not spread. */
        load->crowds[i].steady_from = load->plan.is_distant ? NEVER / 2 : 0;
    }
    wait_for(load, crowd_has_all, "acquiring all locks", 120000);
    set_rates(load);
    if (load->plan.is_distant) { /* the first renewals follow the burst */
        load->crowds[0].steady_from = load->world.now;
        disturb(load, load->world.now);
    }
    if (changes_ticks(&load->plan)) {
        load->ticks_until = load->world.now + 2 * ttl_of(load) / 3;
    }
    TRACE(&load->world, "all locks are acquired");
}

/* ---- incidents ---- */

static uint64_t draw(struct load_world *load, uint64_t below) {
    return rng_below(&load->world.rng, below);
}

static bool coin(struct load_world *load) {
    return rng_chance(&load->world.rng, 500);
}

static struct crowd *any_crowd(struct load_world *load) {
    return &load->crowds[draw(load, load->plan.crowds)];
}

/* Keeps the loop from running, for up to 1/2 of the TTL. */
static void keep_away(struct load_world *load) {
    struct crowd *crowd = any_crowd(load);
    uint64_t ns = ttl_of(load) / 20 + draw(load, ttl_of(load) * 9 / 20);
    if (crowd->process.is_running || coin(load)) {
        crowd_be_busy(crowd, ns, coin(load));
    } else {
        TRACE(&load->world, "process %u is paused", crowd->process.index);
        process_pause(&crowd->process, load->world.now + ns);
    }
    disturb(load, load->world.now + ns + 200 * MS);
}

/* Takes a server down: it is silent for a while, or is killed and restarted with its data. */
static void take_down(struct load_world *load, unsigned index, uint64_t until, bool is_killed) {
    struct server *server = &load->network.servers[index];
    TRACE(&load->world, "node %u is %s", index, is_killed ? "killed" : "stopped");
    load->up_since[index] = NEVER;
    load->down_at = load->world.now;
    if (is_killed) {
        server->is_gone = coin(load);
        server_break(server);
        server->down_until = until;
        server->busy_until = 0;
        master_start(&server->master, until);
    } else {
        server->paused_until = until;
    }
}

static void bring_back(struct load_world *load) {
    load->back_at = load->world.now;
    for (unsigned i = 0; i < load->plan.nodes; i++) {
        load->up_since[i] = load->up_since[i] == NEVER ? load->world.now : load->up_since[i];
    }
}

/* Takes down a minority of the servers; in worlds with such faults, a majority. */
static void lose_servers(struct load_world *load) {
    const struct load_plan *plan = &load->plan;
    unsigned minority = (plan->nodes - 1) / 2;
    bool is_majority = plan->has_majority_faults && rng_chance(&load->world.rng, 700);
    unsigned count = is_majority ? minority + 1 + (unsigned)draw(load, plan->nodes - minority)
                                 : 1 + (unsigned)draw(load, minority);
    unsigned first = (unsigned)draw(load, plan->nodes);
    uint64_t ns = ttl_of(load) / 10 + draw(load, ttl_of(load) * 13 / 10);
    bool is_killed = coin(load);
    disturb(load, load->world.now + ns + plan->options.stall_timeout_ms * MS * 2);
    for (unsigned i = 0; i < count; i++) {
        take_down(load, (first + i) % plan->nodes, load->world.now + ns, is_killed);
    }
    if (!is_majority && coin(load)) {
        keep_away(load);
    }
    pass(load, ns);
    bring_back(load);
}

static bool is_not_busy(const struct crowd *crowd) {
    return !crowd_is_busy(crowd) && !crowd->process.is_paused;
}

/*
 * Causes one incident, and leaves the locks time until the next: each must be topped up at the
 * nodes that lost it.
 */
static void have_incident(struct load_world *load) {
    if (rng_chance(&load->world.rng, 450)) {
        keep_away(load);
    } else {
        lose_servers(load);
    }
    wait_for(load, is_not_busy, "being busy", 20000);
    pass(load, ttl_of(load) * 2 / 3 + draw(load, ttl_of(load)));
}

/* ---- contention ---- */

static void hold_for_another(struct load_world *load, struct server *server) {
    const struct load_plan *plan = &load->plan;
    for (unsigned i = 0; i < plan->crowds * plan->contenders; i++) {
        char name[32];
        int length = snprintf(name, sizeof(name), "crowd%u:%u", i / plan->contenders,
                              plan->locks + i % plan->contenders);
        struct words words = {
            .count = 5,
            .word = {{"SET", 3}, {name, (size_t)length}, {"foreign", 7}, {"PX", 2}, {"600000", 6}}};
        server->master.store.db = 0;
        master_run(&server->master, &words);
    }
}

static bool has_contended(const struct crowd *crowd) {
    return !crowd_contends(crowd);
}

static void contend(struct load_world *load) {
    const struct load_plan *plan = &load->plan;
    TRACE(&load->world, "%u requests for what others hold at %u nodes", plan->contenders,
          plan->contested_nodes);
    for (unsigned i = 0; i < plan->contested_nodes; i++) {
        hold_for_another(load, &load->network.servers[i]);
    }
    for (unsigned i = 0; i < plan->crowds; i++) {
        crowd_wish(&load->crowds[i], CROWD_CONTEND);
    }
    disturb(load, load->world.now + ttl_of(load) / 2);
    wait_for(load, has_contended, "asking for what others hold", 20000);
}

/* ---- the end ---- */

static bool is_closed(const struct crowd *crowd) {
    return crowd->is_closed;
}

static void end(struct load_world *load) {
    for (unsigned i = 0; i < load->plan.crowds; i++) {
        crowd_wish(&load->crowds[i], CROWD_CLOSE);
    }
    wait_for(load, is_closed, "closing", 7000);
    for (unsigned i = 0; i < load->plan.crowds; i++) {
        const struct crowd *crowd = &load->crowds[i];
        if (crowd->is_closed && crowd->process.block_count != 0) {
            violate(&load->world, INVARIANT_BOUNDS, "the client has ended and left %zu bytes",
                    crowd->process.bytes);
        }
    }
}

static void report(const struct load_world *load, uint64_t began_at, struct run_result *result) {
    *result = (struct run_result){.cause = CAUSE_NONE,
                                  .violated = load->world.violated,
                                  .events = load->world.events,
                                  .simulated = load->world.now - began_at,
                                  .acquired = load->acquired,
                                  .failed = load->failed,
                                  .lost = load->lost};
    memcpy(result->violation, load->world.violation, sizeof(result->violation));
}

static void finish(struct load_world *load) {
    for (unsigned i = 0; i < load->plan.crowds; i++) {
        crowd_finish(&load->crowds[i]);
    }
    network_finish(&load->network);
    check_finish(&load->checker);
    world_finish(&load->world);
}

void load_run(uint64_t seed, bool is_distant, FILE *trace, struct run_result *result) {
    static struct load_world load; /* large; cleared for each run */
    memset(&load, 0, sizeof(load));
    begin(&load, seed, is_distant, trace);
    uint64_t began_at = load.world.now;
    pass(&load, is_distant && !load.plan.is_early ? 5000 * MS : 0);
    acquire(&load);
    pass(&load, ttl_of(&load) / 3 + draw(&load, ttl_of(&load)));
    for (unsigned i = 0; i < load.plan.incidents && !load.world.violated; i++) {
        have_incident(&load);
    }
    if (load.plan.contenders > 0 && !load.world.violated) {
        contend(&load);
    }
    if (!load.world.violated) {
        end(&load);
    }
    report(&load, began_at, result);
    finish(&load);
}
