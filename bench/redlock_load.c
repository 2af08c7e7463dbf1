/* The load as an application makes it: redlock_acquire, redlock_release. */
#include "load.h"

#include <redlock.h>
#include <stdlib.h>
#include <string.h>

/*
 * Some thousands of locks in flight wait for each other at the servers for longer than the default
 * of 50 ms. That is the queue that was asked for, not an error.
 */
#define NODE_TIMEOUT_MS 500

/* Longer ones are refused. */
#define URI_SIZE 512

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

/*
 * A benchmark does not wait for new masters to be trusted; otherwise the guards are on, as they are
 * by default.
 */
static void take_for_durable(char (*texts)[URI_SIZE], const char **uris,
                             const struct load_settings *settings) {
    for (size_t i = 0; i < settings->node_count && i < REDLOCK_MAX_NODES; i++) {
        const char *uri = settings->nodes[i];
        snprintf(texts[i], URI_SIZE, "%s%cdurable=yes", uri, strchr(uri, '?') != NULL ? '&' : '?');
        uris[i] = texts[i];
    }
}

static struct load *create(const struct load_settings *settings) {
    char texts[REDLOCK_MAX_NODES][URI_SIZE];
    const char *uris[REDLOCK_MAX_NODES];
    redlock_options options = REDLOCK_OPTIONS_INIT;
    redlock_error error;
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

    take_for_durable(texts, uris, settings);
    options.nodes = uris;
    options.node_count = settings->node_count;
    options.node_timeout_ms = NODE_TIMEOUT_MS;
    options.name = "redlock-bench";
    if (redlock_client_create(settings->base, &options, &load->client, &error) != REDLOCK_OK) {
        fprintf(stderr, "redlock-bench: %s\n", error.message);
        free(load);
        return NULL;
    }
    return load;
}

static bool is_ready(struct load *load, FILE *complaints) {
    redlock_node_info infos[REDLOCK_MAX_NODES];
    size_t count = redlock_client_nodes(load->client, infos, REDLOCK_MAX_NODES);
    bool ready = true;

    for (size_t i = 0; i < count; i++) {
        if (!infos[i].connected) {
            ready = false;
            if (complaints != NULL) {
                fprintf(complaints, "redlock-bench: %s is not connected: %s\n", infos[i].node,
                        infos[i].reason);
            }
        }
    }
    return ready;
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
