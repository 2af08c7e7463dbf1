/*
 * Each worker repeats: acquire, read the set, sleep on the loop, write the set, release. Some holds
 * are renewed by the watchdog, some are extended once, some neither, until they are lost. A worker
 * that is notified of the loss of its lock no longer writes. It does not check the lock again
 * before it writes, except with --recheck: a process that was paused may write too late, and the
 * checker must detect that.
 */
#include "client.h"

#include "actions_client.h"
#include "actions_log.h"
#include "chance.h"
#include "record.h"

#include <event2/event.h>
#include <redlock.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WORKERS 3
#define EXIT_BROKEN_CONTRACT 4

struct client;

struct worker {
    struct client *client;
    struct event *timer;
    redlock_lock *lock; /* NULL: none is held */
    uint64_t hold;      /* number of the hold */
    uint64_t read;      /* the newest element of the set, as read */
    uint64_t until_ns;  /* the last end of validity in the log */
    uint64_t work_ms;   /* the sleep between read and write */
    uint64_t done_at_ns;
    uint64_t ttl_ms;
    uint32_t key;
    bool extend; /* the hold has yet to be extended */
};

struct client {
    const struct client_role *role;
    struct event_base *base;
    redlock_client *redlock;
    uint64_t random;
    uint64_t holds;
    size_t pending; /* number of requests with a pending callback */
    /* number of locks handed over whose next holder the log has yet to name */
    uint64_t handed_over;
    const char *nodes[MASTERS];
    char uris[MASTERS][64];
    bool closing;
    struct worker workers[WORKERS];
};

static void add_record_at(struct worker *worker, uint64_t at_ns, enum record_kind kind,
                          int status) {
    const struct record record = {
        .at_ns = at_ns,
        .until_ns = worker->until_ns,
        .hold = worker->hold,
        .element = worker->read,
        .key = worker->key,
        .kind = (int16_t)kind,
        .status = (int16_t)status,
    };

    if (write(worker->client->role->log, &record, sizeof(record)) != (ssize_t)sizeof(record)) {
        perror("redlock-chaos: cannot write the log");
        _exit(EXIT_FAILURE);
    }
}

static void add_record(struct worker *worker, enum record_kind kind, int status) {
    add_record_at(worker, boottime_ns(), kind, status);
}

/* Reads the clock first, so that a pause in between cannot lengthen the validity. */
static uint64_t valid_until_ns(const struct worker *worker) {
    uint64_t now_ns = boottime_ns();
    uint64_t left_ms = redlock_validity_ms(worker->lock);

    return left_ms > 0 ? now_ns + left_ms * NS_PER_MS : 0;
}

static void look_for_renewals(struct worker *worker) {
    uint64_t until_ns = valid_until_ns(worker);

    /* Smaller differences come from the rounding to whole milliseconds. */
    if (until_ns > worker->until_ns + NS_PER_MS) {
        worker->until_ns = until_ns;
        add_record(worker, RECORD_VALID, 0);
    }
}

static void wait_ms(struct worker *worker, uint64_t ms) {
    const struct timeval delay = {.tv_sec = (time_t)(ms / 1000),
                                  .tv_usec = (suseconds_t)(ms % 1000 * 1000)};

    event_add(worker->timer, &delay);
}

static uint64_t draw(struct worker *worker, uint64_t below) {
    return chance_draw(&worker->client->random, below);
}

static void rest(struct worker *worker) {
    if (!worker->client->closing) {
        wait_ms(worker, draw(worker, 20));
    }
}

/* ------------------------------------------------------------------------------------ releasing */

static void on_released(redlock_lock *lock, redlock_status status, void *arg) {
    struct worker *worker = arg;

    (void)lock;
    worker->client->pending--;
    add_record(worker, RECORD_RELEASED, status);
    rest(worker);
}

static void let_go(struct worker *worker) {
    redlock_lock *lock = worker->lock;

    look_for_renewals(worker);
    add_record(worker, RECORD_LETTING_GO, 0);
    actions_client_part(lock);
    event_del(worker->timer);
    worker->lock = NULL;
    if (redlock_release(lock, on_released, worker) == REDLOCK_OK) {
        worker->client->pending++;
    }
}

static void on_lost(redlock_lock *lock, redlock_status status, void *arg) {
    struct worker *worker = arg;

    (void)lock;
    add_record(worker, RECORD_LOST, status);
    event_del(worker->timer);
    if (status == REDLOCK_ECLOSED) {
        worker->lock = NULL;
        return;
    }
    let_go(worker);
}

/* --------------------------------------------------------------------------------- the lock-set */

static atomic_ullong *newest(struct worker *worker) {
    return &worker->client->role->board->newest[worker->key];
}

static void read_set(struct worker *worker) {
    uint64_t at_ns = boottime_ns();

    worker->read = atomic_load(newest(worker));
    add_record_at(worker, at_ns, RECORD_READ, 0);
}

static void write_set(struct worker *worker) {
    if (worker->client->role->options->recheck && redlock_validity_ms(worker->lock) == 0) {
        return;
    }
    add_record(worker, RECORD_ADDING, 0);
    atomic_store(newest(worker), worker->hold);
    add_record(worker, RECORD_ADDED, 0);
}

static void on_extended(redlock_lock *lock, redlock_status status, void *arg) {
    struct worker *worker = arg;

    worker->client->pending--;
    if (worker->lock == lock && status != REDLOCK_ECANCELED) {
        add_record(worker, RECORD_EXTENDED, status);
    }
}

static void work(struct worker *worker) {
    uint64_t now_ns = boottime_ns();

    look_for_renewals(worker);
    if (now_ns >= worker->done_at_ns) {
        write_set(worker);
        let_go(worker);
        return;
    }
    if (worker->extend && draw(worker, 3) == 0) {
        worker->extend = false;
        if (redlock_extend(worker->lock, worker->ttl_ms, on_extended, worker) == REDLOCK_OK) {
            worker->client->pending++;
        }
    }
    wait_ms(worker, 1 + worker->ttl_ms / 20);
}

/* ----------------------------------------------------------------------------------- acquiring */

static void on_acquired(redlock_lock *lock, redlock_status status, void *arg) {
    struct worker *worker = arg;
    struct client *client = worker->client;

    client->pending--;
    if (status != REDLOCK_OK) {
        add_record(worker, RECORD_FAILED, status);
        rest(worker);
        return;
    }
    uint64_t now_ns = boottime_ns();
    worker->lock = lock;
    worker->until_ns = valid_until_ns(worker);
    if (worker->until_ns > 0) {
        actions_client_hold(lock, now_ns, worker->until_ns);
    }
    add_record(worker, RECORD_ACQUIRED, 0);
    atomic_fetch_add(&client->role->board->acquired[client->role->index], 1);
    read_set(worker);
    worker->done_at_ns = boottime_ns() + worker->work_ms * NS_PER_MS;
    wait_ms(worker, 1);
}

/* Draws a working time: mostly short, otherwise up to the end of the validity and beyond. */
static uint64_t draw_work_ms(struct worker *worker, bool watchdog) {
    switch (draw(worker, 4)) {
    case 0:
        return draw(worker, worker->ttl_ms * (watchdog ? 2 : 1));
    case 1:
        return watchdog ? worker->ttl_ms / 2 : worker->ttl_ms * 3 / 2;
    default:
        return draw(worker, worker->ttl_ms / 10);
    }
}

/*
 * Draws the longest TTL in 1/2 of all cases: locks with the same TTL are handed over without a
 * message.
 */
static uint64_t draw_ttl_ms(struct worker *worker) {
    uint64_t max_ttl_ms = worker->client->role->options->ttl_ms;

    return draw(worker, 2) == 0 ? max_ttl_ms : max_ttl_ms - draw(worker, max_ttl_ms / 2);
}

/* Makes most requests wait in the queue, and the others poll, or try once. */
static void set_wait(struct worker *worker, redlock_request *request) {
    switch (draw(worker, 8)) {
    case 0:
        break;
    case 1:
        request->retries = 5;
        break;
    default:
        request->wait_ms = 1 + draw(worker, 2 * worker->client->role->options->ttl_ms);
    }
}

static void acquire(struct worker *worker) {
    struct client *client = worker->client;
    bool watchdog = draw(worker, 2) == 0;
    redlock_request request = REDLOCK_REQUEST_INIT;
    char key[32];

    worker->key = (uint32_t)draw(worker, client->role->options->keys);
    worker->hold = ((uint64_t)(client->role->index + 1) << 56) |
                   ((uint64_t)client->role->life << 36) | ++client->holds;
    worker->until_ns = 0;
    worker->read = 0;
    worker->ttl_ms = draw_ttl_ms(worker);
    worker->extend = !watchdog && draw(worker, 2) == 0;
    snprintf(key, sizeof(key), KEY_PREFIX "%u", worker->key);
    request.key = key;
    request.ttl_ms = worker->ttl_ms;
    set_wait(worker, &request);
    request.watchdog = watchdog;
    request.fenced = draw(worker, 4) == 0;
    request.on_lost = on_lost;
    request.on_lost_arg = worker;
    worker->work_ms = draw_work_ms(worker, watchdog);
    if (redlock_acquire(client->redlock, &request, on_acquired, worker, NULL) == REDLOCK_OK) {
        client->pending++;
    } else {
        fprintf(stderr, "redlock-chaos: %s\n", redlock_client_error(client->redlock));
        _exit(EXIT_BROKEN_CONTRACT);
    }
}

static void on_timer(evutil_socket_t fd, short what, void *arg) {
    struct worker *worker = arg;

    (void)fd;
    (void)what;
    if (worker->lock != NULL) {
        work(worker);
    } else if (!worker->client->closing) {
        acquire(worker);
    }
}

/* ------------------------------------------------------------------------- begin and finish */

static void on_closed(void *arg) {
    struct client *client = arg;

    client->redlock = NULL;
    event_base_loopbreak(client->base);
}

static void on_termination(evutil_socket_t fd, short what, void *arg) {
    struct client *client = arg;

    (void)fd;
    (void)what;
    client->closing = true;
    redlock_client_close(client->redlock, on_closed, client);
}

static struct event_base *create_base(void) {
    struct event_config *config = event_config_new();
    struct event_base *base = NULL;

    if (config != NULL && event_config_set_flag(config, EVENT_BASE_FLAG_PRECISE_TIMER) == 0) {
        base = event_base_new_with_config(config);
    }
    if (config != NULL) {
        event_config_free(config);
    }
    return base;
}

static bool ends_in(const char *line, const char *end) {
    size_t length = strlen(line);
    size_t end_length = strlen(end);

    return length >= end_length && strcmp(line + length - end_length, end) == 0;
}

/* Counts how waiters got their locks, which only the log shows. */
static void on_log(redlock_log_level level, const char *line, void *arg) {
    struct client *client = arg;
    struct board *board = client->role->board;
    bool is_handed_over = ends_in(line, ": held -> over") || ends_in(line, ": renewing -> over");
    bool is_taken = ends_in(line, ": queued -> held") || ends_in(line, ": queued -> raising");

    (void)level;
    client->handed_over += is_handed_over;
    atomic_fetch_add(&board->handed_over, is_handed_over);
    if (is_taken && client->handed_over > 0) {
        client->handed_over--; /* the line after that of the lock that is handed over */
    } else {
        atomic_fetch_add(&board->pushed, is_taken);
    }
}

/*
 * Switches on the guards of every other client, for which pushes count at once. The masters are
 * new, and lose memory only by a nemesis that waits for the longest TTL, or is meant to break the
 * assumptions.
 */
static void guard(struct client *client, redlock_options *options) {
    options->guards = client->role->index % 2 == 0 ? REDLOCK_GUARDS_ON : REDLOCK_GUARDS_OFF;
    for (size_t i = 0; i < MASTERS; i++) {
        snprintf(client->uris[i], sizeof(client->uris[i]), "%s?durable=yes", client->role->uris[i]);
        client->nodes[i] = client->uris[i];
    }
    options->nodes = client->nodes;
}

static int create_redlock(struct client *client) {
    redlock_options options = REDLOCK_OPTIONS_INIT;
    redlock_error error;

    options.node_count = MASTERS;
    options.node_timeout_ms = client->role->options->ttl_ms / 4; /* even on a busy machine */
    options.max_ttl_ms = client->role->options->ttl_ms;
    options.stall_timeout_ms = client->role->options->ttl_ms;
    options.retry_delay_ms = 20;
    options.retry_delay_max_ms = 200;
    options.reconnect_delay_max_ms = 200;
    options.name = "redlock-chaos";
    options.log = on_log;
    options.log_arg = client;
    options.log_level = REDLOCK_LOG_DEBUG;
    guard(client, &options);
    if (redlock_client_create(client->base, &options, &client->redlock, &error) != REDLOCK_OK) {
        fprintf(stderr, "redlock-chaos: %s\n", error.message);
        return -1;
    }
    return 0;
}

static bool is_held(const char *token, void *arg) {
    const struct client *client = arg;

    for (size_t i = 0; i < WORKERS; i++) {
        const redlock_lock *lock = client->workers[i].lock;

        if (lock != NULL && actions_client_has_token(lock, token)) {
            return true;
        }
    }
    return false;
}

static int begin(struct client *client) {
    actions_client_begin(client->role->actions, is_held, client);
    if (client->base == NULL || create_redlock(client) != 0) {
        return -1;
    }
    for (size_t i = 0; i < WORKERS; i++) {
        struct worker *worker = &client->workers[i];

        worker->client = client;
        worker->timer = event_new(client->base, -1, 0, on_timer, worker);
        if (worker->timer == NULL) {
            return -1;
        }
        rest(worker);
    }
    return 0;
}

int client_run(const struct client_role *role) {
    struct client client = {.role = role, .base = create_base()};
    struct event *termination = NULL;
    int outcome = EXIT_FAILURE;

    chance_seed(&client.random, role->options->seed + (role->index + 1) * 1000003u + role->life);
    if (client.base != NULL) {
        termination = evsignal_new(client.base, SIGTERM, on_termination, &client);
    }
    if (termination != NULL && event_add(termination, NULL) == 0 && begin(&client) == 0 &&
        event_base_dispatch(client.base) >= 0) {
        outcome = client.redlock == NULL && client.pending == 0 ? 0 : EXIT_BROKEN_CONTRACT;
    }
    for (size_t i = 0; i < WORKERS; i++) {
        if (client.workers[i].timer != NULL) {
            event_free(client.workers[i].timer);
        }
    }
    if (termination != NULL) {
        event_free(termination);
    }
    if (client.base != NULL) {
        event_base_free(client.base);
    }
    return outcome;
}
