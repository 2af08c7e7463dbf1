#include "plan.h"

#include "core/answer_time.h"

const char *cause_name(enum cause cause) {
    static const char *const names[CAUSE_COUNT] = {
        "none",  "lost_keys",     "amnesia", "node_clocks",
        "rates", "client_clocks", "pauses",  "restarts",
    };
    return names[cause];
}

const char *profile_name(enum profile profile) {
    static const char *const names[] = {"kept", "broken", "guarded", "moving", "load", "distance"};
    return profile < PROFILE_COUNT ? names[profile] : NULL;
}

uint64_t plan_timeout_ms(const struct plan *plan) {
    uint64_t fixed = plan->options.node_timeout_ms;
    /* Answers that faults delay count, too. */
    uint64_t longest = plan_is_calm(plan) ? ANSWER_TIMEOUT_FIRST : ANSWER_TIMEOUT_MAX;
    return fixed != 0 ? fixed : longest / MS;
}

uint64_t plan_stall_ms(const struct plan *plan) {
    uint64_t fixed = plan->options.stall_timeout_ms;
    return fixed != 0 ? fixed : 2 * plan_timeout_ms(plan);
}

uint64_t plan_round_trip(const struct plan *plan) {
    return distance_round_trip(&plan->distance) + 2 * (plan->lateness + MS);
}

static unsigned draw_nodes(struct rng *rng) {
    static const unsigned usual[] = {3, 5, 5, 3, 5, 1, 2, 4, 7, 9};
    return usual[rng_below(rng, sizeof(usual) / sizeof(usual[0]))];
}

static double draw_drift(struct rng *rng) {
    static const double some[] = {0.01, 0.01, 0.01, 0.001, 0.05, 0.0, 0.1};
    return some[rng_below(rng, sizeof(some) / sizeof(some[0]))];
}

static void draw_options(struct plan *plan, struct rng *rng) {
    redlock_options *options = &plan->options;
    *options = (redlock_options)REDLOCK_OPTIONS_INIT;
    options->node_timeout_ms = rng_between(rng, 10, 60);
    options->stall_timeout_ms = rng_between(rng, 100, 600);
    options->drift = draw_drift(rng);
    options->retry_delay_ms = rng_between(rng, 10, 80);
    options->retry_delay_max_ms = options->retry_delay_ms * rng_between(rng, 2, 8);
    options->reconnect_delay_ms = rng_between(rng, 5, 50);
    options->reconnect_delay_max_ms = options->reconnect_delay_ms * rng_between(rng, 1, 6);
    if (rng_chance(rng, 100)) { /* the minimum, or slightly more */
        options->max_commands = (uint32_t)rng_between(rng, 16, 24);
    }
}

/* Draws options at their lower bounds. */
static void draw_least(struct plan *plan, struct rng *rng) {
    redlock_options *options = &plan->options;
    if (rng_chance(rng, 80)) {
        options->node_timeout_ms = rng_between(rng, 1, 8);
    }
    if (rng_chance(rng, 150)) { /* often below node_timeout, but enough for a new connection */
        options->stall_timeout_ms = rng_between(rng, 30, 80);
    }
    if (rng_chance(rng, 50)) {
        options->max_bytes = 4096;
    }
    if (rng_chance(rng, 50)) {
        options->max_commands = 16;
    }
    if (rng_chance(rng, 100)) {
        options->retry_delay_ms = rng_between(rng, 1, 3);
        options->retry_delay_max_ms = rng_between(rng, 20, 80); /* several round trips */
        options->reconnect_delay_ms = 1;
        options->reconnect_delay_max_ms = rng_between(rng, 1, 20);
    }
}

static enum cause draw_cause(struct rng *rng, enum profile profile) {
    switch (profile) {
    case PROFILE_BROKEN:
        return (enum cause)rng_between(rng, CAUSE_AMNESIA, CAUSE_PAUSES);
    case PROFILE_GUARDED:
        return CAUSE_RESTARTS;
    case PROFILE_MOVING:
        return rng_chance(rng, 400) ? CAUSE_RESTARTS : CAUSE_NONE;
    default:
        return CAUSE_NONE;
    }
}

/* Draws a run several times as long as the longest TTL. */
static void draw_long(struct plan *plan, struct rng *rng) {
    plan->ttl_least_ms = rng_between(rng, 60, 300);
    plan->ttl_most_ms = plan->ttl_least_ms * rng_between(rng, 1, 5);
    plan->options.max_ttl_ms = plan->ttl_most_ms;
    plan->duration = rng_between(rng, 3000, 9000) * MS;
    plan->fault_every = rng_between(rng, 200, 1500) * MS;
}

/*
 * Draws TTLs that are long enough for guards to detect a loss with a delay, while a client relies
 * on the lost keys.
 */
static void draw_long_ttls(struct plan *plan, struct rng *rng) {
    plan->has_long_ttls = true;
    plan->ttl_least_ms = rng_between(rng, 2000, 4000);
    plan->ttl_most_ms = plan->ttl_least_ms * rng_between(rng, 1, 2);
    plan->options.max_ttl_ms = plan->ttl_most_ms;
    plan->think_ms = rng_between(rng, 20, 800);
    plan->hold_ms = plan->ttl_most_ms;
    plan->wait_ms = plan->ttl_most_ms * 2;
    plan->duration = (plan->ttl_most_ms + rng_between(rng, 3000, 8000)) * MS;
    plan->fault_every = rng_between(rng, 300, 2000) * MS;
}

/* Draws crowds of questions, which keep queues full for seconds. */
static void draw_questions(struct plan *plan, struct rng *rng) {
    redlock_options *options = &plan->options;
    plan->slow_paths = (unsigned)rng_between(rng, 500, 1000);
    plan->slow_latency = rng_between(rng, 50 * MS, 150 * MS);
    plan->questions = (unsigned)rng_between(rng, 1, 3);
    plan->questions_every = rng_between(rng, 5 * MS, 15 * MS);
    options->node_timeout_ms = plan->slow_latency * 2 / MS + rng_between(rng, 60, 200);
    options->stall_timeout_ms = options->node_timeout_ms + rng_between(rng, 100, 600);
    options->max_commands = 16;
}

/*
 * Draws many acquisitions by clients that notice little, while others hold the keys for long and
 * nodes lose them.
 */
static void draw_hurry(struct plan *plan, struct rng *rng) {
    plan->has_hurry = true;
    plan->nodes = (unsigned)rng_between(rng, 1, 3);
    plan->processes = (unsigned)rng_between(rng, 2, 3);
    plan->workers = (unsigned)rng_between(rng, 2, 3);
    plan->keys = (unsigned)rng_between(rng, 1, 2);
    plan->ttl_least_ms = plan->ttl_most_ms = plan->options.max_ttl_ms =
        rng_between(rng, 5000, 7000);
    plan->hold_ms = plan->ttl_most_ms;
    plan->duration = 20000 * MS;
    plan->fault_every = rng_between(rng, 500, 1500) * MS;
    plan->think_ms = rng_between(rng, 10, 100);
    plan->options.retry_delay_ms = rng_between(rng, 1, 4);
    plan->options.retry_delay_max_ms = rng_between(rng, 20, 60);
    if (rng_chance(rng, 300)) {
        draw_questions(plan, rng);
    } else { /* a pause delays commands until long after the last heartbeat */
        plan->preemptions = (unsigned)rng_between(rng, 4, 16);
        plan->preempted_for = rng_between(rng, 5000, 6500) * MS;
    }
}

/* Draws the faults that guards are for. */
static void draw_mishaps(struct plan *plan, struct rng *rng) {
    uint32_t all = (UINT32_C(1) << plan->nodes) - 1;
    plan->has_losses = plan->has_hurry || rng_chance(rng, 500);
    plan->has_jumps = !plan->has_duplicate && !plan->has_changes && rng_chance(rng, 400);
    plan->has_jumps &= !plan->has_hurry;
    if (plan->has_jumps && plan->preempted_for > 1000 * MS) {
        plan->preempted_for = 1000 * MS; /* otherwise a reading of a clock may be worthless */
    }
    plan->durable = rng_chance(rng, plan->has_jumps ? 400 : 800) ? 0
                    : rng_chance(rng, 500)                       ? all
                                                                 : all & (uint32_t)rng_next(rng);
}

/* Draws runs in which restarted nodes are trusted again, and restarted again. */
static void draw_guarded(struct plan *plan, struct rng *rng) {
    draw_long(plan, rng);
    if (rng_chance(rng, 350)) {
        draw_long_ttls(plan, rng);
        if (rng_chance(rng, 600)) {
            draw_hurry(plan, rng);
        }
    }
    plan->has_duplicate = plan->nodes > 1 && plan->nodes < 9 && rng_chance(rng, 150);
}

/*
 * Draws acquisitions that stay open for longer than the TTL of other locks, while a node restarts:
 * one process has the longest TTL and holds its locks briefly, another one renews short locks.
 */
static void draw_open(struct plan *plan, struct rng *rng) {
    redlock_options *options = &plan->options;
    plan->has_open = true;
    plan->has_losses = plan->has_jumps = plan->has_duplicate = false;
    plan->has_sets = plan->has_readers = plan->has_one_queue = plan->has_min_holds = false;
    plan->durable = 0;
    plan->nodes = 3;
    plan->processes = 2;
    plan->workers = plan->keys = 1;
    plan->permits = plan->preemptions = plan->failures = plan->wait_replicas = 0;
    plan->lock_delay_ms = plan->look_ms = 0;
    plan->ttl_least_ms = rng_between(rng, 150, 200);
    plan->ttl_most_ms = options->max_ttl_ms = 16 * plan->ttl_least_ms;
    plan->think_ms = 50;
    plan->hold_ms = plan->wait_ms = plan->ttl_most_ms;
    plan->latency = plan->jitter = rng_between(rng, MS / 10, 2 * MS);
    options->node_timeout_ms = plan->ttl_most_ms;
    options->stall_timeout_ms = plan->ttl_most_ms + 500;
    options->max_commands = 1024;
    plan->duration = 30000 * MS;
    plan->fault_every = rng_between(rng, 100, 300) * MS;
}

/*
 * Draws locks that are held for long, while others wait for them and one node fails after the
 * other: none may be lost, because each node comes back before the next fails.
 */
static void draw_turns(struct plan *plan, struct rng *rng) {
    redlock_options *options = &plan->options;
    plan->has_turns = true;
    plan->has_open = plan->has_duplicate = plan->has_jumps = plan->has_min_holds = false;
    plan->has_long_ttls = plan->has_hurry = plan->has_losses = plan->has_rest = false;
    plan->durable = 0;
    plan->nodes = rng_chance(rng, 700) ? 3 : 5;
    plan->processes = (unsigned)rng_between(rng, 2, 3);
    plan->workers = 1;
    plan->permits = rng_chance(rng, 300);
    plan->has_readers &= plan->permits == 0;
    plan->keys = plan->has_sets && plan->permits == 0 ? 2 : 1;
    plan->preemptions = plan->failures = plan->wait_replicas = 0;
    plan->lock_delay_ms = plan->lateness = 0;
    plan->ttl_least_ms = plan->ttl_most_ms = options->max_ttl_ms = rng_between(rng, 1500, 4000);
    plan->think_ms = 1000;
    plan->hold_ms = 60000;
    plan->latency = plan->jitter = rng_between(rng, MS / 10, 2 * MS);
    options->node_timeout_ms = rng_between(rng, 50, 250);
    options->stall_timeout_ms = 2 * options->node_timeout_ms;
    options->reconnect_delay_max_ms = rng_between(rng, options->reconnect_delay_ms, 1000);
    options->max_commands = 1024;
    plan->duration = 100000 * MS;
    plan->fault_every = 1; /* the turns have times of their own */
}

/*
 * Draws nodes that become replicas, still accept writes, and lose them whenever they take over
 * their master's memory; and TTLs longer than the change can stay undetected.
 */
static void draw_replicas(struct plan *plan, struct rng *rng) {
    draw_long_ttls(plan, rng);
    plan->has_replicas = true;
    plan->has_losses = plan->has_jumps = plan->has_duplicate = plan->is_reticent = false;
    plan->durable = 0;
    plan->nodes = 3;
    plan->processes = 3;
    plan->preemptions = plan->failures = plan->wait_replicas = 0;
    plan->lock_delay_ms = 0;
    plan->hold_ms = plan->ttl_least_ms;
    plan->duration = 20000 * MS;
}

/* Draws replacements of servers, and long holds, so that locks outlive a replacement. */
static void draw_moving(struct plan *plan, struct rng *rng) {
    draw_long(plan, rng);
    plan->has_changes = true;
    plan->nodes = (unsigned)rng_between(rng, 2, 9);
    plan->hold_ms = plan->ttl_most_ms * rng_between(rng, 1, 4);
}

/* Draws one semaphore that more workers want than it has permits. */
static void draw_permits(struct plan *plan, struct rng *rng) {
    if (rng_chance(rng, 150)) {
        plan->permits = (unsigned)rng_between(rng, 2, KEYS_MAX);
        plan->keys = plan->permits; /* one key for each permit */
        plan->has_sets = false;
    }
}

/*
 * Draws a queue for one key: requests on the same terms, mostly with long waits, that hold their
 * locks for a few round trips, so that keys are passed on and handed over all the time.
 */
static void draw_one_queue(struct plan *plan, struct rng *rng) {
    if (plan->permits > 0 || plan->has_readers || plan->has_hurry || !rng_chance(rng, 250)) {
        return;
    }
    plan->has_one_queue = true;
    plan->has_sets = false;
    plan->keys = 1;
    plan->workers = (unsigned)rng_between(rng, 1, WORKERS_MAX);
    plan->ttl_least_ms = plan->ttl_most_ms;
    plan->think_ms = rng_between(rng, 1, 40);
    plan->hold_ms = rng_chance(rng, 800) ? rng_between(rng, 1, 40) : plan->ttl_most_ms;
    plan->wait_ms = rng_between(rng, 500, 5000);
    plan->wait_replicas = 0;
}

/*
 * Draws fenced locks that a process holds for long and hands over inside its client, while another
 * process requests the key all the time, and so gets it at nodes that have lost it before a late
 * top-up arrives there.
 */
static void draw_late_top_ups(struct plan *plan, struct rng *rng) {
    redlock_options *options = &plan->options;
    plan->cause = CAUSE_KEYS;
    plan->has_hurry = plan->is_fenced = true;
    plan->has_sets = plan->has_readers = plan->has_one_queue = plan->has_min_holds = false;
    plan->nodes = 3;
    plan->processes = 2;
    plan->workers = 3;
    plan->keys = 1;
    plan->permits = plan->preemptions = plan->failures = plan->wait_replicas = 0;
    plan->lock_delay_ms = 0;
    plan->ttl_least_ms = plan->ttl_most_ms = options->max_ttl_ms = rng_between(rng, 1500, 3000);
    plan->hold_ms = plan->ttl_most_ms;
    plan->wait_ms = 4 * plan->ttl_most_ms;
    plan->think_ms = rng_between(rng, 60, 120);
    plan->latency = plan->jitter = rng_between(rng, MS / 10, 2 * MS);
    plan->most_ppm = (int64_t)(options->drift / 2 * 1000000);
    options->node_timeout_ms = 50;
    options->stall_timeout_ms = plan->ttl_most_ms;
    options->max_commands = 1024;
    options->max_local_handoffs = 64;
    plan->duration = 20000 * MS;
    plan->fault_every = rng_between(rng, 200, 600) * MS;
}

/* Draws readers that hold a key for long, while a process that waits for it hangs. */
static void draw_hung(struct plan *plan, struct rng *rng) {
    plan->has_hung = true;
    plan->has_brief_readers = plan->duration / MS % 8 == 1;
    plan->is_fenced = plan->has_min_holds = false;
    plan->nodes = plan->processes = plan->workers = 3;
    plan->keys = 1;
    plan->preemptions = plan->failures = plan->wait_replicas = 0;
    plan->lock_delay_ms = 0;
    plan->ttl_least_ms = rng_between(rng, 150, 300);
    plan->ttl_most_ms = plan->options.max_ttl_ms = 2 * plan->ttl_least_ms;
    plan->hold_ms = 8000;
    plan->wait_ms = 10000;
    plan->think_ms = rng_between(rng, 50, 200);
    plan->duration = 20000 * MS;
    plan->fault_every = rng_between(rng, 500, 1500) * MS;
}

static void draw_handovers(struct plan *plan, struct rng *rng) {
    static const uint32_t some[] = {64, 64, 64, 0, 1, 2};
    plan->options.handover =
        rng_chance(rng, 300) ? REDLOCK_HANDOVER_CONFIRM : REDLOCK_HANDOVER_PUSH;
    plan->options.max_local_handoffs = some[rng_below(rng, sizeof(some) / sizeof(some[0]))];
}

/* Draws TTLs: short ones cause races at their end, long ones expose keys that are left behind. */
static void draw_ttls(struct plan *plan, struct rng *rng) {
    if (rng_chance(rng, 400)) {
        plan->ttl_least_ms = 8000;
        plan->ttl_most_ms = 20000;
    } else {
        plan->ttl_least_ms = rng_between(rng, 60, 300);
        plan->ttl_most_ms = plan->ttl_least_ms * rng_between(rng, 1, 5);
    }
    plan->options.max_ttl_ms = plan->ttl_most_ms;
}

static void draw_stays(struct plan *plan, struct rng *rng) {
    plan->has_min_holds = rng_chance(rng, 200);
    plan->lock_delay_ms = rng_chance(rng, 200) ? rng_between(rng, 1, 800) : 0;
    plan->options.max_ttl_ms += plan->lock_delay_ms;
    plan->wait_replicas = rng_chance(rng, 100) ? (uint32_t)rng_between(rng, 1, REPLICAS_MAX) : 0;
    if (plan->wait_replicas > 0 &&
        plan->options.stall_timeout_ms <= plan->options.node_timeout_ms) {
        plan->options.stall_timeout_ms +=
            plan->options.node_timeout_ms; /* time that WAIT may take */
    }
}

static void draw_clocks(struct plan *plan, struct rng *rng) {
    /*
     * Each side gets 1/2 of the allowance, so that the fastest node and the slowest client are
     * within drift.
     */
    int64_t within = (int64_t)(plan->options.drift / 2 * 1000000);
    plan->most_ppm = rng_chance(rng, 700) ? within : 0;
    if (plan->cause == CAUSE_RATES) {
        plan->most_ppm = within + (int64_t)rng_between(rng, 20000, 250000);
    }
}

static void draw_disturbances(struct plan *plan, struct rng *rng) {
    plan->latency = rng_chance(rng, 800) ? rng_between(rng, MS / 10, 2 * MS)
                                         : rng_between(rng, 2 * MS, 25 * MS);
    plan->jitter = rng_chance(rng, 800) ? plan->latency : rng_between(rng, 0, 40 * MS);
    plan->lateness = rng_chance(rng, 500) ? 0 : rng_between(rng, 0, 4 * MS);
    plan->preemptions = rng_chance(rng, 300) ? (unsigned)rng_between(rng, 1, 8) : 0;
    plan->preempted_for = rng_between(rng, MS, plan->ttl_most_ms * MS / 2);
    plan->failures = rng_chance(rng, 200) ? (unsigned)rng_between(rng, 1, 20) : 0;
    plan->fault_every = rng_chance(rng, 100) ? 0 : rng_between(rng, 40, 600) * MS;
}

/* Fits latencies to a short timeout. */
static void fit_to_timeout(struct plan *plan, struct rng *rng) {
    uint64_t timeout = plan->options.node_timeout_ms * MS;
    if (timeout < 10 * MS) {
        plan->latency = rng_between(rng, timeout / 20, timeout / 3);
        plan->jitter = plan->latency / 2;
        plan->in_step &= timeout > 4 * MS;
    }
    plan->mended_latency = timeout / 8 < 2 * MS ? timeout / 8 : 2 * MS;
}

/* Draws the network, and options whose timeouts follow it. */
static void draw_network(struct plan *plan, struct rng *rng) {
    redlock_options *options = &plan->options;
    const redlock_options usual = REDLOCK_OPTIONS_INIT;
    plan->is_distant = true;
    plan->distance = distance_draw(rng);
    plan->mended_latency = NEVER;
    options->node_timeout_ms = options->stall_timeout_ms = 0;
    options->max_commands = usual.max_commands;
    options->max_bytes = usual.max_bytes;
    options->guards = rng_chance(rng, 500) ? usual.guards : REDLOCK_GUARDS_OFF;
    if (rng_chance(rng, 500)) {
        options->retry_delay_ms = usual.retry_delay_ms;
        options->retry_delay_max_ms = usual.retry_delay_max_ms;
        options->reconnect_delay_ms = usual.reconnect_delay_ms;
        options->reconnect_delay_max_ms = usual.reconnect_delay_max_ms;
    }
}

/* Draws a key for each worker, so that no request has a contender. */
static void draw_own_keys(struct plan *plan, struct rng *rng) {
    plan->has_own_keys = true;
    plan->has_one_queue = plan->has_min_holds = plan->has_sets = false;
    plan->permits = 0;
    plan->processes = (unsigned)rng_between(rng, 1, KEYS_MAX);
    plan->workers = KEYS_MAX / plan->processes;
    plan->keys = plan->processes * plan->workers;
}

/* Draws many clients with a worker each, which hold their locks briefly. */
static void draw_fleet(struct plan *plan, struct rng *rng) {
    plan->nodes = rng_chance(rng, 500) ? 3 : 5;
    plan->processes = PROCESSES_MAX;
    plan->workers = 1;
    plan->think_ms = rng_between(rng, 500, 3000);
    plan->hold_ms = rng_between(rng, 1, 50);
    plan->look_ms = 0;
    plan->duration = 1000 * MS + 6 * plan_round_trip(plan);
}

/* Draws clients far from their nodes, with the default timeouts; mostly without faults. */
static void draw_distance(struct plan *plan, struct rng *rng) {
    draw_network(plan, rng);
    plan->lateness = rng_chance(rng, 500) ? 0 : rng_between(rng, 0, 2 * MS);
    plan->preemptions = plan->failures = 0;
    plan->in_step = false;
    plan->fault_every = rng_chance(rng, 250) ? rng_between(rng, 100, 1500) * MS : 0;
    uint64_t round_trip_ms = plan_round_trip(plan) / MS;
    /* After two round trips of an acquisition, and before the last of a renewal, half is left. */
    plan->ttl_least_ms = 4 * round_trip_ms + rng_between(rng, 300, 3000);
    plan->ttl_most_ms = plan->ttl_least_ms * (plan->has_one_queue ? 1 : rng_between(rng, 1, 3));
    plan->options.max_ttl_ms = plan->ttl_most_ms + plan->lock_delay_ms;
    plan->think_ms = rng_between(rng, 1, 200 + round_trip_ms);
    plan->hold_ms = rng_chance(rng, 700) ? rng_between(rng, 1, 100) : 2 * plan->ttl_most_ms;
    plan->wait_ms = rng_between(rng, 500, 5000) + 10 * round_trip_ms;
    plan->duration = (rng_between(rng, 1000, 3000) + 15 * round_trip_ms) * MS;
    if (rng_chance(rng, 20)) {
        draw_fleet(plan, rng);
    } else if (rng_chance(rng, 400)) {
        draw_own_keys(plan, rng);
    }
    plan->extends_soon = plan->duration / MS % 4 == 1; /* not drawn, as in plan_draw */
}

void plan_draw(struct plan *plan, struct rng *rng, const struct demand *demand) {
    *plan = (struct plan){0};
    plan->cause = draw_cause(rng, demand->profile);
    plan->nodes = draw_nodes(rng);
    plan->processes = (unsigned)rng_between(rng, 2, 4);
    plan->workers = (unsigned)rng_between(rng, 1, 3);
    plan->keys = (unsigned)rng_between(rng, 1, 3);
    plan->has_long_keys = rng_chance(rng, 100);
    plan->has_names = rng_chance(rng, 200);
    plan->has_password = rng_chance(rng, 200);
    plan->db = rng_chance(rng, 200) ? 3 : 0;
    draw_options(plan, rng);
    draw_least(plan, rng);
    draw_ttls(plan, rng);
    draw_clocks(plan, rng);
    draw_disturbances(plan, rng);
    plan->think_ms = rng_between(rng, 1, 200);
    plan->hold_ms = rng_between(rng, 1, 300);
    plan->wait_ms = 1000;
    plan->duration = rng_between(rng, 700, 2000) * MS;
    plan->in_step = rng_chance(rng, 250);
    bool has_guards = demand->has_guards || plan->cause == CAUSE_RESTARTS;
    plan->options.guards = has_guards ? REDLOCK_GUARDS_ON : REDLOCK_GUARDS_OFF;
    plan->is_fenced = rng_chance(rng, 350);
    plan->has_owners = rng_chance(rng, 200);
    plan->has_sets = plan->keys > 1 && rng_chance(rng, 300);
    if (demand->profile == PROFILE_GUARDED) {
        draw_guarded(plan, rng);
    } else if (demand->profile == PROFILE_MOVING) {
        draw_moving(plan, rng);
    }
    if (plan->cause == CAUSE_RESTARTS) {
        draw_mishaps(plan, rng);
    }
    draw_stays(plan, rng);
    fit_to_timeout(plan, rng);
    draw_permits(plan, rng);
    plan->look_ms = rng_chance(rng, 500) ? rng_between(rng, 20, 400) : 0;
    plan->has_readers = plan->permits == 0 && rng_chance(rng, 200);
    plan->has_sets &= !plan->has_readers;
    draw_handovers(plan, rng);
    draw_one_queue(plan, rng);
    plan->is_reticent = rng_chance(rng, plan->has_jumps ? 800 : 500);
    /* Not drawn, so that seeds keep their worlds. */
    plan->pattern_subscribers = plan->duration / MS % 4 == 0;
    plan->has_rest = plan->duration / MS % 4 == 2;
    plan->options.idle_close_ms = plan->duration / MS % 5 == 3 ? 1 + plan->duration / MS % 300 : 0;
    if (demand->profile == PROFILE_BROKEN && plan->duration / MS % 8 == 5) {
        draw_late_top_ups(plan, rng);
    }
    if (demand->profile == PROFILE_GUARDED && !plan->has_long_ttls &&
        plan->duration / MS % 8 == 7) {
        draw_open(plan, rng);
    }
    if (demand->profile == PROFILE_GUARDED && !plan->has_hurry && plan->duration / MS % 16 == 5) {
        draw_replicas(plan, rng);
    } else if (demand->profile == PROFILE_GUARDED && plan->duration / MS % 16 == 9) {
        draw_turns(plan, rng);
    }
    if (demand->profile == PROFILE_KEPT && plan->has_readers && plan->duration / MS % 4 == 1) {
        draw_hung(plan, rng);
    }
    if (demand->profile == PROFILE_DISTANCE) {
        draw_distance(plan, rng);
    }
}
