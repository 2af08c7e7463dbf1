#include "demo_stage.h"

#include "masters.h"

#include <event2/event.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* How often the loop wakes up to look at a condition. */
#define TICK_US 2000

/*
 * Generous values, so that the demo shows the same on a busy machine: a round may take half a
 * second, and a lock counts as lost a tenth of its TTL before the masters would let go of the key.
 */
#define NODE_TIMEOUT_MS 500
#define DRIFT 0.1
#define REQUEST_LIMIT_MS 60000
#define CLOSE_LIMIT_MS 10000

uint64_t stage_now_ns(void) {
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ------------------------------------------------------------------------------------- the loop */

static void on_tick(evutil_socket_t fd, short what, void *arg) {
    (void)fd;
    (void)what;
    (void)arg;
}

/* exit() ends the masters; a signal's default would leave their folder behind. */
static void on_interrupt(evutil_socket_t signal_number, short what, void *arg) {
    (void)what;
    (void)arg;
    exit(128 + (int)signal_number);
}

bool stage_run_until(struct stage *stage, stage_condition *condition, uint64_t limit_ms) {
    uint64_t limit_ns = stage_now_ns() + limit_ms * 1000000u;

    while (!condition(stage)) {
        if (stage_now_ns() > limit_ns) {
            return false;
        }
        if (event_base_loop(stage->base, EVLOOP_ONCE) < 0) {
            fputs("the event loop failed\n", stderr);
            exit(EXIT_FAILURE);
        }
    }
    return true;
}

static bool any_lost(struct stage *stage) {
    return stage->first.lost || stage->second.lost;
}

bool stage_run_for(struct stage *stage, uint64_t ms) {
    return !stage_run_until(stage, any_lost, ms);
}

/* --------------------------------------------------------------------------------- the programs */

static void answer(struct program *program, const redlock_lock *lock, redlock_status status) {
    program->answered = true;
    program->status = status;
    snprintf(program->explanation, sizeof(program->explanation), "%s", redlock_explain(lock));
}

static void refused(struct program *program, redlock_status status) {
    program->answered = true;
    program->status = status;
    snprintf(program->explanation, sizeof(program->explanation), "%s",
             redlock_client_error(program->client));
}

static void on_acquired(redlock_lock *lock, redlock_status status, void *arg) {
    struct program *program = arg;

    program->lock = status == REDLOCK_OK ? lock : NULL;
    answer(program, lock, status);
}

static void on_released(redlock_lock *lock, redlock_status status, void *arg) {
    answer(arg, lock, status);
}

static void on_lost(redlock_lock *lock, redlock_status status, void *arg) {
    struct program *program = arg;

    (void)lock;
    program->lost = true;
    program->lost_status = status;
    program->lost_at_ns = stage_now_ns();
}

static void on_closed(void *arg) {
    struct program *program = arg;

    program->client = NULL;
    program->closed = true;
}

static bool both_answered(struct stage *stage) {
    return stage->first.answered && stage->second.answered;
}

static redlock_status wait_for_answer(struct stage *stage, struct program *program) {
    if (!stage_run_until(stage, both_answered, REQUEST_LIMIT_MS)) {
        fprintf(stderr, "no callback within %d ms\n", REQUEST_LIMIT_MS);
        exit(EXIT_FAILURE);
    }
    return program->status;
}

redlock_status stage_acquire(struct stage *stage, struct program *program, const char *key,
                             uint64_t wait_ms) {
    redlock_request request = REDLOCK_REQUEST_INIT;
    redlock_status status;

    request.key = key;
    request.ttl_ms = STAGE_TTL_MS;
    request.wait_ms = wait_ms;
    request.watchdog = true;
    request.on_lost = on_lost;
    request.on_lost_arg = program;
    program->answered = false;
    program->lost = false;
    status = redlock_acquire(program->client, &request, on_acquired, program, NULL);
    if (status != REDLOCK_OK) {
        refused(program, status);
    }
    return wait_for_answer(stage, program);
}

redlock_status stage_release(struct stage *stage, struct program *program) {
    redlock_lock *lock = program->lock;
    redlock_status status;

    program->lock = NULL;
    program->answered = false;
    status = redlock_release(lock, on_released, program);
    if (status != REDLOCK_OK) {
        refused(program, status);
    }
    return wait_for_answer(stage, program);
}

static int create_program(struct stage *stage, struct program *program, const char *name) {
    redlock_options options = REDLOCK_OPTIONS_INIT;
    redlock_error error;

    *program = (struct program){.name = name, .answered = true};
    options.nodes = masters_uris(stage->masters);
    options.node_count = STAGE_MASTERS;
    options.node_timeout_ms = NODE_TIMEOUT_MS;
    options.drift = DRIFT;
    options.max_ttl_ms = 2 * STAGE_TTL_MS;
    options.name = "redlock-demo";
    options.guards = REDLOCK_GUARDS_OFF; /* the masters were started for this, a moment ago */
    if (redlock_client_create(stage->base, &options, &program->client, &error) != REDLOCK_OK) {
        fprintf(stderr, "%s\n", error.message);
        return -1;
    }
    return 0;
}

/* ---------------------------------------------------------------------------------- the masters */

static char *token_at(struct stage *stage, size_t master) {
    if (masters_pid(stage->masters, master) == 0) {
        return NULL;
    }
    return masters_query(stage->masters, master, "GET %s", STAGE_KEY);
}

static size_t count_equal(char *const *tokens, const char *token) {
    size_t count = 0;

    for (size_t i = 0; i < STAGE_MASTERS; i++) {
        count += tokens[i] != NULL && strcmp(tokens[i], token) == 0;
    }
    return count;
}

size_t stage_holders(struct stage *stage) {
    char *tokens[STAGE_MASTERS];
    size_t holders = 0;

    for (size_t i = 0; i < STAGE_MASTERS; i++) {
        tokens[i] = token_at(stage, i);
    }
    for (size_t i = 0; i < STAGE_MASTERS; i++) {
        if (tokens[i] != NULL && count_equal(tokens, tokens[i]) > holders) {
            holders = count_equal(tokens, tokens[i]);
        }
    }
    for (size_t i = 0; i < STAGE_MASTERS; i++) {
        free(tokens[i]);
    }
    return holders;
}

uint64_t stage_time_left_ms(struct stage *stage, size_t master) {
    long long left = -1;

    if (masters_pid(stage->masters, master) != 0) {
        left = masters_query_integer(stage->masters, master, "PTTL %s", STAGE_KEY);
    }
    return left > 0 ? (uint64_t)left : 0;
}

void stage_show_masters(struct stage *stage) {
    printf("\n      %-18s %-8s %-10s %s\n", "master", "state", "token", "time left");
    for (size_t i = 0; i < STAGE_MASTERS; i++) {
        bool up = masters_pid(stage->masters, i) != 0;
        char *token = token_at(stage, i);

        printf("      127.0.0.1:%-8d %-8s ", masters_port(stage->masters, i), up ? "up" : "killed");
        if (token != NULL) {
            /* The beginning is enough to compare; a whole token could release the lock. */
            printf("%-10.8s %" PRIu64 " ms\n", token, stage_time_left_ms(stage, i));
        } else {
            printf("%-10s -\n", "-");
        }
        free(token);
    }
    printf("\n");
}

/* ------------------------------------------------------------------------------ begin and finish
 */

static struct event_base *create_base(void) {
    struct event_config *config = event_config_new();
    struct event_base *base = NULL;

    if (config == NULL) {
        return NULL;
    }
    if (event_config_set_flag(config, EVENT_BASE_FLAG_PRECISE_TIMER) == 0) {
        base = event_base_new_with_config(config);
    }
    event_config_free(config);
    return base;
}

int stage_init(struct stage *stage) {
    const struct timeval interval = {.tv_usec = TICK_US};

    *stage = (struct stage){.base = create_base()};
    if (stage->base == NULL) {
        fputs("cannot make an event loop\n", stderr);
        return -1;
    }
    stage->tick = event_new(stage->base, -1, EV_PERSIST, on_tick, NULL);
    stage->interrupt = evsignal_new(stage->base, SIGINT, on_interrupt, NULL);
    stage->termination = evsignal_new(stage->base, SIGTERM, on_interrupt, NULL);
    if (stage->tick == NULL || stage->interrupt == NULL || stage->termination == NULL ||
        event_add(stage->tick, &interval) != 0 || event_add(stage->interrupt, NULL) != 0 ||
        event_add(stage->termination, NULL) != 0) {
        fputs("cannot make an event\n", stderr);
        return -1;
    }
    stage->masters = masters_start(STAGE_MASTERS, NULL);
    return stage->masters != NULL ? 0 : -1;
}

int stage_add_programs(struct stage *stage) {
    if (create_program(stage, &stage->first, "first") != 0 ||
        create_program(stage, &stage->second, "second") != 0) {
        return -1;
    }
    return 0;
}

static bool all_closed(struct stage *stage) {
    return stage->first.client == NULL && stage->second.client == NULL;
}

int stage_finish(struct stage *stage) {
    int outcome = 0;

    if (stage->first.client != NULL) {
        redlock_client_close(stage->first.client, on_closed, &stage->first);
    }
    if (stage->second.client != NULL) {
        redlock_client_close(stage->second.client, on_closed, &stage->second);
    }
    if (stage->base != NULL && !stage_run_until(stage, all_closed, CLOSE_LIMIT_MS)) {
        fputs("a client did not close in time\n", stderr);
        outcome = -1;
    }
    masters_finish(stage->masters);
    if (stage->tick != NULL) {
        event_free(stage->tick);
    }
    if (stage->interrupt != NULL) {
        event_free(stage->interrupt);
    }
    if (stage->termination != NULL) {
        event_free(stage->termination);
    }
    if (stage->base != NULL && outcome == 0) {
        event_base_free(stage->base);
    }
    return outcome;
}
