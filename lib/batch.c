/*
 * The happy path: batch_add appends a lock's keys and arguments to the open batch of the same
 * script and nodes; at the end of the turn the call is encoded once and sent to each of its nodes;
 * each reply becomes a vote in the round of each lock.
 *
 * A node that lacks the script (a restart, SCRIPT FLUSH) answers NOSCRIPT: it is sent the same
 * call at once with the script's text, which loads it too. The rounds do not notice.
 */
#include "batch.h"

#include "base/nanos.h"
#include "core/validity.h"
#include "node.h"
#include "wire/command.h"

#include <stddef.h>
#include <string.h>

/* A call that has grown beyond this takes no further lock. */
#define BATCH_BYTES_MAX (64 * 1024)

struct batch {
    struct conn_request request;
    struct conn_request wait; /* behind it, where replicas are to confirm it */
    struct context *context;
    enum script script;
    uint32_t nodes;      /* mask: where it goes */
    uint32_t replicas;   /* that have to confirm what it grants */
    uint32_t reloaded;   /* mask: nodes that were sent the script's text */
    uint32_t references; /* replies to come, and one while it is open */
    unsigned count;
    unsigned key_count; /* of all of them */
    unsigned reads;     /* keys that the server may have to look at for them */
    struct flight *flights[SCRIPT_MAX_KEYS];
    struct script_call call;
    STAILQ_ENTRY(batch) link;
};

static bool set_up(void *object, void *context) {
    struct batch *batch = object;
    const struct context *shared = context;
    script_call_init(&batch->call, &shared->allocator);
    return true;
}

static void take_down(void *object) {
    struct batch *batch = object;
    script_call_finish(&batch->call);
}

const struct pool_kind batch_kind = {
    .size = sizeof(struct batch), .max_spares = 256, .set_up = set_up, .take_down = take_down};

static void on_reply(struct conn_request *request, void *owner, const struct reply *reply);
static void on_wait_reply(struct conn_request *request, void *owner, const struct reply *reply);
static void batch_send(struct batch *batch);

static void batch_drop(struct batch *batch) {
    if (--batch->references > 0) {
        return;
    }
    for (unsigned i = 0; i < batch->count; i++) {
        flight_drop(batch->flights[i]);
    }
    pool_put(&batch->context->batches, batch);
}

/* ---- collecting ---- */

static struct batch *new_batch(struct context *context, enum script script, uint32_t nodes,
                               uint32_t replicas) {
    struct batch *batch = pool_take(&context->batches);
    if (batch != NULL) {
        batch->request.on_reply = on_reply;
        batch->wait.on_reply = on_wait_reply;
        batch->request.claim = batch->wait.claim = script_takes(script) ? LOAD_NEW : LOAD_HELD;
        batch->context = context;
        batch->script = script;
        batch->nodes = nodes;
        batch->replicas = replicas;
        batch->reloaded = 0;
        batch->references = 1;
        batch->count = batch->key_count = batch->reads = 0;
        script_call_clear(&batch->call);
    }
    return batch;
}

static struct batch *open_batch(struct context *context, enum script script, uint32_t nodes,
                                uint32_t replicas) {
    struct batch *batch = new_batch(context, script, nodes, replicas);
    if (batch != NULL) {
        STAILQ_INSERT_TAIL(&context->open, batch, link);
    }
    return batch;
}

bool batch_is_full(const struct context *context, unsigned reads, size_t bytes) {
    size_t sendable = context->options.max_bytes / 2;
    size_t most = sendable < BATCH_BYTES_MAX ? sendable : BATCH_BYTES_MAX;
    return reads >= SCRIPT_MAX_KEYS || bytes >= most;
}

static bool has_room(const struct batch *batch) {
    return !batch->call.keys.failed && !batch->call.arguments.failed &&
           !batch_is_full(batch->context, batch->reads, script_call_length(&batch->call));
}

static struct batch *find_batch(struct context *context, enum script script, uint32_t nodes,
                                uint32_t replicas) {
    struct batch *batch;
    STAILQ_FOREACH(batch, &context->open, link) {
        if (batch->script == script && batch->nodes == nodes && batch->replicas == replicas) {
            return batch;
        }
    }
    return open_batch(context, script, nodes, replicas);
}

/* Where a key's bit stands in the filter over open batches. */
static size_t filter_word(const struct key *key) {
    return key->hash % OPEN_KEYS_BITS / 64;
}

static uint64_t filter_bit(const struct key *key) {
    return UINT64_C(1) << key->hash % 64;
}

bool batch_may_hold(const struct context *context, const struct key *keys) {
    bool may_hold = false;
    for (const struct key *key = keys; key != NULL; key = key->next) {
        may_hold |= (context->open_keys[filter_word(key)] & filter_bit(key)) != 0;
    }
    return may_hold;
}

static void note_keys(struct context *context, const struct key *keys) {
    for (const struct key *key = keys; key != NULL; key = key->next) {
        context->open_keys[filter_word(key)] |= filter_bit(key);
    }
}

/* For how long the nodes are to keep the key. */
static uint64_t node_ttl(enum script script, const struct flight *flight) {
    const struct context *context = flight->context;
    if (script != SCRIPT_STAY) {
        return flight->node_ttl;
    }
    uint64_t left = nanos_sub(flight->stay_until, flight->round.start);
    return validity_ttl(left, context->options.drift);
}

static uint32_t permits_of(const struct flight *flight) {
    return flight->round.permits != NULL ? flight->round.permits->count : 0;
}

static void collect(struct batch *batch, struct flight *flight) {
    const struct context *context = batch->context;
    struct script_name names[REDLOCK_MAX_KEYS];
    script_call_add(&batch->call, batch->script,
                    &(struct script_lock){.names = names,
                                          .name_count = key_names(flight->key, names),
                                          .token = flight->token,
                                          .owner = context->owner,
                                          .ttl_ms = nanos_to_ms(node_ttl(batch->script, flight)),
                                          .is_fenced = flight->is_fenced,
                                          .fence = flight->fence,
                                          .step = flight->step,
                                          .intent_ms = flight->intent_ms,
                                          .idle_ms = context->options.fence_idle_ms,
                                          .permits = permits_of(flight)});
    batch->request.sent_at = batch->wait.sent_at = flight->round.start;
    batch->flights[batch->count++] = flight_hold(flight);
    batch->key_count += flight->key->count;
    batch->reads += flight->key->count;
    batch->reads += batch->script == SCRIPT_PERMIT ? permits_of(flight) : 0;
}

static void add_flight(struct batch *batch, struct flight *flight) {
    struct context *context = batch->context;
    collect(batch, flight);
    note_keys(context, flight->key);
    if (!has_room(batch)) { /* those that follow need not look at it */
        STAILQ_REMOVE(&context->open, batch, batch, link);
        STAILQ_INSERT_TAIL(&context->full, batch, link);
    }
}

static void vote_out_of_memory(struct context *context, uint32_t nodes, struct flight *flight) {
    struct node *node;
    while ((node = members_take(&context->members, &nodes)) != NULL) {
        flight_vote(flight, node, &PLAIN_VOTE(UNREACHABLE), "out of memory");
    }
}

void batch_add(struct context *context, enum script script, uint32_t nodes, struct flight *flight) {
    uint32_t rest = nodes & members_all(&context->members);
    struct batch *batch = find_batch(context, script, rest, flight->replicas);
    if (batch != NULL) {
        add_flight(batch, flight);
    } else {
        vote_out_of_memory(context, rest, flight);
    }
}

/* ---- replies ---- */

/* The call, and behind it a WAIT if there is something for replicas to confirm. */
static size_t encode(struct batch *batch, bool with_text) {
    struct bytes *command = &batch->context->scratch;
    bytes_clear(command);
    command_script(command, batch->script, with_text, &batch->call);
    size_t length = command->length;
    if (batch->replicas > 0) {
        command_wait(command, batch->replicas, flight_wait_ms(batch->context));
    }
    batch->wait.length = command->length - length;
    return length;
}

/* Sends what was encoded. */
static bool send_to(struct batch *batch, struct node *node, size_t length) {
    const struct bytes *command = &batch->context->scratch;
    if (command->failed || !node_send(node, &batch->request, command->data, length)) {
        return false;
    }
    if (batch->replicas > 0 &&
        node_send(node, &batch->wait, command->data + length, command->length - length)) {
        batch->references++;
        for (unsigned i = 0; i < batch->count; i++) {
            flight_asks_replicas(batch->flights[i], node);
        }
    }
    return true;
}

/* The first time that the node says so of this call. */
static bool lacks_script(const struct batch *batch, const struct node *node,
                         const struct reply *reply) {
    return reply_lacks_script(reply) && !(batch->reloaded >> node->index & 1);
}

/* True when the node was sent the script's text, and will answer again. */
static bool reload(struct batch *batch, struct node *node, const struct reply *reply) {
    if (!lacks_script(batch, node, reply) || script_takes(batch->script)) {
        return false;
    }
    batch->reloaded |= UINT32_C(1) << node->index;
    context_wake(batch->context);
    return send_to(batch, node, encode(batch, true));
}

/* All but the last lock had less than SCRIPT_MAX_KEYS keys together. */
#define ITEMS_MAX (SCRIPT_MAX_KEYS + REDLOCK_MAX_KEYS)

/* False when the answer is none to this call. */
static bool read_items(const struct batch *batch, const struct reply *reply,
                       struct reply_outcome *outcomes) {
    unsigned count = script_items(batch->script, batch->count, batch->key_count);
    return reply_to_script(reply, batch->script, outcomes, count);
}

/* What is granted with a counter is just what is fenced. */
static bool is_fit(const struct batch *batch, const struct flight *flight,
                   const struct reply_outcome *outcome) {
    bool is_release = batch->script == SCRIPT_RELEASE || batch->script == SCRIPT_STAY;
    bool is_counted = flight->is_fenced && !is_release;
    return outcome->vote != REDLOCK_VOTE_GRANTED || is_counted == (outcome->fence > 0);
}

/* What a vote alone does not tell. */
static const char *words_for(const struct batch *batch, const struct flight *flight,
                             const struct reply_outcome *outcome) {
    if (outcome->vote == REDLOCK_VOTE_ERROR) {
        return "its counter is out of range";
    }
    bool is_counted = flight->is_fenced && script_counts(batch->script);
    bool may_be_its_counter = is_counted && outcome->vote == REDLOCK_VOTE_WRONG_TYPE;
    return may_be_its_counter ? "it is not a string, or its counter is out of range" : NULL;
}

static void vote(struct batch *batch, struct node *node, const struct reply *reply) {
    struct reply_outcome outcomes[ITEMS_MAX];
    bool understood = reply != NULL && read_items(batch, reply, outcomes);
    const struct reply_outcome *items = outcomes;
    for (unsigned i = 0; i < batch->count; i++) {
        struct flight *flight = batch->flights[i];
        const struct reply_outcome *outcome = NULL;
        if (understood) {
            unsigned count = script_items(batch->script, 1, flight->key->count);
            outcome = reply_combine(items, count);
            items += count;
        }
        if (reply == NULL) {
            flight_vote_without_answer(flight, node);
        } else if (outcome == NULL || !is_fit(batch, flight, outcome)) {
            flight_vote_error(flight, node, reply);
        } else {
            flight_vote(flight, node, outcome, words_for(batch, flight, outcome));
        }
    }
}

/* Where the user may not touch one of the keys, Redis refuses the whole call. */
static bool is_about_one_key(const struct batch *batch, const struct reply *reply) {
    return batch->count > 1 && reply->type == REPLY_ERROR && strncmp(reply->text, "NOPERM", 6) == 0;
}

/*
 * What is sent once more goes out at once, and is taken only for who still waits for it: a try that
 * was given up meanwhile has been released at the node already.
 */
static bool may_repeat(const struct batch *batch, const struct flight *flight) {
    return !script_takes(batch->script) || flight_is_waited_for(flight);
}

/* A key that is to be released in this turn is released first. */
static void send_what_goes_before(const struct batch *batch) {
    bool is_due = false;
    for (unsigned i = 0; i < batch->count && script_takes(batch->script); i++) {
        is_due |= batch_may_hold(batch->context, batch->flights[i]->key);
    }
    if (is_due) {
        batch_send_all(batch->context);
    }
}

static void repeat(struct batch *batch) {
    send_what_goes_before(batch);
    batch_send(batch);
    context_wake(batch->context);
    batch_drop(batch);
}

/* Sends each lock in a call of its own: the others have nothing to do with the one at fault. */
static void split(struct batch *batch, struct node *node, const struct reply *reply) {
    uint32_t bit = UINT32_C(1) << node->index;
    for (unsigned i = 0; i < batch->count; i++) {
        struct flight *flight = batch->flights[i];
        struct batch *alone = may_repeat(batch, flight)
                                  ? new_batch(batch->context, batch->script, bit, batch->replicas)
                                  : NULL;
        if (alone == NULL) {
            flight_vote_error(flight, node, reply);
        } else {
            collect(alone, flight);
            repeat(alone);
        }
    }
}

/* Sends what may be repeated with the script's text. */
static void take_again(struct batch *batch, struct node *node, const struct reply *reply) {
    uint32_t bit = UINT32_C(1) << node->index;
    struct batch *again = new_batch(batch->context, batch->script, bit, batch->replicas);
    node_lacks(node, batch->script);
    for (unsigned i = 0; i < batch->count; i++) {
        struct flight *flight = batch->flights[i];
        if (again != NULL && may_repeat(batch, flight)) {
            collect(again, flight);
        } else {
            flight_vote_error(flight, node, reply);
        }
    }
    if (again != NULL) {
        again->reloaded = bit; /* once is enough */
        repeat(again);
    }
}

static void on_reply(struct conn_request *request, void *owner, const struct reply *reply) {
    struct batch *batch = (struct batch *)request;
    if (reply != NULL && reload(batch, owner, reply)) {
        return;
    }
    if (reply == NULL) {
        vote(batch, owner, reply);
    } else if (script_takes(batch->script) && lacks_script(batch, owner, reply)) {
        take_again(batch, owner, reply);
    } else if (is_about_one_key(batch, reply)) {
        split(batch, owner, reply);
    } else {
        vote(batch, owner, reply);
    }
    batch_drop(batch);
}

static void on_wait_reply(struct conn_request *request, void *owner, const struct reply *reply) {
    struct batch *batch = (struct batch *)(void *)((char *)request - offsetof(struct batch, wait));
    for (unsigned i = 0; i < batch->count; i++) {
        flight_confirm(batch->flights[i], owner, reply);
    }
    batch_drop(batch);
}

/* ---- sending ---- */

static void vote_unreachable(struct batch *batch, struct node *node, const char *detail) {
    for (unsigned i = 0; i < batch->count; i++) {
        flight_vote(batch->flights[i], node, &PLAIN_VOTE(UNREACHABLE), detail);
    }
}

/* To those of the nodes that know the script, or to those that have to be sent its text. */
static void send_form(struct batch *batch, uint32_t nodes, bool with_text) {
    struct context *context = batch->context;
    size_t length = encode(batch, with_text);
    struct node *node;
    while ((node = members_take(&context->members, &nodes)) != NULL) {
        if (send_to(batch, node, length)) {
            batch->references++;
        } else {
            if (with_text) {
                node_lacks(node, batch->script);
            }
            vote_unreachable(batch, node, context->scratch.failed ? "out of memory" : NULL);
        }
    }
}

/* Leaves out the tries that were given up in the turn in which they began. */
static void prune(struct batch *batch) {
    unsigned count = batch->count;
    script_call_clear(&batch->call);
    batch->count = batch->key_count = batch->reads = 0;
    for (unsigned i = 0; i < count; i++) {
        struct flight *flight = batch->flights[i];
        if (!flight->is_void) {
            collect(batch, flight);
        }
        flight_drop(flight);
    }
}

static bool has_void(const struct batch *batch) {
    bool found = false;
    for (unsigned i = 0; i < batch->count && script_takes(batch->script); i++) {
        found |= batch->flights[i]->is_void;
    }
    return found;
}

static void batch_send(struct batch *batch) {
    struct context *context = batch->context;
    if (has_void(batch)) {
        prune(batch);
    }
    if (batch->count == 0) {
        return;
    }
    uint32_t rest = batch->nodes;
    uint32_t lacking = 0;
    struct node *node;
    while ((node = members_take(&context->members, &rest)) != NULL) {
        lacking |= (uint32_t)node_takes_text(node, batch->script) << node->index;
    }
    batch->request.length = script_call_length(&batch->call); /* without the text */
    send_form(batch, batch->nodes & ~lacking, false);
    if (lacking != 0) {
        send_form(batch, lacking, true);
    }
}

void batch_send_all(struct context *context) {
    STAILQ_CONCAT(&context->full, &context->open);
    if (STAILQ_EMPTY(&context->full)) {
        return;
    }
    memset(context->open_keys, 0, sizeof(context->open_keys));
    struct batch_list takes = STAILQ_HEAD_INITIALIZER(takes);
    while (!STAILQ_EMPTY(&context->full)) {
        struct batch *batch = STAILQ_FIRST(&context->full);
        STAILQ_REMOVE_HEAD(&context->full, link);
        if (script_takes(batch->script)) {
            STAILQ_INSERT_TAIL(&takes, batch, link);
        } else {
            batch_send(batch);
            batch_drop(batch);
        }
    }
    while (!STAILQ_EMPTY(&takes)) { /* what is released in this turn can be taken in it */
        struct batch *batch = STAILQ_FIRST(&takes);
        STAILQ_REMOVE_HEAD(&takes, link);
        batch_send(batch);
        batch_drop(batch);
    }
}

void batch_send_alone(struct context *context, enum script script, uint32_t nodes,
                      struct flight *flight) {
    uint32_t rest = nodes & members_all(&context->members);
    struct batch *batch = new_batch(context, script, rest, flight->replicas);
    if (batch == NULL) {
        vote_out_of_memory(context, nodes, flight);
        return;
    }
    collect(batch, flight);
    repeat(batch);
}
