#include "core/options.h"

#include "base/error.h"
#include "base/nanos.h"
#include "core/answer_time.h"
#include "core/validity.h"
#include "wire/command.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* 100 years: a longer duration is taken for a mistake. */
#define DURATION_MAX_MS UINT64_C(3155760000000)

/* The largest size of any future struct: a larger `size` is uninitialized memory. */
#define SIZE_LIMIT 4096

/*
 * Copies `given`, a struct that begins with its size, over the defaults in `mine`. An older,
 * smaller struct leaves the defaults in the fields that it lacks; a newer, larger one must not set
 * fields that this library does not know. `least` is the smallest valid size, `init` the name of
 * the initializer.
 */
static redlock_status copy_sized(const void *given, size_t given_size, void *mine, size_t my_size,
                                 size_t least, const char *init, redlock_error *error) {
    /* Less than the first published version: `size` was not set. */
    if (given_size < least) {
        return error_set(error, REDLOCK_EINVAL, "size: not set; initialise the struct with %s",
                         init);
    }
    if (given_size > SIZE_LIMIT) {
        return error_set(error, REDLOCK_EINVAL, "size: %zu is not that of the struct; use %s",
                         given_size, init);
    }
    /* In a newer struct 0 means the default, which needs no support here. */
    for (size_t i = my_size; i < given_size; i++) {
        if (((const char *)given)[i] != 0) {
            return error_set(error, REDLOCK_EINVAL,
                             "size: a field was set that this version of libredlock (%zu bytes of "
                             "%zu) does not know",
                             my_size, given_size);
        }
    }
    memcpy(mine, given, given_size < my_size ? given_size : my_size);
    return REDLOCK_OK;
}

static redlock_status check_range(const char *field, uint64_t value, uint64_t least, uint64_t most,
                                  redlock_error *error) {
    if (value < least || value > most) {
        return error_set(error, REDLOCK_EINVAL,
                         "%s: %" PRIu64 " is not between %" PRIu64 " and %" PRIu64, field, value,
                         least, most);
    }
    return REDLOCK_OK;
}

static redlock_status check_durations(const redlock_options *options, redlock_error *error) {
    const struct {
        const char *field;
        uint64_t value, least;
    } durations[] = {
        {"node_timeout_ms", options->node_timeout_ms, 0},
        {"stall_timeout_ms", options->stall_timeout_ms, 0},
        {"max_ttl_ms", options->max_ttl_ms, 1},
        {"retry_delay_ms", options->retry_delay_ms, 1},
        {"retry_delay_max_ms", options->retry_delay_max_ms, options->retry_delay_ms},
        {"reconnect_delay_ms", options->reconnect_delay_ms, 1},
        {"reconnect_delay_max_ms", options->reconnect_delay_max_ms, options->reconnect_delay_ms},
        {"fence_idle_ms", options->fence_idle_ms, 0},
        {"close_timeout_ms", options->close_timeout_ms, 0},
        {"idle_close_ms", options->idle_close_ms, 0},
    };
    for (size_t i = 0; i < sizeof(durations) / sizeof(durations[0]); i++) {
        redlock_status status = check_range(durations[i].field, durations[i].value,
                                            durations[i].least, DURATION_MAX_MS, error);
        if (status != REDLOCK_OK) {
            return status;
        }
    }
    return REDLOCK_OK;
}

/*
 * Refuses a counter that may expire before a lock does: the next fence could be smaller. The
 * default, `usual_ms`, which the application may not know of, follows a longer max_ttl_ms instead.
 */
static redlock_status check_idle(redlock_options *options, uint64_t usual_ms,
                                 redlock_error *error) {
    if (options->fence_idle_ms == usual_ms && options->max_ttl_ms > usual_ms) {
        options->fence_idle_ms = options->max_ttl_ms;
    }
    if (options->fence_idle_ms != 0 && options->fence_idle_ms < options->max_ttl_ms) {
        return error_set(error, REDLOCK_EINVAL,
                         "fence_idle_ms: %" PRIu64 " is less than max_ttl_ms, %" PRIu64
                         ", and not 0, for ever",
                         options->fence_idle_ms, options->max_ttl_ms);
    }
    return REDLOCK_OK;
}

static redlock_status check_label(const char *field, const char *label, redlock_error *error) {
    for (const char *p = label; p != NULL && *p != '\0'; p++) {
        /* Labels go into client names and the values of keys, where inspection reads them back. */
        if (*p < '!' || *p > '~' || p - label >= 64) {
            return error_set(error, REDLOCK_EINVAL,
                             "%s: must be at most 64 printable ASCII characters without spaces",
                             field);
        }
    }
    return REDLOCK_OK;
}

static redlock_status check_hooks(const redlock_options *options, redlock_error *error) {
    const redlock_allocator *allocator = options->allocator;
    /* A hook that is set in part would free with one allocator what another one allocated. */
    if (allocator != NULL &&
        (allocator->malloc == NULL || allocator->realloc == NULL || allocator->free == NULL)) {
        return error_set(error, REDLOCK_EINVAL,
                         "allocator: malloc, realloc and free must all be set");
    }
    if (options->log_level < REDLOCK_LOG_DEBUG || options->log_level > REDLOCK_LOG_ERROR) {
        return error_set(error, REDLOCK_EINVAL, "log_level: %d is not one of REDLOCK_LOG_*",
                         (int)options->log_level);
    }
    if (options->guards < REDLOCK_GUARDS_ON || options->guards > REDLOCK_GUARDS_OFF) {
        return error_set(error, REDLOCK_EINVAL, "guards: %d is not one of REDLOCK_GUARDS_*",
                         (int)options->guards);
    }
    redlock_status status = check_label("name", options->name, error);
    return status == REDLOCK_OK ? check_label("owner", options->owner, error) : status;
}

static redlock_status check_tls(const redlock_options *options, redlock_error *error) {
    if (options->tls_key_file != NULL && options->tls_cert_file == NULL) {
        return error_set(error, REDLOCK_EINVAL,
                         "tls_key_file: tls_cert_file, which it belongs to, is not set");
    }
    return REDLOCK_OK;
}

redlock_status options_check_nodes(const char *const *nodes, size_t count, redlock_error *error) {
    if (nodes == NULL) {
        return error_set(error, REDLOCK_EINVAL, "nodes: not set");
    }
    return check_range("node_count", count, 1, REDLOCK_MAX_NODES, error);
}

redlock_status options_read(const redlock_options *given, redlock_options *options,
                            redlock_error *error) {
    *options = (redlock_options)REDLOCK_OPTIONS_INIT;
    const uint64_t usual_idle_ms = options->fence_idle_ms;
    redlock_status status =
        copy_sized(given, given->size, options, sizeof(*options),
                   offsetof(redlock_options, node_timeout_ms), "REDLOCK_OPTIONS_INIT", error);
    if (status != REDLOCK_OK) {
        return status;
    }
    if ((status = options_check_nodes(options->nodes, options->node_count, error))) {
        return status;
    }
    /* Negated, so that a NaN is refused. */
    if (!(options->drift >= 0 && options->drift <= 0.5)) {
        return error_set(error, REDLOCK_EINVAL, "drift: %g is not between 0 and 0.5",
                         options->drift);
    }
    if ((status = check_durations(options, error)) ||
        (status = check_idle(options, usual_idle_ms, error)) ||
        (status = check_range("max_commands", options->max_commands, 16, UINT32_MAX, error)) ||
        (status = check_range("handover", options->handover, REDLOCK_HANDOVER_PUSH,
                              REDLOCK_HANDOVER_CONFIRM, error)) ||
        (status = check_range("max_bytes", options->max_bytes, 4096, SIZE_MAX, error)) ||
        (status = check_tls(options, error))) {
        return status;
    }
    return check_hooks(options, error);
}

redlock_status options_check_ttl(const redlock_options *options, uint64_t ttl_ms,
                                 uint64_t lock_delay_ms, uint64_t min_validity_ms,
                                 redlock_error *error) {
    redlock_status status = check_range("ttl_ms", ttl_ms, 1, options->max_ttl_ms, error);
    if (status != REDLOCK_OK) {
        return error_set(error, status,
                         "ttl_ms: %" PRIu64 " is not between 1 and max_ttl_ms, %" PRIu64, ttl_ms,
                         options->max_ttl_ms);
    }
    /* Nodes keep the key for both times. Subtracted, because the sum could overflow. */
    if (lock_delay_ms > options->max_ttl_ms - ttl_ms) {
        return error_set(error, REDLOCK_EINVAL,
                         "ttl_ms: %" PRIu64 " and lock_delay_ms, %" PRIu64
                         ", are more together than max_ttl_ms, %" PRIu64,
                         ttl_ms, lock_delay_ms, options->max_ttl_ms);
    }
    uint64_t validity = validity_end(0, nanos_from_ms(ttl_ms), options->drift);
    /* Redlock step 3 would refuse every try, even one that took no time. */
    if (validity <= nanos_from_ms(min_validity_ms)) {
        return error_set(error, REDLOCK_EINVAL,
                         "ttl_ms: %" PRIu64 " leaves %" PRIu64 " ms of validity after drift, and "
                         "more than min_validity_ms, %" PRIu64 ", is asked for",
                         ttl_ms, nanos_to_ms(validity), min_validity_ms);
    }
    return REDLOCK_OK;
}

static bool ends_with(const char *bytes, size_t length, const char *suffix) {
    size_t suffix_length = strlen(suffix);
    return length >= suffix_length && bytes[length - 1] == suffix[suffix_length - 1] &&
           memcmp(bytes + length - suffix_length, suffix, suffix_length) == 0;
}

static bool is_name(const char *bytes, size_t length, const char *name) {
    return length == strlen(name) && memcmp(bytes, name, length) == 0;
}

redlock_status options_check_key(const char *field, const char *key, size_t *length,
                                 redlock_error *error) {
    if (key == NULL) {
        return error_set(error, REDLOCK_EINVAL, "%s: not set", field);
    }
    /* A C string, of which no more is read than the bound needs. */
    if (*length == 0) {
        *length = strnlen(key, REDLOCK_MAX_KEY + 1);
    }
    if (*length == 0) {
        return error_set(error, REDLOCK_EINVAL, "%s: empty", field);
    }
    if (*length > REDLOCK_MAX_KEY) {
        return error_set(error, REDLOCK_EINVAL, "%s: longer than %d bytes", field, REDLOCK_MAX_KEY);
    }
    /* The marker decides whether a node's votes count: no lock may overwrite it. */
    if (is_name(key, *length, REDLOCK_MARKER_KEY)) {
        return error_set(error, REDLOCK_EINVAL, "%s: " REDLOCK_MARKER_KEY " is kept for nodes",
                         field);
    }
    static const char *const of_queues[] = {WAITING_KEY, QUEUES_KEY};
    for (size_t i = 0; i < sizeof(of_queues) / sizeof(of_queues[0]); i++) {
        if (is_name(key, *length, of_queues[i])) {
            return error_set(error, REDLOCK_EINVAL, "%s: %s is kept for queues", field,
                             of_queues[i]);
        }
    }
    static const char *const kept[][2] = {{COUNTER_SUFFIX, "counters"},
                                          {READERS_SUFFIX, "readers"},
                                          {WRITER_SUFFIX, "writers"},
                                          {QUEUE_SUFFIX, "queues"},
                                          {PERMITS_SUFFIX, "permits"}};
    /* Scripts append these suffixes to a lock's key, so no key may end in one. */
    for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
        if (ends_with(key, *length, kept[i][0])) {
            return error_set(error, REDLOCK_EINVAL, "%s: what ends in %s is kept for %s", field,
                             kept[i][0], kept[i][1]);
        }
    }
    return REDLOCK_OK;
}

/*
 * Checks that readers and writers have one key and no permits, and that readers want neither a
 * fence nor a key that stays.
 */
static redlock_status check_mode(const redlock_request *request, redlock_error *error) {
    if (request->mode < REDLOCK_EXCLUSIVE || request->mode > REDLOCK_WRITER) {
        return error_set(error, REDLOCK_EINVAL, "mode: %d is not one of redlock_mode",
                         (int)request->mode);
    }
    /* A fence orders holders that follow each other, and readers hold the key together. */
    if (request->mode == REDLOCK_READER && request->fenced) {
        return error_set(error, REDLOCK_EINVAL, "fenced: readers do not hold the key alone");
    }
    /* A share is no key of its own that could stay after its release. */
    if (request->mode == REDLOCK_READER && request->min_hold_ms > 0) {
        return error_set(error, REDLOCK_EINVAL, "min_hold_ms: readers do not hold the key alone");
    }
    if (request->mode != REDLOCK_EXCLUSIVE && (request->key_count > 0 || request->permits > 0)) {
        return error_set(error, REDLOCK_EINVAL,
                         "mode: readers and writers have one key, neither keys nor permits");
    }
    return REDLOCK_OK;
}

/*
 * Refuses a watch without a watchdog, whose renewal looks into a change, and a watch by a reader,
 * because the readers' key changes with each of them.
 */
static redlock_status check_watch(const redlock_request *request, redlock_error *error) {
    if (request->watch_key && !request->watchdog) {
        return error_set(error, REDLOCK_EINVAL, "watch_key: the watchdog, which looks, is off");
    }
    if (request->watch_key && request->mode == REDLOCK_READER) {
        return error_set(error, REDLOCK_EINVAL, "watch_key: readers do not hold the key alone");
    }
    return REDLOCK_OK;
}

const char *options_key(const redlock_request *request, size_t index, size_t *length) {
    assert(index == 0 || index < request->key_count);
    if (request->key_count == 0) {
        *length = request->key_length;
        return request->key;
    }
    const char *key = request->keys[index];
    *length = request->key_lengths != NULL ? request->key_lengths[index] : 0;
    *length = *length != 0 ? *length : strlen(key);
    return key;
}

static redlock_status check_twice(const redlock_request *request, size_t index,
                                  redlock_error *error) {
    size_t length;
    const char *key = options_key(request, index, &length);
    for (size_t i = 0; i < index; i++) {
        size_t other_length;
        const char *other = options_key(request, i, &other_length);
        if (length == other_length && memcmp(key, other, length) == 0) {
            return error_set(error, REDLOCK_EINVAL, "keys[%zu]: the same as keys[%zu]", index, i);
        }
    }
    return REDLOCK_OK;
}

/* Checks that the key leaves room for the suffix of each permit's key. */
static redlock_status check_permits(const redlock_request *request, redlock_error *error) {
    size_t room = strlen(":255");
    if (request->permits > 0 && request->key_count > 0) {
        return error_set(error, REDLOCK_EINVAL, "permits: set beside keys");
    }
    if (request->permits > 0 && request->key_length > REDLOCK_MAX_KEY - room) {
        return error_set(error, REDLOCK_EINVAL, "key: with permits, longer than %zu bytes",
                         REDLOCK_MAX_KEY - room);
    }
    return check_range("permits", request->permits, 0, REDLOCK_MAX_PERMITS, error);
}

static redlock_status check_keys(const redlock_request *request, redlock_error *error) {
    size_t total = 0;
    if (request->key != NULL) {
        return error_set(error, REDLOCK_EINVAL, "key: set beside keys");
    }
    if (request->keys == NULL) {
        return error_set(error, REDLOCK_EINVAL, "keys: not set");
    }
    redlock_status status =
        check_range("key_count", request->key_count, 1, REDLOCK_MAX_KEYS, error);
    for (size_t i = 0; i < request->key_count && status == REDLOCK_OK; i++) {
        char field[32];
        size_t length = request->key_lengths != NULL ? request->key_lengths[i] : 0;
        snprintf(field, sizeof(field), "keys[%zu]", i);
        status = options_check_key(field, request->keys[i], &length, error);
        status = status == REDLOCK_OK ? check_twice(request, i, error) : status;
        total += length;
    }
    if (status == REDLOCK_OK && total > REDLOCK_MAX_KEY) {
        return error_set(error, REDLOCK_EINVAL, "keys: longer than %d bytes together",
                         REDLOCK_MAX_KEY);
    }
    return status;
}

/* Returns the timeout of a node nearby. */
static uint64_t usual_timeout_ms(const redlock_options *options) {
    return options->node_timeout_ms != 0 ? options->node_timeout_ms : nanos_to_ms(ANSWER_MARGIN);
}

uint64_t options_wait_ms(const redlock_options *options) {
    /* Half of a round's time is left for the way there and back. WAIT 0 would wait forever. */
    return usual_timeout_ms(options) / 2 + 1;
}

uint64_t options_stall(const redlock_options *options) {
    uint64_t fixed = nanos_from_ms(options->stall_timeout_ms);
    return fixed != 0 ? fixed : OPTIONS_STALL_MIN;
}

uint64_t options_max_age(const redlock_options *options, uint64_t period) {
    /* One heartbeat may be late, and the answer takes its time. */
    return nanos_add(2 * period, nanos_from_ms(usual_timeout_ms(options)));
}

/* The time that nodes have to connect once a quorum is up, if node_timeout_ms is adaptive. */
#define CONNECT_PATIENCE (50 * NANOS_PER_MS)

/* Refuses a stall timeout that would drop a node while it is silent for a WAIT. */
static redlock_status check_replicas(const redlock_request *request, const redlock_options *options,
                                     redlock_error *error) {
    uint64_t timeout_ms = usual_timeout_ms(options);
    if (request->wait_replicas > 0 && options->stall_timeout_ms != 0 &&
        options->stall_timeout_ms < timeout_ms) {
        return error_set(error, REDLOCK_EINVAL,
                         "wait_replicas: %" PRIu32 " needs a stall_timeout_ms, %" PRIu64
                         ", of at least node_timeout_ms, %" PRIu64
                         ": a node that waits for its replicas is silent",
                         request->wait_replicas, options->stall_timeout_ms, timeout_ms);
    }
    return REDLOCK_OK;
}

redlock_status options_read_request(const redlock_request *given, const redlock_options *options,
                                    redlock_request *request, redlock_error *error) {
    *request = (redlock_request)REDLOCK_REQUEST_INIT;
    redlock_status status =
        copy_sized(given, given->size, request, sizeof(*request),
                   offsetof(redlock_request, key_length), "REDLOCK_REQUEST_INIT", error);
    if (status != REDLOCK_OK) {
        return status;
    }
    status = request->keys != NULL || request->key_count != 0
                 ? check_keys(request, error)
                 : options_check_key("key", request->key, &request->key_length, error);
    if (status != REDLOCK_OK || (status = check_mode(request, error))) {
        return status;
    }
    /* Refused rather than ignored: without renewals the TTL is the bound. */
    if (request->max_hold_ms != 0 && !request->watchdog) {
        return error_set(error, REDLOCK_EINVAL, "max_hold_ms: bounds the watchdog, which is off");
    }
    /* A key that a release leaves at the nodes stays no longer than its expiry. */
    if (request->min_hold_ms > request->ttl_ms) {
        return error_set(error, REDLOCK_EINVAL,
                         "min_hold_ms: %" PRIu64 " is more than ttl_ms, %" PRIu64,
                         request->min_hold_ms, request->ttl_ms);
    }
    if ((status = check_watch(request, error)) || (status = check_permits(request, error)) ||
        (status = check_replicas(request, options, error))) {
        return status;
    }
    return options_check_ttl(options, request->ttl_ms, request->lock_delay_ms,
                             request->min_validity_ms, error);
}

redlock_status options_read_key(const redlock_request *given, redlock_request *request,
                                redlock_error *error) {
    *request = *given;
    return options_check_key("key", request->key, &request->key_length, error);
}

/*
 * Returns the time for which nodes keep a pushed key for the request. The age of a node's memory is
 * measured by clients, a reservation by the node: it must be over there, on a slow clock, too, when
 * a node that was restarted since counts again.
 */
static uint64_t reservation(const redlock_options *options, uint64_t ttl_ms) {
    uint64_t usual = nanos_from_ms(nanos_min(ttl_ms, OPTIONS_RESERVATION_MS));
    uint64_t most = validity_end(0, nanos_from_ms(options->max_ttl_ms), options->drift);

    return nanos_max(nanos_min(usual, most), NANOS_PER_MS);
}

struct lease_terms options_terms(const redlock_options *options, const redlock_request *request) {
    uint64_t wait_ms = request->wait_ms;
    return (struct lease_terms){
        .drift = options->drift,
        .ttl = nanos_from_ms(request->ttl_ms),
        .connect_patience = options->node_timeout_ms != 0 ? nanos_from_ms(options->node_timeout_ms)
                                                          : CONNECT_PATIENCE,
        .retry_delay = nanos_from_ms(options->retry_delay_ms),
        .retry_delay_max = nanos_from_ms(options->retry_delay_max_ms),
        .wait = wait_ms == 0 ? NANOS_NEVER : nanos_from_ms(wait_ms),
        .retries = wait_ms != 0 && request->retries == 0 ? UINT32_MAX : request->retries,
        .min_validity = nanos_from_ms(request->min_validity_ms),
        .watchdog = request->watchdog,
        .fenced = request->fenced,
        .min_hold = nanos_from_ms(request->min_hold_ms),
        .lock_delay = nanos_from_ms(request->lock_delay_ms),
        .is_reader = request->mode == REDLOCK_READER,
        .permits = request->permits,
        .watches = request->watch_key,
        .replicas = request->wait_replicas,
        /* Counted retries poll, and so do grants that replicas confirm: pushes have no WAIT. */
        .queues = wait_ms != 0 && request->retries == 0 && request->wait_replicas == 0,
        /* Pushed keys last for a reservation: they need a renewal, and clocks that guards check. */
        .trusts_pushes = options->handover == REDLOCK_HANDOVER_PUSH && request->watchdog &&
                         options->guards != REDLOCK_GUARDS_OFF &&
                         request->ttl_ms >= OPTIONS_PUSH_TTL_MS && request->min_hold_ms == 0 &&
                         request->lock_delay_ms == 0,
        .reservation = reservation(options, request->ttl_ms),
        .max_hold = request->max_hold_ms == 0 ? NANOS_NEVER : nanos_from_ms(request->max_hold_ms),
    };
}
