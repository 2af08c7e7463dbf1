#include "demo_stage.h"

#include "demo_screen.h"
#include "masters.h"

#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Interval, in us, at which the loop wakes up to check a condition. */
#define TICK_US 2000

/*
 * Long timeouts, so that the demo shows the same on a busy machine: a round may take seconds, a
 * node may be silent for 30 s, and a lock counts as lost 1/4 of its TTL before the key expires at
 * the masters.
 */
#define NODE_TIMEOUT_MS 4000
#define STALL_TIMEOUT_MS 30000
#define DRIFT 0.25
#define REQUEST_LIMIT_MS 60000
#define CLOSE_LIMIT_MS 60000

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

/* Calls exit(), which ends the masters; the signal's default action would leave their folder. */
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
    for (size_t i = 0; i < STAGE_PROGRAMS; i++) {
        if (stage->programs[i].lost) {
            return true;
        }
    }
    return false;
}

bool stage_run_for(struct stage *stage, uint64_t ms) {
    return !stage_run_until(stage, any_lost, ms);
}

bool stage_play(struct stage *stage, const struct step *steps, size_t count,
                void (*show)(struct stage *stage)) {
    for (size_t i = 0; i < count; i++) {
        bool done;

        screen_title(i + 1, steps[i].title);
        done = steps[i].play(stage);
        if (!done) {
            printf("\nStep %zu failed: %s.\n", i + 1, steps[i].title);
        }
        if (show != NULL) {
            show(stage);
        }
        putchar('\n');
        fflush(stdout);
        if (!done) {
            return false;
        }
    }
    return true;
}

/* --------------------------------------------------------------------------------- the programs */

static void answer(struct program *program, const redlock_lock *lock, redlock_status status) {
    program->answered = true;
    program->status = status;
    snprintf(program->explanation, sizeof(program->explanation), "%s", redlock_explain(lock));
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
}

redlock_request stage_request(const char *key) {
    redlock_request request = REDLOCK_REQUEST_INIT;

    request.key = key;
    request.watchdog = true;
    return request;
}

/* Records a request. A refused request has ended at once. */
static void record_asked(struct program *program, redlock_status accepted) {
    if (accepted != REDLOCK_OK) {
        program->lock = NULL;
        program->answered = true;
        program->status = accepted;
        snprintf(program->explanation, sizeof(program->explanation), "%s",
                 redlock_client_error(program->client));
    }
}

void stage_ask(struct stage *stage, size_t number, const redlock_request *request) {
    struct program *program = &stage->programs[number];
    redlock_request asked = *request;

    asked.on_lost = on_lost;
    asked.on_lost_arg = program;
    program->answered = false;
    program->lost = false;
    record_asked(program,
                 redlock_acquire(program->client, &asked, on_acquired, program, &program->lock));
}

void stage_ask_release(struct stage *stage, size_t number) {
    struct program *program = &stage->programs[number];
    redlock_lock *lock = program->lock;

    program->lock = NULL;
    program->answered = false;
    record_asked(program, redlock_release(lock, on_released, program));
}

static bool is_answered(struct stage *stage) {
    const struct program *program = stage->subject;

    return program->answered;
}

redlock_status stage_await(struct stage *stage, size_t number) {
    struct program *program = &stage->programs[number];

    stage->subject = program;
    if (!stage_run_until(stage, is_answered, REQUEST_LIMIT_MS)) {
        fprintf(stderr, "no callback within %d ms\n", REQUEST_LIMIT_MS);
        exit(EXIT_FAILURE);
    }
    return program->status;
}

bool stage_ends(struct stage *stage, size_t number, redlock_status expected,
                const char *statement) {
    redlock_status status = stage_await(stage, number);

    if (!check(status == expected, statement)) {
        say("%s: %s", redlock_status_name(status), stage->programs[number].explanation);
    }
    return status == expected;
}

bool stage_releases(struct stage *stage, size_t number, const char *statement) {
    stage_ask_release(stage, number);
    return stage_ends(stage, number, REDLOCK_OK, statement);
}

static bool is_connected_to_all(const redlock_client *client) {
    redlock_node_info infos[STAGE_MASTERS];
    size_t count = redlock_client_nodes(client, infos, STAGE_MASTERS);

    for (size_t i = 0; i < count; i++) {
        if (!infos[i].connected) {
            return false;
        }
    }
    return count == STAGE_MASTERS;
}

bool stage_is_connected(struct stage *stage) {
    for (size_t i = 0; i < STAGE_PROGRAMS; i++) {
        const redlock_client *client = stage->programs[i].client;

        if (client != NULL && !is_connected_to_all(client)) {
            return false;
        }
    }
    return true;
}

static int create_program(struct stage *stage, struct program *program, const char *name) {
    redlock_options options = REDLOCK_OPTIONS_INIT;
    redlock_error error;

    *program = (struct program){.answered = true};
    options.nodes = masters_uris(stage->masters);
    options.node_count = STAGE_MASTERS;
    options.node_timeout_ms = NODE_TIMEOUT_MS;
    options.stall_timeout_ms = STALL_TIMEOUT_MS;
    options.close_timeout_ms = STALL_TIMEOUT_MS;
    options.drift = DRIFT;
    options.name = "redlock-demo";
    options.owner = name;
    options.guards = REDLOCK_GUARDS_OFF; /* the masters were just started for the demo */
    if (redlock_client_create(stage->base, &options, &program->client, &error) != REDLOCK_OK) {
        fprintf(stderr, "%s\n", error.message);
        return -1;
    }
    return 0;
}

/* ----------------------------------------------------------------------------- begin and finish */

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

int stage_add_programs(struct stage *stage, size_t count) {
    static const char *const names[STAGE_PROGRAMS] = {"first", "second", "third", "fourth"};

    for (size_t i = 0; i < count; i++) {
        if (create_program(stage, &stage->programs[i], names[i]) != 0) {
            return -1;
        }
    }
    return 0;
}

static bool all_closed(struct stage *stage) {
    for (size_t i = 0; i < STAGE_PROGRAMS; i++) {
        if (stage->programs[i].client != NULL) {
            return false;
        }
    }
    return true;
}

int stage_finish(struct stage *stage) {
    int outcome = 0;

    for (size_t i = 0; i < STAGE_PROGRAMS; i++) {
        if (stage->programs[i].client != NULL) {
            redlock_client_close(stage->programs[i].client, on_closed, &stage->programs[i]);
        }
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
