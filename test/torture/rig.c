#include "rig.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* How long a callback may be late before it counts as lost. */
#define PATIENCE_MS 20000

void rig_complain(struct rig *rig, const char *format, ...) {
    if (rig->problem[0] != '\0') {
        return;
    }
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(rig->problem, sizeof(rig->problem), format, arguments);
    va_end(arguments);
}

/* ---- the log ---- */

int rig_log_level = REDLOCK_LOG_ERROR + 1;

static void on_log(redlock_log_level level, const char *line, void *arg) {
    (void)arg;
    if ((int)level >= rig_log_level) {
        printf("%s\n", line);
    }
}

/* ---- the loop ---- */

static uint64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void turn(struct rig *rig) {
    event_base_loop(rig->base, EVLOOP_ONCE);
}

/* Has the loop come back now and then, so that conditions are looked at again. */
static void on_tick(evutil_socket_t fd, short events, void *arg) {
    (void)fd;
    (void)events;
    (void)arg;
}

static bool is_any_open(const struct rig *rig) {
    const struct record *record;
    STAILQ_FOREACH(record, &rig->records, link) {
        if (record->is_open && record->loss != record) {
            return true;
        }
    }
    return false;
}

void rig_await_all(struct rig *rig) {
    uint64_t limit = now_ms() + PATIENCE_MS;
    while (is_any_open(rig) && rig->problem[0] == '\0') {
        if (now_ms() > limit) {
            rig_complain(rig, "a callback never came");
        }
        turn(rig);
    }
}

void rig_await(struct rig *rig, const struct record *record) {
    uint64_t limit = now_ms() + PATIENCE_MS;
    while (record->is_open && rig->problem[0] == '\0') {
        if (now_ms() > limit) {
            rig_complain(rig, "a callback never came");
        }
        turn(rig);
    }
}

void rig_await_loss(struct rig *rig, const struct record *held) {
    if (rig_has(held)) {
        rig_await(rig, held->loss);
    }
}

void rig_wait(struct rig *rig, bool (*condition)(const struct rig *rig)) {
    uint64_t limit = now_ms() + 1000;
    while (!condition(rig) && now_ms() < limit) {
        turn(rig);
    }
}

/* ---- records ---- */

static struct record *expect(struct rig *rig) {
    struct record *record = calloc(1, sizeof(*record));
    if (record == NULL) {
        abort();
    }
    record->rig = rig;
    STAILQ_INSERT_TAIL(&rig->records, record, link);
    rig->is_calling = true;
    return record;
}

static void called(struct record *record, redlock_status answer) {
    record->rig->is_calling = false;
    record->answer = answer;
    record->is_open = answer == REDLOCK_OK;
}

static void arrive(struct record *record, redlock_status status) {
    struct rig *rig = record->rig;
    if (rig->is_calling) {
        rig_complain(rig, "a callback came inside a call");
    } else if (!record->is_open) {
        rig_complain(rig, "a callback came that was not expected, with %s",
                     redlock_status_name(status));
    } else if (rig->client == NULL) {
        rig_complain(rig, "a callback came after the end of its client");
    }
    record->is_open = false;
    record->status = status;
    if (record->then != NULL) {
        record->then(rig, record);
    }
}

/* ---- callbacks ---- */

static void on_acquired(redlock_lock *lock, redlock_status status, void *arg) {
    struct record *record = arg;
    if (redlock_explain(lock)[0] == '\0') {
        rig_complain(record->rig, "no explanation");
    }
    if (status != REDLOCK_OK) {
        record->lock = NULL;
        record->loss->is_open = false;
    }
    arrive(record, status);
}

static void on_lost(redlock_lock *lock, redlock_status status, void *arg) {
    (void)lock;
    arrive(arg, status);
}

static void on_done(redlock_lock *lock, redlock_status status, void *arg) {
    (void)lock;
    arrive(arg, status);
}

static void on_closed(void *arg) {
    struct record *closed = arg;
    struct rig *rig = closed->rig;
    struct record *record;
    closed->is_open = false;
    rig->client = NULL;
    STAILQ_FOREACH(record, &rig->records, link) {
        if (record->is_open) {
            rig_complain(rig, "the client has ended without a callback");
        }
        record->lock = NULL;
    }
    if (rig->heap.blocks != 0) {
        rig_complain(rig, "the client has ended and left %zu blocks of memory", rig->heap.blocks);
    }
}

/* ---- calls ---- */

bool rig_has(const struct record *record) {
    return record->answer == REDLOCK_OK && !record->is_open && record->status == REDLOCK_OK &&
           record->lock != NULL;
}

redlock_request rig_request(const char *key, uint64_t ttl_ms) {
    redlock_request request = REDLOCK_REQUEST_INIT;
    request.key = key;
    request.ttl_ms = ttl_ms;
    return request;
}

bool rig_create(struct rig *rig) {
    redlock_error error = {REDLOCK_OK, ""};
    rig->options.nodes = rig->nodes;
    rig->options.node_count = rig->server_count;
    rig->is_calling = true;
    redlock_status status = redlock_client_create(rig->base, &rig->options, &rig->client, &error);
    rig->is_calling = false;
    if ((status == REDLOCK_OK) != (rig->client != NULL) || error.message[0] == '\0') {
        rig_complain(rig, "no client and no reason");
    }
    if (fault_has_struck(FAULT_SODIUM_INIT) && status != REDLOCK_ESYSTEM) {
        rig_complain(rig, "a client without randomness");
    }
    if (status != REDLOCK_OK && rig->heap.blocks != 0) {
        rig_complain(rig, "a client that was refused left %zu blocks", rig->heap.blocks);
    }
    return status == REDLOCK_OK;
}

static bool is_connected(const struct rig *rig) {
    redlock_node_info infos[RIG_SERVERS];
    size_t count = redlock_client_nodes(rig->client, infos, RIG_SERVERS);
    for (size_t i = 0; i < count; i++) {
        if (!infos[i].connected) {
            return false;
        }
    }
    return true;
}

void rig_connect(struct rig *rig) {
    if (rig->client != NULL) {
        rig_wait(rig, is_connected);
    }
}

struct record *rig_acquire(struct rig *rig, const redlock_request *request) {
    redlock_request asked = *request;
    struct record *loss = expect(rig);
    struct record *record = expect(rig);
    loss->loss = loss; /* marks it: it need not come */
    record->loss = loss;
    asked.on_lost = on_lost;
    asked.on_lost_arg = loss;
    called(record, redlock_acquire(rig->client, &asked, on_acquired, record, &record->lock));
    loss->is_open = record->is_open;
    return record;
}

struct record *rig_extend(struct rig *rig, const struct record *held, uint64_t ttl_ms) {
    struct record *record = expect(rig);
    called(record,
           rig_has(held) ? redlock_extend(held->lock, ttl_ms, on_done, record) : REDLOCK_EINVAL);
    return record;
}

struct record *rig_release(struct rig *rig, struct record *held) {
    struct record *record = expect(rig);
    bool has = rig_has(held);
    called(record, has ? redlock_release(held->lock, on_done, record) : REDLOCK_EINVAL);
    if (has && record->is_open) {
        held->lock = NULL;
        held->loss->is_open = false;
    }
    return record;
}

void rig_cancel(struct rig *rig, struct record *record) {
    rig->is_calling = true;
    if (record->is_open) {
        redlock_cancel(record->lock);
    }
    rig->is_calling = false;
}

struct record *rig_close(struct rig *rig) {
    struct record *record = expect(rig);
    called(record, rig->client != NULL ? REDLOCK_OK : REDLOCK_ECLOSED);
    rig->is_calling = true;
    redlock_client_close(rig->client, on_closed, record);
    rig->is_calling = false;
    return record;
}

/* ---- the beginning and the end ---- */

void rig_begin(struct rig *rig, unsigned servers, const char *folder) {
    *rig = (struct rig){.server_count = servers};
    STAILQ_INIT(&rig->records);
    fault_heap_init(&rig->heap);
    const struct timeval often = {.tv_usec = 2000};
    rig->base = event_base_new();
    rig->tick = event_new(rig->base, -1, EV_PERSIST, on_tick, NULL);
    event_add(rig->tick, &often);
    for (unsigned i = 0; i < servers; i++) {
        server_start(&rig->servers[i], rig->base, folder, i);
        rig->nodes[i] = rig->servers[i].uri;
    }
    rig->options = (redlock_options)REDLOCK_OPTIONS_INIT;
    rig->options.allocator = &rig->heap.hook;
    rig->options.log = on_log;
    rig->options.log_level =
        rig_log_level < REDLOCK_LOG_ERROR ? (redlock_log_level)rig_log_level : REDLOCK_LOG_ERROR;
    rig->options.node_timeout_ms = 30;
    rig->options.stall_timeout_ms = 100;
    rig->options.retry_delay_ms = rig->options.reconnect_delay_ms = 2;
    rig->options.retry_delay_max_ms = rig->options.reconnect_delay_max_ms = 10;
}

/* It works: a key of nobody can be had. */
static void work(struct rig *rig) {
    redlock_request request = rig_request("works again", 20000);
    request.wait_ms = PATIENCE_MS;
    struct record *record = rig_acquire(rig, &request);
    rig_await(rig, record);
    if (!rig_has(record)) {
        rig_complain(rig, "it does not work again: %s",
                     redlock_status_name(record->answer ? record->answer : record->status));
    }
    rig_await(rig, rig_release(rig, record));
}

static void mend(struct rig *rig) {
    for (unsigned i = 0; i < rig->server_count; i++) {
        rig->servers[i].error = NULL;
        rig->servers[i].is_silent = false;
    }
    for (unsigned i = 0; i < rig->server_count; i++) {
        rig->nodes[i] = rig->servers[i].uri;
    }
}

static bool is_closing(const struct rig *rig) {
    redlock_request request = rig_request("", 0);
    return redlock_acquire(rig->client, &request, on_acquired, NULL, NULL) == REDLOCK_ECLOSED;
}

static void finish(struct rig *rig) {
    struct record *record;
    for (unsigned i = 0; i < rig->server_count; i++) {
        server_stop(&rig->servers[i]);
    }
    event_free(rig->tick);
    event_base_loop(rig->base, EVLOOP_NONBLOCK); /* buffered streams end from the loop */
    if (event_base_get_num_events(rig->base, EVENT_BASE_COUNT_ADDED) != 0) {
        rig_complain(rig, "an event is left in the loop");
    }
    event_base_free(rig->base);
    while ((record = STAILQ_FIRST(&rig->records)) != NULL) {
        STAILQ_REMOVE_HEAD(&rig->records, link);
        free(record);
    }
}

void rig_end(struct rig *rig) {
    mend(rig);
    rig_await_all(rig);
    if (rig->client == NULL) {
        rig_create(rig);
    }
    if (rig->client != NULL && !is_closing(rig)) {
        work(rig);
        rig_close(rig);
    }
    rig_await_all(rig);
    finish(rig);
}
