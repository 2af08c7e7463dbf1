/*
 * The happy path: batches_add adds a flight to the open batch of the same script and nodes; a full
 * batch takes no more locks. At the end of the turn all are sent, those that release and renew
 * first, so that a key released in this turn can be taken in it.
 *
 * A call for a top-up, or for a node that must be asked again, does not wait for the end of the
 * turn. The collected calls are sent before it if one of them may release its key.
 *
 * Failures: without memory for a batch, the flight's nodes vote UNREACHABLE.
 */
#include "round/batches.h"

#include <string.h>

/* The number of bytes from which a call takes no more locks. */
#define BATCH_BYTES_MAX (64 * 1024)

static void send_now(void *owner, struct batch *batch);

void batches_init(struct batches *batches, struct context *context, const struct members *members) {
    struct batch_listener listener = {.on_repeat = send_now, .owner = batches};
    *batches = (struct batches){0};
    batch_shared_init(&batches->shared, context, members, listener);
    STAILQ_INIT(&batches->open);
    STAILQ_INIT(&batches->full);
}

void batches_finish(struct batches *batches) {
    batch_shared_finish(&batches->shared);
}

/* ---- the keys of collected calls ---- */

/* Returns the index of the word with a key's bit, in the filter over collected calls. */
static size_t filter_word(const struct key *key) {
    return key->hash % BATCHES_KEY_BITS / 64;
}

static uint64_t filter_bit(const struct key *key) {
    return UINT64_C(1) << key->hash % 64;
}

bool batches_may_hold(const struct batches *batches, const struct key *keys) {
    bool may_hold = false;
    for (const struct key *key = keys; key != NULL; key = key->next) {
        may_hold |= (batches->keys[filter_word(key)] & filter_bit(key)) != 0;
    }
    return may_hold;
}

static void record_keys(struct batches *batches, const struct key *keys) {
    for (const struct key *key = keys; key != NULL; key = key->next) {
        batches->keys[filter_word(key)] |= filter_bit(key);
    }
}

/* ---- collecting ---- */

bool batches_are_full(const struct batches *batches, unsigned reads, size_t bytes) {
    /* Half of max_bytes: a longer call would have to wait for an idle connection. */
    size_t sendable = batches->shared.context->options.max_bytes / 2;
    size_t most = sendable < BATCH_BYTES_MAX ? sendable : BATCH_BYTES_MAX;
    return reads >= SCRIPT_MAX_KEYS || bytes >= most;
}

static bool batch_has_room(const struct batches *batches, const struct batch *batch) {
    return !batch->arguments.keys.failed && !batch->arguments.arguments.failed &&
           !batches_are_full(batches, batch->reads, script_call_length(&batch->arguments));
}

/*
 * Returns the position of a flight's call in the turn. If the key is released in the turn in which
 * it is requested, other waiters are likely, and one call can do both.
 */
static enum batch_order order_of(const struct batches *batches, enum script script,
                                 const struct flight_plan *plan) {
    const struct members *members = batches->shared.members;
    /* Releases and renewals first: keys that are released here can be taken in this turn. */
    if (!script_takes(script)) {
        return BATCH_FIRST;
    }
    /* The entry is there when the release comes, and the node pushes the key at once. */
    if (plan->order == FLIGHT_BEFORE_RELEASES && members_can_push(members)) {
        return BATCH_BEFORE_RELEASES;
    }
    bool is_released = script == SCRIPT_QUEUE && batches_may_hold(batches, plan->key);
    return is_released && members_can_push(members) ? BATCH_AFTER_RELEASES : BATCH_LAST;
}

/* Returns the open batch for a flight, a new one if there is none, or NULL when out of memory. */
static struct batch *find_batch(struct batches *batches, enum script script, uint32_t nodes,
                                const struct flight_plan *plan) {
    enum batch_order order = order_of(batches, script, plan);
    struct batch *batch;
    STAILQ_FOREACH(batch, &batches->open, link) {
        /* A call has one script, one set of nodes, one WAIT and one place in the turn. */
        if (batch->call.script == script && batch->nodes == nodes &&
            batch->replicas == plan->replicas && batch->order == order) {
            return batch;
        }
    }
    batch = batch_create(&batches->shared, script, nodes, plan->replicas, order);
    if (batch != NULL) {
        STAILQ_INSERT_TAIL(&batches->open, batch, link);
    }
    return batch;
}

static void add_flight(struct batches *batches, struct batch *batch, struct flight *flight) {
    batch_add(batch, flight);
    record_keys(batches, flight->plan.key);
    if (!batch_has_room(batches, batch)) { /* find_batch must not find it again */
        STAILQ_REMOVE(&batches->open, batch, batch, link);
        STAILQ_INSERT_TAIL(&batches->full, batch, link);
    }
}

static void vote_out_of_memory(const struct batches *batches, uint32_t nodes,
                               struct flight *flight) {
    struct node *node;
    while ((node = members_take(batches->shared.members, &nodes)) != NULL) {
        flight_vote(flight, node, &PLAIN_VOTE(UNREACHABLE), "out of memory");
    }
}

void batches_add(struct batches *batches, enum script script, uint32_t nodes,
                 struct flight *flight) {
    uint32_t rest = nodes & members_all(batches->shared.members);
    struct batch *batch = find_batch(batches, script, rest, &flight->plan);
    if (batch != NULL) {
        add_flight(batches, batch, flight);
    } else {
        vote_out_of_memory(batches, rest, flight);
    }
}

/* ---- sending ---- */

static void send_all(struct batch_list *list) {
    while (!STAILQ_EMPTY(list)) {
        struct batch *batch = STAILQ_FIRST(list);
        STAILQ_REMOVE_HEAD(list, link);
        batch_send(batch);
        batch_drop(batch);
    }
}

/* Returns whether two calls together are no longer than one may be. */
static bool fit_together(const struct batches *batches, const struct batch *one,
                         const struct batch *other) {
    size_t bytes = script_call_length(&one->arguments) + script_call_length(&other->arguments);
    return !batches_are_full(batches, one->reads + other->reads, bytes);
}

/* Moves the collected releases into the calls for entries, as far as they fit. */
static void carry_releases(const struct batches *batches, struct batch_list *askers,
                           struct batch_list *first) {
    struct batch *batch, *releases, *next;
    STAILQ_FOREACH(batch, askers, link) {
        for (releases = STAILQ_FIRST(first); releases != NULL; releases = next) {
            /* Read first, because carrying drops the batch. */
            next = STAILQ_NEXT(releases, link);
            /* One command instead of two, as long as it stays within the bounds of a call. */
            if (batch_may_carry(batch, releases) && fit_together(batches, batch, releases)) {
                STAILQ_REMOVE(first, releases, batch, link);
                batch_carry(batch, releases);
            }
        }
    }
}

/* Sorts the collected calls by their positions in the turn. */
static void sort(const struct batches *batches, struct batch_list *collected,
                 struct batch_list lists[BATCH_ORDERS]) {
    const struct members *members = batches->shared.members;
    for (unsigned order = 0; order < BATCH_ORDERS; order++) {
        STAILQ_INIT(&lists[order]);
    }
    while (!STAILQ_EMPTY(collected)) {
        struct batch *batch = STAILQ_FIRST(collected);
        STAILQ_REMOVE_HEAD(collected, link);
        /* A channel may have broken since order_of was asked. */
        bool is_late = batch->order == BATCH_BEFORE_RELEASES && !members_can_push(members);
        STAILQ_INSERT_TAIL(&lists[is_late ? BATCH_LAST : batch->order], batch, link);
    }
}

void batches_send(struct batches *batches) {
    STAILQ_CONCAT(&batches->full, &batches->open);
    if (STAILQ_EMPTY(&batches->full)) {
        return;
    }
    /* Nothing is collected any more, so no later command has to wait for a call. */
    memset(batches->keys, 0, sizeof(batches->keys));
    struct batch_list lists[BATCH_ORDERS];
    sort(batches, &batches->full, lists);
    carry_releases(batches, &lists[BATCH_BEFORE_RELEASES], &lists[BATCH_FIRST]);
    carry_releases(batches, &lists[BATCH_AFTER_RELEASES], &lists[BATCH_FIRST]);
    for (unsigned order = 0; order < BATCH_ORDERS; order++) {
        send_all(&lists[order]); /* a key released in this turn can be taken in it */
    }
}

/* Sends the collected calls, if one of them may release a key that the batch takes. */
static void send_what_goes_before(struct batches *batches, const struct batch *batch) {
    bool is_due = false;
    for (unsigned i = 0; i < batch->count && batch_takes(batch); i++) {
        is_due |= batches_may_hold(batches, batch->flights[i]->plan.key);
    }
    /* Otherwise our own old token would deny the key to the new one. */
    if (is_due) {
        batches_send(batches);
    }
}

/* Sends a batch out of turn, and drops the reference. */
static void send_now(void *owner, struct batch *batch) {
    struct batches *batches = owner;
    send_what_goes_before(batches, batch);
    batch_send(batch);
    /* Commands are written at the end of a turn, so one must follow. */
    context_wake(batches->shared.context);
    batch_drop(batch);
}

void batches_send_alone(struct batches *batches, enum script script, uint32_t nodes,
                        struct flight *flight) {
    uint32_t rest = nodes & members_all(batches->shared.members);
    struct batch *batch =
        batch_create(&batches->shared, script, rest, flight->plan.replicas, BATCH_LAST);
    if (batch == NULL) {
        vote_out_of_memory(batches, nodes, flight);
        return;
    }
    batch_add(batch, flight);
    send_now(batches, batch);
}
