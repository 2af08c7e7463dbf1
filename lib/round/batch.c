/*
 * The happy path: batches_add appends a lock's keys and arguments to the open batch of the same
 * script and nodes; at the end of the turn the call is encoded once and sent to each of its nodes;
 * each reply becomes a vote in the round of each lock.
 *
 * Failures: a node that lacks the script is sent the call once more, with the text (node/call.h);
 * the rounds do not notice. A script that takes keys is repeated only for the tries that are still
 * waited for. Where the ACL forbids one of the keys, Redis refuses the whole call: then each lock
 * is sent in a call of its own.
 */
#include "round/batch.h"

#include "base/nanos.h"
#include "core/options.h"
#include "core/validity.h"
#include "node/call.h"
#include "node/node.h"
#include "wire/command.h"

#include <stddef.h>
#include <string.h>

/* The bytes from which on a call takes no further lock. */
#define BATCH_BYTES_MAX (64 * 1024)

struct batch {
    struct conn_request request;
    struct conn_request wait; /* the WAIT behind the call, where replicas must confirm grants */
    struct batches *batches;
    struct call call;
    uint32_t nodes;      /* mask: the nodes that the call goes to */
    uint32_t replicas;   /* the number of a node's replicas that must confirm a grant */
    uint32_t references; /* number of replies to come, and one until the batch is sent */
    unsigned count;      /* number of flights */
    unsigned key_count;  /* number of keys of all flights */
    unsigned reads;      /* number of keys that the server may have to look at for all flights */
    struct flight *flights[SCRIPT_MAX_KEYS];
    struct script_call arguments;
    STAILQ_ENTRY(batch) link;
};

static bool set_up(void *object, void *context) {
    struct batch *batch = object;
    const struct context *shared = context;
    script_call_init(&batch->arguments, &shared->allocator);
    return true;
}

static void take_down(void *object) {
    struct batch *batch = object;
    script_call_finish(&batch->arguments);
}

static const struct pool_kind batch_kind = {
    .size = sizeof(struct batch), .max_spares = 256, .set_up = set_up, .take_down = take_down};

void batches_init(struct batches *batches, struct context *context, const struct members *members) {
    *batches = (struct batches){.context = context, .members = members};
    pool_init(&batches->pool, &context->allocator, &batch_kind, context);
    STAILQ_INIT(&batches->open);
    STAILQ_INIT(&batches->full);
}

void batches_finish(struct batches *batches) {
    pool_finish(&batches->pool);
}

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
    pool_put(&batch->batches->pool, batch);
}

/* ---- collecting ---- */

static struct batch *new_batch(struct batches *batches, enum script script, uint32_t nodes,
                               uint32_t replicas) {
    struct batch *batch = pool_take(&batches->pool);
    if (batch != NULL) {
        batch->request.on_reply = on_reply;
        batch->wait.on_reply = on_wait_reply;
        batch->request.claim = batch->wait.claim = script_takes(script) ? LOAD_NEW : LOAD_HELD;
        batch->batches = batches;
        batch->call = (struct call){.script = script};
        batch->nodes = nodes;
        batch->replicas = replicas;
        batch->references = 1;
        batch->count = batch->key_count = batch->reads = 0;
        script_call_clear(&batch->arguments);
    }
    return batch;
}

static struct batch *open_batch(struct batches *batches, enum script script, uint32_t nodes,
                                uint32_t replicas) {
    struct batch *batch = new_batch(batches, script, nodes, replicas);
    if (batch != NULL) {
        STAILQ_INSERT_TAIL(&batches->open, batch, link);
    }
    return batch;
}

bool batches_are_full(const struct batches *batches, unsigned reads, size_t bytes) {
    size_t sendable = batches->context->options.max_bytes / 2;
    size_t most = sendable < BATCH_BYTES_MAX ? sendable : BATCH_BYTES_MAX;
    return reads >= SCRIPT_MAX_KEYS || bytes >= most;
}

static bool has_room(const struct batch *batch) {
    return !batch->arguments.keys.failed && !batch->arguments.arguments.failed &&
           !batches_are_full(batch->batches, batch->reads, script_call_length(&batch->arguments));
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

/* Returns the nanoseconds for which nodes keep the key: for its TTL, or as long as it stays. */
static uint64_t node_ttl(enum script script, const struct flight *flight) {
    const struct flight_plan *plan = &flight->plan;
    if (script != SCRIPT_STAY) {
        return plan->node_ttl;
    }
    uint64_t left = nanos_sub(plan->stay_until, plan->now);
    return validity_ttl(left, flight->flights->context->options.drift);
}

static void collect(struct batch *batch, struct flight *flight) {
    const struct context *context = batch->batches->context;
    const struct flight_plan *plan = &flight->plan;
    enum script script = batch->call.script;
    struct script_name names[REDLOCK_MAX_KEYS];
    script_call_add(&batch->arguments, script,
                    &(struct script_lock){.names = names,
                                          .name_count = key_names(plan->key, names),
                                          .token = flight->token,
                                          .owner = context->owner,
                                          .ttl_ms = nanos_to_ms(node_ttl(script, flight)),
                                          .is_fenced = kind_is_fenced(plan->kind),
                                          .fence = plan->fence,
                                          .step = plan->is_new,
                                          .intent_ms = plan->intent_ms,
                                          .idle_ms = context->options.fence_idle_ms,
                                          .permits = plan->permits});
    batch->request.sent_at = batch->wait.sent_at = plan->now;
    batch->flights[batch->count++] = flight_hold(flight);
    batch->key_count += plan->key->count;
    batch->reads += plan->key->count;
    batch->reads += script == SCRIPT_PERMIT ? plan->permits : 0;
}

static void add_flight(struct batch *batch, struct flight *flight) {
    struct batches *batches = batch->batches;
    collect(batch, flight);
    note_keys(batches, flight->plan.key);
    if (!has_room(batch)) { /* out of find_batch's sight */
        STAILQ_REMOVE(&batches->open, batch, batch, link);
        STAILQ_INSERT_TAIL(&batches->full, batch, link);
    }
}

static void vote_out_of_memory(const struct batches *batches, uint32_t nodes,
                               struct flight *flight) {
    struct node *node;
    while ((node = members_take(batches->members, &nodes)) != NULL) {
        flight_vote(flight, node, &PLAIN_VOTE(UNREACHABLE), "out of memory");
    }
}

void batches_add(struct batches *batches, enum script script, uint32_t nodes,
                 struct flight *flight) {
    uint32_t rest = nodes & members_all(batches->members);
    struct batch *batch = find_batch(batches, script, rest, flight->plan.replicas);
    if (batch != NULL) {
        add_flight(batch, flight);
    } else {
        vote_out_of_memory(batches, rest, flight);
    }
}

/* ---- to one node ---- */

/* Encodes the call, and behind it the WAIT, if any. Returns the call's length. */
static size_t encode(struct batch *batch, bool with_text) {
    const struct context *context = batch->batches->context;
    struct bytes *command = &batch->batches->context->scratch;
    bytes_clear(command);
    command_script(command, batch->call.script, with_text, &batch->arguments);
    size_t length = command->length;
    if (batch->replicas > 0) {
        command_wait(command, batch->replicas, options_wait_ms(&context->options));
    }
    batch->wait.length = command->length - length;
    return length;
}

/*
 * Sends the encoded call, of `length` bytes, and the WAIT. Returns false if the call was not sent.
 */
static bool send_to(struct batch *batch, struct node *node, size_t length) {
    const struct bytes *command = &batch->batches->context->scratch;
    if (command->failed || !node_send(node, &batch->request, command->data, length)) {
        call_not_sent(&batch->call, &node->uplink, node->index);
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

static bool takes(const struct batch *batch) {
    return script_takes(batch->call.script);
}

/* ---- replies ---- */

/* The most items of an answer: all locks but the last have less than SCRIPT_MAX_KEYS keys. */
#define ITEMS_MAX (SCRIPT_MAX_KEYS + REDLOCK_MAX_KEYS)

/* Reads the outcomes of all items. Returns false when the reply is no answer to this call. */
static bool read_items(const struct batch *batch, const struct reply *reply,
                       struct reply_outcome *outcomes) {
    unsigned count = script_items(batch->call.script, batch->count, batch->key_count);
    return reply_to_script(reply, batch->call.script, outcomes, count);
}

/* Returns whether a grant carries the lock's counter: releases of fenced locks do not. */
static bool is_counted(const struct batch *batch, const struct flight *flight) {
    return kind_is_fenced(flight->plan.kind) && script_counts(batch->call.script);
}

/* Returns whether an outcome fits: a grant has a counter if and only if it is to carry one. */
static bool is_fit(const struct batch *batch, const struct flight *flight,
                   const struct reply_outcome *outcome) {
    return outcome->vote != REDLOCK_VOTE_GRANTED ||
           is_counted(batch, flight) == (outcome->fence > 0);
}

/* Returns the detail of a vote, or NULL. */
static const char *words_for(const struct batch *batch, const struct flight *flight,
                             const struct reply_outcome *outcome) {
    if (outcome->vote == REDLOCK_VOTE_ERROR) {
        return "its counter is out of range";
    }
    bool may_be_its_counter = outcome->vote == REDLOCK_VOTE_WRONG_TYPE && is_counted(batch, flight);
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
            unsigned count = script_items(batch->call.script, 1, flight->plan.key->count);
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

/* Returns whether the ACL forbids one key of many, for which Redis refuses the whole call. */
static bool is_about_one_key(const struct batch *batch, const struct reply *reply) {
    return batch->count > 1 && reply->type == REPLY_ERROR && strncmp(reply->text, "NOPERM", 6) == 0;
}

/*
 * Returns whether a flight may be in a call that is sent once more. A try that was given up
 * meanwhile has been released at the node already, and must not take the key again.
 */
static bool may_repeat(const struct batch *batch, const struct flight *flight) {
    return !takes(batch) || flight_is_waited_for(flight);
}

/* Sends the collected calls, if one of them may release a key that the batch takes. */
static void send_what_goes_before(const struct batch *batch) {
    bool is_due = false;
    for (unsigned i = 0; i < batch->count && takes(batch); i++) {
        is_due |= batches_may_hold(batch->batches, batch->flights[i]->plan.key);
    }
    if (is_due) {
        batches_send(batch->batches);
    }
}

static void send_now(struct batch *batch) {
    send_what_goes_before(batch);
    batch_send(batch);
    context_wake(batch->batches->context);
    batch_drop(batch);
}

/* Returns an empty batch of the same script, for one node; NULL when out of memory. */
static struct batch *new_batch_like(const struct batch *batch, const struct node *node) {
    return new_batch(batch->batches, batch->call.script, node_bit(node), batch->replicas);
}

/* Sends each lock in a call of its own, so that only the lock of the forbidden key fails. */
static void split(struct batch *batch, struct node *node, const struct reply *reply) {
    for (unsigned i = 0; i < batch->count; i++) {
        struct flight *flight = batch->flights[i];
        struct batch *alone = may_repeat(batch, flight) ? new_batch_like(batch, node) : NULL;
        if (alone == NULL) {
            flight_vote_error(flight, node, reply);
        } else {
            collect(alone, flight);
            send_now(alone);
        }
    }
}

/* Sends the call once more, with the script's text, for the locks that may be repeated. */
static void take_again(struct batch *batch, struct node *node, const struct reply *reply) {
    struct batch *again = new_batch_like(batch, node);
    for (unsigned i = 0; i < batch->count; i++) {
        struct flight *flight = batch->flights[i];
        if (again != NULL && may_repeat(batch, flight)) {
            collect(again, flight);
        } else {
            flight_vote_error(flight, node, reply);
        }
    }
    if (again != NULL) {
        send_now(again);
    }
}

/* Sends the whole call once more. Returns whether it was sent, so that the node answers again. */
static bool send_again(struct batch *batch, struct node *node) {
    bool with_text = call_takes_text(&batch->call, &node->uplink, node->index);
    context_wake(batch->batches->context);
    return send_to(batch, node, encode(batch, with_text));
}

static void on_reply(struct conn_request *request, void *owner, const struct reply *reply) {
    struct batch *batch = (struct batch *)request;
    struct node *node = node_of(owner);
    bool is_asked_again = call_is_asked_again(&batch->call, &node->uplink, node->index, reply);
    if (is_asked_again && !takes(batch) && send_again(batch, node)) {
        return;
    }
    if (is_asked_again && takes(batch)) {
        take_again(batch, node, reply);
    } else if (reply != NULL && is_about_one_key(batch, reply)) {
        split(batch, node, reply);
    } else {
        vote(batch, node, reply);
    }
    batch_drop(batch);
}

static void on_wait_reply(struct conn_request *request, void *owner, const struct reply *reply) {
    struct batch *batch = (struct batch *)(void *)((char *)request - offsetof(struct batch, wait));
    for (unsigned i = 0; i < batch->count; i++) {
        flight_confirm(batch->flights[i], node_of(owner), reply);
    }
    batch_drop(batch);
}

/* ---- sending ---- */

static void vote_unreachable(struct batch *batch, struct node *node, const char *detail) {
    for (unsigned i = 0; i < batch->count; i++) {
        flight_vote(batch->flights[i], node, &PLAIN_VOTE(UNREACHABLE), detail);
    }
}

/*
 * Sends one form of the call: by SHA-1 to nodes that know the script, or with the text to others.
 */
static void send_form(struct batch *batch, uint32_t nodes, bool with_text) {
    const struct batches *batches = batch->batches;
    size_t length = encode(batch, with_text);
    struct node *node;
    while ((node = members_take(batches->members, &nodes)) != NULL) {
        if (send_to(batch, node, length)) {
            batch->references++;
        } else {
            vote_unreachable(batch, node,
                             batches->context->scratch.failed ? "out of memory" : NULL);
        }
    }
}

/* Leaves out the tries that were given up in the turn in which they began. */
static void prune(struct batch *batch) {
    unsigned count = batch->count;
    script_call_clear(&batch->arguments);
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
    for (unsigned i = 0; i < batch->count && takes(batch); i++) {
        found |= batch->flights[i]->is_void;
    }
    return found;
}

static void batch_send(struct batch *batch) {
    if (has_void(batch)) {
        prune(batch);
    }
    if (batch->count == 0) {
        return;
    }
    uint32_t rest = batch->nodes;
    uint32_t lacking = 0;
    struct node *node;
    while ((node = members_take(batch->batches->members, &rest)) != NULL) {
        bool lacks = call_takes_text(&batch->call, &node->uplink, node->index);
        lacking |= lacks ? node_bit(node) : 0;
    }
    batch->request.length = script_call_length(&batch->arguments); /* without the text */
    send_form(batch, batch->nodes & ~lacking, false);
    if (lacking != 0) {
        send_form(batch, lacking, true);
    }
}

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
        if (takes(batch)) { /* a key released in this turn can be taken in it */
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

void batches_send_alone(struct batches *batches, enum script script, uint32_t nodes,
                        struct flight *flight) {
    uint32_t rest = nodes & members_all(batches->members);
    struct batch *batch = new_batch(batches, script, rest, flight->plan.replicas);
    if (batch == NULL) {
        vote_out_of_memory(batches, nodes, flight);
        return;
    }
    collect(batch, flight);
    send_now(batch);
}
