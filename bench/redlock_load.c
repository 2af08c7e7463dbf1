/* The load of an application: redlock_acquire, redlock_release. */
#include "client.h"
#include "load.h"

#include <redlock.h>
#include <stdlib.h>

/*
 * Some thousands of locks in flight wait for each other at the servers for longer than the default
 * of 50 ms: a queue that the user asked for, not an error.
 */
#define NODE_TIMEOUT_MS 500

struct slot {
    struct load *load;
    redlock_lock *lock; /* while held */
    char key[LOAD_KEY_SIZE];
};

struct load {
    struct measure *measure;
    redlock_client *client;
    size_t slot_count;
    struct slot slots[];
};

static size_t index_of(const struct slot *slot) {
    return (size_t)(slot - slot->load->slots);
}

static struct load *create(const struct load_settings *settings) {
    redlock_options options = REDLOCK_OPTIONS_INIT;
    struct load *load = calloc(1, sizeof(*load) + settings->slot_count * sizeof(struct slot));

    if (load == NULL) {
        fputs("redlock-bench: out of memory\n", stderr);
        return NULL;
    }
    load->measure = settings->measure;
    load->slot_count = settings->slot_count;
    for (size_t i = 0; i < settings->slot_count; i++) {
        load->slots[i].load = load;
        load_format_key(load->slots[i].key, i);
    }

    options.node_timeout_ms = NODE_TIMEOUT_MS;
    load->client = client_create(settings->base, settings->nodes, settings->node_count, options);
    if (load->client == NULL) {
        free(load);
        return NULL;
    }
    return load;
}

static bool is_ready(struct load *load, FILE *complaints) {
    return client_is_ready(load->client, complaints);
}

static void on_acquired(redlock_lock *lock, redlock_status status, void *arg) {
    struct slot *slot = arg;

    slot->lock = status == REDLOCK_OK ? lock : NULL;
    measure_acquired(slot->load->measure, index_of(slot),
                     status == REDLOCK_OK ? NULL : redlock_explain(lock));
}

static const char *acquire(struct load *load, size_t slot) {
    redlock_request request = REDLOCK_REQUEST_INIT;

    request.key = load->slots[slot].key;
    request.ttl_ms = LOAD_TTL_MS;
    if (redlock_acquire(load->client, &request, on_acquired, &load->slots[slot], NULL) !=
        REDLOCK_OK) {
        return redlock_client_error(load->client);
    }
    return NULL;
}

static void on_released(redlock_lock *lock, redlock_status status, void *arg) {
    struct slot *slot = arg;

    slot->lock = NULL;
    measure_released(slot->load->measure, index_of(slot),
                     status == REDLOCK_OK ? NULL : redlock_explain(lock));
}

static const char *release(struct load *load, size_t slot) {
    if (redlock_release(load->slots[slot].lock, on_released, &load->slots[slot]) != REDLOCK_OK) {
        return redlock_client_error(load->client);
    }
    return NULL;
}

static void on_closed(void *arg) {
    struct load *load = arg;
    struct measure *measure = load->measure;

    free(load);
    measure_closed(measure);
}

static void close_load(struct load *load) {
    redlock_client_close(load->client, on_closed, load);
}

const struct load_kind redlock_load = {
    .name = "redlock",
    .create = create,
    .is_ready = is_ready,
    .acquire = acquire,
    .release = release,
    .close = close_load,
};
