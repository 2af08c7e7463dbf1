/*
 * A run is a walk through the states. The cost is the difference of two readings of INFO at the
 * first master. A reading itself costs the master a connection and two commands.
 */
#include "fleet.h"

#include "bystander.h"
#include "clock.h"
#include "crowd.h"
#include "masters.h"
#include "progress.h"
#include "tally.h"

#include <stdbool.h>
#include <stdio.h>

/* Time until the change to a state costs the masters nothing more; at most the time measured. */
#define SETTLE_S 1.0

struct reading {
    uint64_t now_ns;
    struct tally_load load;
};

struct fleet {
    const struct fleet_settings *settings;
    struct event_base *base;
    struct crowd *crowd;
    struct fleet_result *result;
    const char *doing; /* for the progress line */
};

static struct reading read_first(const struct fleet *fleet) {
    struct reading reading;

    tally_read_load(fleet->settings->masters, 0, &reading.load);
    reading.now_ns = clock_now_ns();
    return reading;
}

static struct fleet_cost cost_since(const struct fleet *fleet, const struct reading *before) {
    struct reading after = read_first(fleet);
    double clients = (double)fleet->settings->clients;

    return (struct fleet_cost){
        .seconds = (double)(after.now_ns - before->now_ns) / 1e9,
        .commands = (after.load.commands - before->load.commands) / clients,
        .bytes_in = (after.load.bytes_in - before->load.bytes_in) / clients,
        .bytes_out = (after.load.bytes_out - before->load.bytes_out) / clients,
        .cpu_us = (after.load.cpu_us - before->load.cpu_us) / clients,
    };
}

static bool enter(struct fleet *fleet, enum crowd_state state, const char *doing) {
    fleet->doing = doing;
    return crowd_enter(fleet->crowd, state);
}

/* Measures the state in which the clients are. */
static bool measure(struct fleet *fleet, enum fleet_state state) {
    struct fleet_result *result = fleet->result;
    double duration_s = fleet->settings->duration_s;
    struct crowd_counts before;
    struct crowd_counts after;
    struct reading reading;

    if (!crowd_rest(fleet->crowd, duration_s < SETTLE_S ? duration_s : SETTLE_S)) {
        return false;
    }
    before = crowd_counts(fleet->crowd);
    reading = read_first(fleet);
    if (!crowd_rest(fleet->crowd, duration_s)) {
        return false;
    }
    result->states[state] = cost_since(fleet, &reading);
    after = crowd_counts(fleet->crowd);
    if (state == FLEET_WORKING) {
        result->cycles = after.cycles - before.cycles;
        result->skipped = after.skipped - before.skipped;
    }
    tally_connections(fleet->settings->masters, 0, &result->connections[state],
                      &result->connection_bytes[state]);
    return true;
}

/* The longest time that clients may take to close or open connections, in s. */
#define CONNECTIONS_MAX_S 60

/*
 * Waits until the clients have opened, or closed, so many connections to the first master that
 * there are as many as were measured in a state.
 */
static bool await_connections(const struct fleet *fleet, enum fleet_state state, bool opened) {
    double wanted = fleet->result->connections[state];
    double connections = 0;
    double bytes;

    for (unsigned i = 0; i < 4 * CONNECTIONS_MAX_S; i++) {
        tally_connections(fleet->settings->masters, 0, &connections, &bytes);
        if (opened ? connections >= wanted : connections <= wanted) {
            return true;
        }
        if (!crowd_rest(fleet->crowd, 0.25)) {
            return false;
        }
    }
    fprintf(stderr, "after %d s the clients have %.0f connections, not %.0f\n", CONNECTIONS_MAX_S,
            connections, wanted);
    return false;
}

/* The counts of the new process begin at 0. */
static bool restart_idle(struct fleet *fleet) {
    struct reading reading = {0};

    masters_kill(fleet->settings->masters, 0);
    if (!enter(fleet, CROWD_CUT, "without a master")) {
        return false;
    }
    reading.now_ns = clock_now_ns();
    masters_restart(fleet->settings->masters, 0);
    if (!enter(fleet, CROWD_IDLE, "connecting again")) {
        return false;
    }
    fleet->result->restart = cost_since(fleet, &reading);
    return true;
}

/* Connections for pushes are made last, but each client may ask for its key after that. */
static bool restart_waiting(struct fleet *fleet) {
    struct reading reading = {0};

    masters_kill(fleet->settings->masters, 0);
    reading.now_ns = clock_now_ns();
    masters_restart(fleet->settings->masters, 0);
    fleet->doing = "connecting again, and waiting";
    if (!await_connections(fleet, FLEET_WAITING, true) || !crowd_rest(fleet->crowd, SETTLE_S)) {
        return false;
    }
    fleet->result->restart_waiting = cost_since(fleet, &reading);
    return true;
}

/*
 * Runs a restart beside a further client. The processes of the fleet were forked before, and a
 * master that restarts is another program: no process inherits the client.
 */
static bool restart_beside(struct fleet *fleet, bool (*restart)(struct fleet *fleet),
                           struct bystander_counts *counts) {
    const struct bystander_settings settings = {
        .nodes = fleet->settings->nodes,
        .node_count = masters_count(fleet->settings->masters),
        .node_timeout_ms = fleet->settings->node_timeout_ms,
    };
    struct bystander *bystander = bystander_start(fleet->base, &settings);
    bool is_well;

    if (bystander == NULL) {
        return false;
    }
    is_well = restart(fleet);
    bystander_finish(bystander, counts);
    return is_well;
}

static bool walk(struct fleet *fleet) {
    struct fleet_result *result = fleet->result;

    return measure(fleet, FLEET_IDLE) && enter(fleet, CROWD_WORKING, "working") &&
           measure(fleet, FLEET_WORKING) && enter(fleet, CROWD_IDLE, "ending cycles") &&
           enter(fleet, CROWD_HOLDING, "holding") && measure(fleet, FLEET_HOLDING) &&
           enter(fleet, CROWD_IDLE, "releasing") && enter(fleet, CROWD_GUARDED, "waiting") &&
           enter(fleet, CROWD_WAITING, "waiting") && measure(fleet, FLEET_WAITING) &&
           restart_beside(fleet, restart_waiting, &result->bystander_waiting) &&
           enter(fleet, CROWD_IDLE, "idle after waiting") &&
           await_connections(fleet, FLEET_IDLE, false) && measure(fleet, FLEET_WAITED) &&
           restart_beside(fleet, restart_idle, &result->bystander);
}

static void write_progress(void *arg, char *line, size_t size) {
    const struct fleet *fleet = arg;

    snprintf(line, size, "%zu clients: %s", fleet->settings->clients, fleet->doing);
}

static int run(struct fleet *fleet) {
    const struct fleet_settings *settings = fleet->settings;
    const struct crowd_settings crowd = {
        .masters = settings->masters,
        .nodes = settings->nodes,
        .clients = settings->clients,
        .ttl_ms = settings->ttl_ms,
        .node_timeout_ms = settings->node_timeout_ms,
        .working_percent = settings->working_percent,
        .rate = settings->rate,
    };
    struct reading reading = read_first(fleet);
    struct crowd_counts counts;
    bool is_well;

    fleet->crowd = crowd_start(fleet->base, &crowd);
    if (fleet->crowd == NULL) {
        return -1;
    }
    fleet->result->connecting = cost_since(fleet, &reading);
    fleet->doing = "idle";
    is_well = walk(fleet);
    counts = crowd_counts(fleet->crowd);
    fleet->result->lost = counts.lost;
    fleet->result->errors = counts.errors;
    return crowd_finish(fleet->crowd) && is_well ? 0 : -1;
}

int fleet_run(struct event_base *base, const struct fleet_settings *settings,
              struct fleet_result *result) {
    struct fleet fleet = {
        .settings = settings, .base = base, .result = result, .doing = "connecting"};
    struct progress *progress = progress_create(base, write_progress, &fleet);
    int outcome;

    *result = (struct fleet_result){0};
    outcome = run(&fleet);
    progress_destroy(progress);
    return outcome;
}
