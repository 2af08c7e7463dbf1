#include "run.h"

#include "actions.h"
#include "app.h"
#include "check.h"
#include "load.h"
#include "mover.h"
#include "nemesis.h"
#include "network.h"
#include "queue_watch.h"

#include "core/answer_time.h"
#include "node/guard.h"

#include <inttypes.h>
#include <string.h>

struct run {
    struct world world;
    struct plan plan;
    struct network network;
    struct checker checker;
    struct app apps[PROCESSES_MAX];
    struct nemesis nemesis;
    struct mover mover;
    struct queue_watch watch;
};

static void name_keys(struct run *run) {
    for (unsigned i = 0; i < run->plan.keys; i++) {
        /* Longer than the keys that the library keeps in its pool. */
        int padding = run->plan.has_long_keys ? 150 : 1;
        char *key = run->checker.keys[i];
        size_t size = sizeof(run->checker.keys[i]);
        if (run->plan.permits > 0) {
            snprintf(key, size, "key:%0*u:%u", padding, 0, i);
            snprintf(run->checker.semaphore, size, "key:%0*u", padding, 0);
        } else {
            snprintf(key, size, "key:%0*u", padding, i);
        }
    }
    run->checker.permits = run->plan.permits;
}

/* The longest time that a process works on a burst before it sends anything. */
#define TURN_MS 100

/* Returns the longest true time of a duration by a client's clock. */
static uint64_t in_true_time(const struct plan *plan, uint64_t ns) {
    return (uint64_t)((double)ns * (1 + plan->options.drift)) + 2 * MS;
}

static void begin(struct run *run, uint64_t seed, const struct demand *demand, FILE *trace) {
    world_init(&run->world, seed, trace);
    plan_draw(&run->plan, &run->world.rng, demand);
    const struct plan *plan = &run->plan;
    TRACE(&run->world,
          "seed %" PRIu64 ": %u nodes, %u processes, %u workers, %u %s, TTL %" PRIu64 " to "
          "%" PRIu64 " ms, assumption broken: %s",
          seed, plan->nodes, plan->processes, plan->workers, plan->keys,
          plan->permits > 0 ? "permits" : "keys", plan->ttl_least_ms, plan->ttl_most_ms,
          cause_name(plan->cause));
    network_init(&run->network, &run->world, plan->nodes);
    check_init(&run->checker, &run->network, plan->keys);
    run->checker.db = plan->db;
    run->checker.has_caps = plan->options.max_commands < 1000 || plan->options.max_bytes < 65536;
    run->checker.has_duplicate = plan->has_duplicate;
    run->checker.drift = plan->options.drift;
    /* A silent node that is not dropped for seconds keeps many inspections. */
    run->checker.memory_max *= plan->is_distant ? 4 : 1;
    run->checker.keeps_assumptions =
        plan->cause == CAUSE_NONE || plan->cause == CAUSE_PAUSES || plan->cause == CAUSE_RESTARTS;
    run->checker.is_fenced = plan->is_fenced;
    run->checker.wait_replicas = plan->wait_replicas;
    run->checker.has_readers = plan->has_readers;
    run->checker.keeps_counters =
        plan->cause != CAUSE_AMNESIA && plan->cause != CAUSE_RESTARTS && !plan->has_changes;
    run->checker.clocks_jump = plan->cause == CAUSE_CLIENTS;
    run->checker.server_clocks_jump = plan->cause == CAUSE_NODES;
    run->checker.has_guards = plan->options.guards != REDLOCK_GUARDS_OFF;
    uint64_t answer_ms = plan->options.node_timeout_ms;
    answer_ms = answer_ms != 0 ? answer_ms : ANSWER_MARGIN / MS; /* options_max_age */
    run->checker.unseen = in_true_time(plan, (answer_ms + 2000) * MS);
    run->checker.beat_gap = in_true_time(plan, GUARD_BEAT_NANOS + TURN_MS * MS);
    run->checker.closes_idle = plan->options.idle_close_ms > 0;
    run->checker.keep_alive_gap = in_true_time(plan, GUARD_GAP_MAX + TURN_MS * MS);
    run->checker.lasts =
        (uint64_t)((double)plan->options.max_ttl_ms * (1 + plan->options.drift) * (double)MS);
    name_keys(run);
    actions_begin(&run->network, plan, profile_name(demand->profile), demand->actions);
    for (unsigned i = 0; i < plan->processes; i++) {
        app_init(&run->apps[i], plan, &run->checker, i);
        actions_process(&run->apps[i].process);
    }
    for (unsigned i = 0; i < plan->nodes; i++) {
        run->network.servers[i].master.store.is_reticent = plan->is_reticent;
        run->network.servers[i].pattern_subscribers = plan->pattern_subscribers;
        master_seem_old(&run->network.servers[i].master, plan->db);
    }
    queue_watch_init(&run->watch);
    mover_init(&run->mover, &run->world, run->apps, plan);
    nemesis_init(&run->nemesis, &run->network, run->apps, plan);
}

static void enter(struct run *run, enum phase phase) {
    TRACE(&run->world, "phase %d", (int)phase);
    for (unsigned i = 0; i < run->plan.processes; i++) {
        app_enter(&run->apps[i], phase);
    }
}

/* Runs the world until an instant, and checks the queues meanwhile. */
static void run_until(struct run *run, uint64_t until) {
    while (run->world.now < until && !run->world.violated) {
        uint64_t next = run->world.now + QUEUE_WATCH_MS * MS;
        world_run_until(&run->world, next < until ? next : until);
        for (unsigned i = 0; i < run->plan.processes && !run->world.violated; i++) {
            queue_watch_look(&run->watch, &run->apps[i]);
        }
    }
}

static void pass(struct run *run, uint64_t ms) {
    run_until(run, run->world.now + ms * MS);
}

/* Returns the time until the last server that is down is back. */
static uint64_t outage_ms(const struct run *run) {
    uint64_t now = run->world.now;
    uint64_t last = now;
    for (unsigned i = 0; i < run->plan.nodes; i++) {
        uint64_t until = run->network.servers[i].down_until;
        last = until > last ? until : last;
    }
    return (last - now) / MS;
}

/* Returns the time to detect dead connections, to reconnect, and to send all pending releases. */
static uint64_t quiesce_ms(const struct run *run) {
    const redlock_options *options = &run->plan.options;
    return outage_ms(run) + run->nemesis.set_back / MS + 3 * plan_stall_ms(&run->plan) +
           4 * options->reconnect_delay_max_ms + 2000;
}

/* The length of a rest: clients that waited have closed their channels then, and send keep-alives.
 */
#define REST_MS 25000

static void quiesce(struct run *run) {
    nemesis_heal(&run->nemesis);
    mover_rest(&run->mover);
    enter(run, PHASE_QUIESCE);
    pass(run, quiesce_ms(run));
    check_leftovers(&run->checker);
    if (run->plan.has_rest) {
        pass(run, REST_MS);
        check_resting(&run->checker, &run->network);
    }
    for (unsigned i = 0; i < run->plan.processes; i++) {
        app_check_idle(&run->apps[i]);
    }
}

static bool has_finished(const struct run *run) {
    for (unsigned i = 0; i < run->plan.processes; i++) {
        if (!app_has_finished(&run->apps[i])) {
            return false;
        }
    }
    return true;
}

/*
 * Runs until all workers have had their locks, or until `until`. In a queue each acquisition
 * follows the one before within a bound: no waiter is forgotten while the key is free. An entry of
 * a client that died silently costs a reservation.
 */
static void be_served(struct run *run, uint64_t until, uint64_t gap_ms) {
    const struct checker *checker = &run->checker;
    uint64_t acquired = checker->acquired, first = checker->acquired, since = run->world.now;
    while (run->world.now < until && !has_finished(run) && !run->world.violated) {
        pass(run, 100);
        if (checker->acquired != acquired) {
            acquired = checker->acquired;
            since = run->world.now;
        } else if (run->plan.has_one_queue && acquired != first &&
                   run->world.now - since > gap_ms * MS) {
            violate(&run->world, INVARIANT_LIVENESS,
                    "without faults, no waiter has acquired the lock in %" PRIu64 " ms", gap_ms);
        }
    }
}

/*
 * Runs the last phase. Keys of dead processes are gone after a TTL; each request then needs a few
 * tries.
 */
static void be_alive(struct run *run) {
    const struct plan *plan = &run->plan;
    uint64_t requests = plan->processes * plan->workers * plan_last_turns(plan);
    uint64_t round_ms = plan->options.retry_delay_max_ms + 4 * plan_timeout_ms(plan);
    bool has_guards = plan->options.guards != REDLOCK_GUARDS_OFF;
    uint64_t distrusted_ms = has_guards ? plan->options.max_ttl_ms * 3 / 2 + 3000 : 0;
    uint64_t bound_ms = run->nemesis.set_back / MS + distrusted_ms +
                        plan->options.max_ttl_ms * 3 / 2 + plan_stall_ms(plan) + 3000 +
                        requests * 20 * round_ms;
    uint64_t until = run->world.now + bound_ms * MS;
    if (plan->in_step) {
        nemesis_fall_in_step(&run->nemesis);
    }
    enter(run, PHASE_LAST);
    be_served(run, until, 3000 + 20 * round_ms + plan->processes * plan->workers * 1000);
    bool is_hopeless = has_guards && plan->cause == CAUSE_RATES; /* such clocks are never trusted */
    if (!has_finished(run) && !is_hopeless) {
        violate(&run->world, INVARIANT_LIVENESS,
                "without faults, a request has not got its lock in %" PRIu64 " ms", bound_ms);
    }
}

static void end(struct run *run) {
    enter(run, PHASE_END);
    pass(run, 5000);
    for (unsigned i = 0; i < run->plan.processes; i++) {
        app_check_end(&run->apps[i]);
    }
}

static void report(const struct run *run, uint64_t began_at, struct run_result *result) {
    const struct checker *checker = &run->checker;
    *result = (struct run_result){.cause = run->plan.cause,
                                  .violated = run->world.found,
                                  .events = run->world.events,
                                  .simulated = run->world.now - began_at,
                                  .acquired = checker->acquired,
                                  .lost = checker->lost,
                                  .failed = checker->failed,
                                  .released = checker->released,
                                  .overlaps = checker->overlaps,
                                  .fenced = checker->fenced,
                                  .stayed = checker->stayed,
                                  .raised = checker->raised,
                                  .from_ranges = checker->from_ranges,
                                  .permits_held = checker->permits_held,
                                  .permits_second = checker->permits_second,
                                  .permits_later = checker->permits_later,
                                  .shared = checker->shared,
                                  .looks = checker->looks,
                                  .excused = checker->excused,
                                  .waiting = checker->waiting,
                                  .passed = checker->passed,
                                  .handed_over = checker->handed_over};
    memcpy(result->violation, run->world.violation, sizeof(result->violation));
}

static void finish(struct run *run) {
    actions_end(&run->world);
    for (unsigned i = 0; i < run->plan.processes; i++) {
        app_finish(&run->apps[i]);
    }
    network_finish(&run->network);
    check_finish(&run->checker);
    world_finish(&run->world);
}

void run_seed(uint64_t seed, const struct demand *demand, FILE *trace, struct run_result *result) {
    static struct run run; /* large; cleared for each run */
    bool is_burst = demand->profile == PROFILE_DISTANCE && seed % 100 == 0;
    if (demand->profile == PROFILE_LOAD || is_burst) {
        load_run(seed, is_burst, trace, result);
        return;
    }
    memset(&run, 0, sizeof(run));
    begin(&run, seed, demand, trace);
    uint64_t began_at = run.world.now;
    run_until(&run, began_at + run.plan.duration);
    if (!run.world.violated) {
        quiesce(&run);
    }
    if (!run.world.violated) {
        be_alive(&run);
    }
    if (!run.world.violated) {
        end(&run);
    }
    report(&run, began_at, result);
    finish(&run);
}
