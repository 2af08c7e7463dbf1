/* The load of an application: redlock_acquire, redlock_release. */
#include "client.h"
#include "keys.h"
#include "load.h"
#include "memory.h"

#include <redlock.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Time limit for a request for a shared key in the queue. */
#define WAIT_MS 30000

struct slot {
    struct load *load;
    redlock_lock *lock; /* while held */
    char key[LOAD_KEY_SIZE];
};

struct load {
    redlock_client *client;
    struct load_settings settings;
    struct keys_source source; /* source of shared keys */
    size_t prefix_length;      /* length of a key up to its number */
    struct slot slots[];
};

static size_t index_of(const struct slot *slot) {
    return (size_t)(slot - slot->load->slots);
}

static struct load *create(const struct load_settings *settings) {
    struct load *load = memory_take(1, sizeof(*load) + settings->slot_count * sizeof(struct slot));

    load->settings = *settings;
    keys_begin(&load->source, settings->first_slot);
    for (size_t i = 0; i < settings->slot_count; i++) {
        load->slots[i].load = load;
        load_format_key(load->slots[i].key, settings->first_slot + i);
    }

    load->prefix_length = (size_t)(strrchr(load->slots[0].key, ':') + 1 - load->slots[0].key);
    load->client = client_create_on(
        settings->loop, settings->base, settings->nodes, settings->node_count,
        client_options(settings->slot_count, settings->ttl_ms, settings->node_timeout_ms));
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
    cycles_acquired(slot->load->settings.cycles, index_of(slot), status,
                    status == REDLOCK_OK ? NULL : redlock_explain(lock));
}

/* Replaces the slot's number in the key by that of a shared key. */
static void choose_key(struct load *load, size_t slot) {
    char *key = load->slots[slot].key;
    size_t number = keys_pick(load->settings.keys, &load->source);

    snprintf(key + load->prefix_length, LOAD_KEY_SIZE - load->prefix_length, "%zu", number);
}

static const char *acquire(struct load *load, size_t slot) {
    const struct load_settings *settings = &load->settings;
    redlock_request request = REDLOCK_REQUEST_INIT;

    if (settings->keys != NULL) {
        choose_key(load, slot);
        request.wait_ms = WAIT_MS;
        request.watchdog = true; /* so that a handover is reported at once */
    }
    request.key = load->slots[slot].key;
    request.ttl_ms = settings->ttl_ms;
    request.fenced = settings->fenced;
    request.mode = settings->mode;
    if (redlock_acquire(load->client, &request, on_acquired, &load->slots[slot], NULL) !=
        REDLOCK_OK) {
        return redlock_client_error(load->client);
    }
    return NULL;
}

static void on_released(redlock_lock *lock, redlock_status status, void *arg) {
    struct slot *slot = arg;

    slot->lock = NULL;
    cycles_released(slot->load->settings.cycles, index_of(slot),
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
    struct cycles *cycles = load->settings.cycles;

    free(load);
    cycles_closed(cycles);
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
