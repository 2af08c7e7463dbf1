#define _GNU_SOURCE 1 /* MAP_ANONYMOUS */

#include "crowd.h"

#include "clock.h"
#include "crowd_part.h"
#include "descriptors.h"
#include "masters.h"
#include "memory.h"
#include "tally.h"

#include <event2/event.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#define POLL_S 0.005

/* Limit of each step: generous, for busy machines. */
#define LIMIT_S 120.0
#define LIMIT_CLIENT_S 0.05 /* for each client */

/* A client has two connections to each master: the second one, for pushes, from its first wait. */
#define CONNECTIONS 2
#define SPARE_DESCRIPTORS 128

/* Keys with these numbers and above are not among those of the cycles. */
#define FIRST_KEY 10000000

struct crowd {
    struct event_base *base;
    struct crowd_plan plan;
    size_t parts;
    struct workers *workers;
};

size_t crowd_connections(size_t clients) {
    return (clients + 1) * CONNECTIONS + SPARE_DESCRIPTORS;
}

bool crowd_raise_limit(const char *option, size_t clients) {
    size_t limit = descriptors_raise_limit();

    if (crowd_connections(clients) > limit) {
        fprintf(stderr,
                "redlock-bench: %s: a master needs %zu file descriptors for %zu clients, but the "
                "limit is %zu (ulimit -Hn)\n",
                option, crowd_connections(clients), clients, limit);
        return false;
    }
    return true;
}

/* ------------------------------------------------------------------------------- the processes */

static int work(size_t index, struct workers_orders orders, void *arg) {
    const struct crowd *crowd = arg;

    return crowd_part_run(&crowd->plan, index, orders);
}

/* Returns false, after a message, if a process has ended or a client has failed. */
static bool is_well(const struct crowd *crowd) {
    return workers_reap(crowd->workers) && !crowd->plan.board->has_failed;
}

/* Runs the loop for a time, so that it handles signals. */
static void rest(const struct crowd *crowd, double seconds) {
    struct timeval interval = clock_interval(seconds);

    event_base_loopexit(crowd->base, &interval);
    event_base_dispatch(crowd->base);
}

/* Waits until a condition holds. Returns false on failure, after a message. */
static bool wait_until(struct crowd *crowd, bool (*holds)(const struct crowd *crowd),
                       const char *what) {
    uint64_t limit_ns =
        (uint64_t)((LIMIT_S + LIMIT_CLIENT_S * (double)crowd->plan.settings.clients) * 1e9);
    uint64_t began_ns = clock_now_ns();

    while (!holds(crowd)) {
        if (!is_well(crowd)) {
            return false;
        }
        if (clock_now_ns() - began_ns > limit_ns) {
            fprintf(stderr, "redlock-bench: some clients %s\n", what);
            return false;
        }
        rest(crowd, POLL_S);
    }
    return true;
}

static bool have_reached(const struct crowd *crowd) {
    return crowd->plan.board->reached == crowd->parts;
}

static bool are_gone(const struct crowd *crowd) {
    return workers_running(crowd->workers) == 0;
}

/* Returns whether as many requests queue at each master as the wanted state has. */
static bool do_queue(const struct crowd *crowd) {
    size_t queued = crowd->plan.board->wanted == CROWD_WAITING ? crowd->plan.settings.clients : 0;

    /* A master that was killed has no queue to look at. */
    if (crowd->plan.board->wanted == CROWD_CUT) {
        return true;
    }
    for (size_t i = 0; i < crowd->plan.node_count; i++) {
        if (tally_queued(crowd->plan.settings.masters, i) != queued) {
            return false;
        }
    }
    return true;
}

/* ----------------------------------------------------------------------------------- the crowd */

static char (*create_keys(size_t first, size_t count))[LOAD_KEY_SIZE] {
    char(*keys)[LOAD_KEY_SIZE] = memory_take(count, sizeof(*keys));

    for (size_t i = 0; i < count; i++) {
        load_format_key(keys[i], first + i);
    }
    return keys;
}

static struct crowd_board *create_board(void) {
    struct crowd_board *board =
        mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (board == MAP_FAILED) {
        memory_end();
    }
    return board;
}

static void make_plan(struct crowd *crowd, const struct crowd_settings *settings) {
    size_t nodes = masters_count(settings->masters);
    size_t most = (descriptors_limit() - SPARE_DESCRIPTORS) / (nodes * CONNECTIONS);

    most = most > 1 ? most - 1 : 1; /* the guard */
    crowd->parts = (settings->clients + most - 1) / most;
    crowd->plan = (struct crowd_plan){
        .settings = *settings,
        .node_count = nodes,
        .part_clients = (settings->clients + crowd->parts - 1) / crowd->parts,
        .guarded = settings->same_key ? 1 : settings->clients,
        .board = create_board(),
    };
    crowd->plan.own_keys = create_keys(FIRST_KEY, settings->clients);
    crowd->plan.guarded_keys = create_keys(FIRST_KEY + settings->clients, crowd->plan.guarded);
}

static void destroy(struct crowd *crowd) {
    workers_destroy(crowd->workers);
    munmap(crowd->plan.board, sizeof(*crowd->plan.board));
    free(crowd->plan.own_keys);
    free(crowd->plan.guarded_keys);
    free(crowd);
}

struct crowd *crowd_start(struct event_base *base, const struct crowd_settings *settings) {
    struct crowd *crowd = memory_take(1, sizeof(*crowd));

    crowd->base = base;
    make_plan(crowd, settings);
    crowd->workers = workers_start(crowd->parts, work, crowd);
    if (crowd->workers == NULL || !wait_until(crowd, have_reached, "do not connect")) {
        destroy(crowd);
        return NULL;
    }
    return crowd;
}

bool crowd_enter(struct crowd *crowd, enum crowd_state state) {
    crowd->plan.board->reached = 0;
    crowd->plan.board->wanted = state; /* the order */
    return wait_until(crowd, have_reached, "do not reach the next state") &&
           wait_until(crowd, do_queue, "do not enter or leave the queue");
}

bool crowd_rest(struct crowd *crowd, double seconds) {
    rest(crowd, seconds);
    return is_well(crowd);
}

struct crowd_counts crowd_counts(const struct crowd *crowd) {
    const struct crowd_board *board = crowd->plan.board;

    return (struct crowd_counts){
        .cycles = board->cycles,
        .skipped = board->skipped,
        .lost = board->lost,
        .errors = board->errors,
    };
}

bool crowd_finish(struct crowd *crowd) {
    bool have_ended;

    workers_end(crowd->workers);
    have_ended = wait_until(crowd, are_gone, "do not close");
    destroy(crowd);
    return have_ended;
}
