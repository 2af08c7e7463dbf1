/*
 * The thread looks at the orders of the benchmark before each cycle. Only the atomic members are
 * shared while it runs.
 */
#include "bystander.h"

#include "client.h"
#include "clock.h"
#include "load.h"
#include "memory.h"

#include <event2/event.h>
#include <pthread.h>
#include <redlock.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PACE_S 0.01
#define POLL_S 0.005
#define CONNECT_LIMIT_S 60.0

/* No cycles of crew.h run beside a bystander: their first key is free. */
#define KEY_NUMBER 0

enum phase { CONNECTING, RUNNING, FAILED };

struct bystander {
    struct bystander_settings settings;
    pthread_t thread;
    atomic_int phase;   /* enum phase: set by the thread */
    atomic_bool ending; /* order of the benchmark */

    struct event_base *base; /* of the thread, like all that follows */
    struct event *timer;
    redlock_client *client;
    uint64_t connecting_until_ns;
    char key[LOAD_KEY_SIZE];
    bool in_cycle;
    struct bystander_counts counts;
};

/* ---------------------------------------------------------------------------------- the cycles */

static void end_cycle(struct bystander *bystander, bool succeeded) {
    bystander->in_cycle = false;
    if (succeeded) {
        bystander->counts.cycles++;
    } else {
        bystander->counts.failed++;
    }
}

static void on_released(redlock_lock *lock, redlock_status status, void *arg) {
    (void)lock;
    end_cycle(arg, status == REDLOCK_OK);
}

static void on_acquired(redlock_lock *lock, redlock_status status, void *arg) {
    if (status != REDLOCK_OK || redlock_release(lock, on_released, arg) != REDLOCK_OK) {
        end_cycle(arg, false);
    }
}

static void begin_cycle(struct bystander *bystander) {
    redlock_request request = REDLOCK_REQUEST_INIT;

    request.key = bystander->key;
    bystander->in_cycle = true;
    if (redlock_acquire(bystander->client, &request, on_acquired, bystander, NULL) != REDLOCK_OK) {
        end_cycle(bystander, false);
    }
}

/* ---------------------------------------------------------------------------------- the thread */

static void on_closed(void *arg) {
    struct bystander *bystander = arg;

    event_base_loopbreak(bystander->base);
}

static void count_timeouts(struct bystander *bystander) {
    for (size_t i = 0; i < bystander->settings.node_count; i++) {
        redlock_node_stats stats = {.size = sizeof(stats)};

        if (redlock_client_node_stats(bystander->client, i, &stats) == REDLOCK_OK) {
            bystander->counts.timeouts += stats.votes[REDLOCK_VOTE_TIMEOUT];
        }
    }
}

static void look_at_connections(struct bystander *bystander) {
    bool over = clock_now_ns() > bystander->connecting_until_ns;

    if (client_is_ready(bystander->client, over ? stderr : NULL)) {
        bystander->phase = RUNNING;
    } else if (over) {
        bystander->phase = FAILED;
    }
}

static void on_timer(evutil_socket_t fd, short what, void *arg) {
    struct bystander *bystander = arg;

    (void)fd;
    (void)what;
    if (bystander->phase == CONNECTING) {
        look_at_connections(bystander);
    }
    if (bystander->phase == FAILED || (bystander->ending && !bystander->in_cycle)) {
        count_timeouts(bystander);
        redlock_client_close(bystander->client, on_closed, bystander);
        return;
    }
    if (bystander->phase == RUNNING && !bystander->in_cycle) {
        begin_cycle(bystander);
    }
    clock_arm(bystander->timer, PACE_S);
}

static redlock_client *create_client(const struct bystander *bystander) {
    const struct bystander_settings *settings = &bystander->settings;
    redlock_options options = client_options(0, 0, settings->node_timeout_ms);

    options.name = "redlock-bystander"; /* tally_connections counts only the fleet's */
    return client_create(bystander->base, settings->nodes, settings->node_count, options);
}

static void *run(void *arg) {
    struct bystander *bystander = arg;

    bystander->base = clock_create_base();
    bystander->client = bystander->base != NULL ? create_client(bystander) : NULL;
    if (bystander->client == NULL) {
        bystander->phase = FAILED;
    } else {
        bystander->timer = clock_timer(bystander->base, on_timer, bystander);
        clock_arm(bystander->timer, 0);
        event_base_dispatch(bystander->base);
        event_free(bystander->timer);
    }
    if (bystander->base != NULL) {
        event_base_free(bystander->base);
    }
    return NULL;
}

/* ------------------------------------------------------------------------------- the benchmark */

/* Starts the thread without signals, which are for the loop of the benchmark. */
static bool start_thread(struct bystander *bystander) {
    sigset_t all;
    sigset_t before;
    int error;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(&bystander->thread, NULL, run, bystander);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error != 0) {
        fprintf(stderr, "redlock-bench: cannot start a thread: %s\n", strerror(error));
    }
    return error == 0;
}

struct bystander *bystander_start(struct event_base *base,
                                  const struct bystander_settings *settings) {
    struct bystander *bystander = memory_take(1, sizeof(*bystander));
    struct bystander_counts counts;

    bystander->settings = *settings;
    bystander->connecting_until_ns = clock_after_ns(CONNECT_LIMIT_S);
    load_format_key(bystander->key, KEY_NUMBER);
    if (!start_thread(bystander)) {
        free(bystander);
        return NULL;
    }
    while (bystander->phase == CONNECTING) {
        clock_pass(base, POLL_S);
    }
    if (bystander->phase == FAILED) {
        bystander_finish(bystander, &counts);
        return NULL;
    }
    return bystander;
}

void bystander_finish(struct bystander *bystander, struct bystander_counts *counts) {
    bystander->ending = true;
    pthread_join(bystander->thread, NULL);
    *counts = bystander->counts;
    free(bystander);
}
