/*
 * The happy path: batches_add adds a flight to the open batch of the same script and nodes; a batch
 * that is full takes no further lock. At the end of the turn all are sent: first the calls that
 * release and renew, so that a key released in this turn can be taken in it.
 *
 * A call that goes out at once, for a top-up or because a node must be asked once more, waits for
 * no turn; the collected calls go before such a call where one of them may release its key.
 *
 * Failures: without memory for a batch the flight's nodes vote UNREACHABLE.
 */
#include "round/batches.h"

#include <string.h>

/* The bytes from which on a call takes no further lock. */
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

/* Returns the index of the word that a key's bit stands in, in the filter over collected calls. */
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

static void note_keys(struct batches *batches, const struct key *keys) {
    for (const struct key *key = keys; key != NULL; key = key->next) {
        batches->keys[filter_word(key)] |= filter_bit(key);
    }
}

/* ---- collecting ---- */

static struct batch *open_batch(struct batches *batches, enum script script, uint32_t nodes,
                                uint32_t replicas) {
    struct batch *batch = batch_create(&batches->shared, script, nodes, replicas);
    if (batch != NULL) {
        STAILQ_INSERT_TAIL(&batches->open, batch, link);
    }
    return batch;
}

bool batches_are_full(const struct batches *batches, unsigned reads, size_t bytes) {
    size_t sendable = batches->shared.context->options.max_bytes / 2;
    size_t most = sendable < BATCH_BYTES_MAX ? sendable : BATCH_BYTES_MAX;
    return reads >= SCRIPT_MAX_KEYS || bytes >= most;
}

static bool has_room(const struct batches *batches, const struct batch *batch) {
    return !batch->arguments.keys.failed && !batch->arguments.arguments.failed &&
           !batches_are_full(batches, batch->reads, script_call_length(&batch->arguments));
}

static struct batch *find_batch(struct batches *batches, enum script script, uint32_t nodes,
                                uint32_t replicas) {
    struct batch *batch;
    STAILQ_FOREACH(batch, &batches->open, link) {
        if (batch->call.script == script && batch->nodes == nodes && batch->replicas == replicas) {
            return batch;
        }
    }
    return open_batch(batches, script, nodes, replicas);
}

static void add_flight(struct batches *batches, struct batch *batch, struct flight *flight) {
    batch_add(batch, flight);
    note_keys(batches, flight->plan.key);
    if (!has_room(batches, batch)) { /* out of find_batch's sight */
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
    struct batch *batch = find_batch(batches, script, rest, flight->plan.replicas);
    if (batch != NULL) {
        add_flight(batches, batch, flight);
    } else {
        vote_out_of_memory(batches, rest, flight);
    }
}

/* ---- sending ---- */

/* Sends the first call of a list. */
static void send_first(struct batch_list *list) {
    struct batch *batch = STAILQ_FIRST(list);
    STAILQ_REMOVE_HEAD(list, link);
    batch_send(batch);
    batch_drop(batch);
}

void batches_send(struct batches *batches) {
    STAILQ_CONCAT(&batches->full, &batches->open);
    if (STAILQ_EMPTY(&batches->full)) {
        return;
    }
    memset(batches->keys, 0, sizeof(batches->keys));
    struct batch_list last = STAILQ_HEAD_INITIALIZER(last);
    while (!STAILQ_EMPTY(&batches->full)) {
        struct batch *batch = STAILQ_FIRST(&batches->full);
        if (batch_takes(batch)) { /* a key released in this turn can be taken in it */
            STAILQ_REMOVE_HEAD(&batches->full, link);
            STAILQ_INSERT_TAIL(&last, batch, link);
        } else {
            send_first(&batches->full);
        }
    }
    while (!STAILQ_EMPTY(&last)) {
        send_first(&last);
    }
}

/* Sends the collected calls, if one of them may release a key that the batch takes. */
static void send_what_goes_before(struct batches *batches, const struct batch *batch) {
    bool is_due = false;
    for (unsigned i = 0; i < batch->count && batch_takes(batch); i++) {
        is_due |= batches_may_hold(batches, batch->flights[i]->plan.key);
    }
    if (is_due) {
        batches_send(batches);
    }
}

/* Sends a batch out of turn, and drops the reference. */
static void send_now(void *owner, struct batch *batch) {
    struct batches *batches = owner;
    send_what_goes_before(batches, batch);
    batch_send(batch);
    context_wake(batches->shared.context);
    batch_drop(batch);
}

void batches_send_alone(struct batches *batches, enum script script, uint32_t nodes,
                        struct flight *flight) {
    uint32_t rest = nodes & members_all(batches->shared.members);
    struct batch *batch = batch_create(&batches->shared, script, rest, flight->plan.replicas);
    if (batch == NULL) {
        vote_out_of_memory(batches, nodes, flight);
        return;
    }
    batch_add(batch, flight);
    send_now(batches, batch);
}
