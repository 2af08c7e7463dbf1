/*
 * The happy path: batch_add appends a lock's keys and arguments to the call; batch_send encodes the
 * call once, and sends it to each of its nodes; each reply becomes a vote in the round of each
 * lock.
 *
 * Failures: a node that lacks the script is sent the call again, with the text (node/call.h); the
 * rounds do not notice. A script that takes keys is repeated only for tries that are still waited
 * for. If the ACL forbids one of the keys, Redis refuses the whole call; then each lock is sent in
 * a call of its own. So are the releases that a failed call for entries carried. A call that
 * stopped at the bound on its entries is followed by a call of PASS.
 */
#include "round/batch.h"

#include "base/nanos.h"
#include "core/options.h"
#include "core/validity.h"
#include "io/clock.h"
#include "node/call.h"
#include "node/node.h"
#include "wire/command.h"

#include <stddef.h>
#include <string.h>

static bool set_up_pooled_batch(void *object, void *context) {
    struct batch *batch = object;
    const struct context *shared = context;
    script_call_init(&batch->arguments, &shared->allocator);
    return true;
}

static void take_down_pooled_batch(void *object, void *context) {
    struct batch *batch = object;
    (void)context;
    script_call_finish(&batch->arguments);
}

static const struct pool_kind batch_kind = {.size = sizeof(struct batch),
                                            .max_spares = 256,
                                            .set_up = set_up_pooled_batch,
                                            .take_down = take_down_pooled_batch};

static void on_batch_reply(struct conn_request *request, void *owner, const struct reply *reply);
static void on_batch_wait_reply(struct conn_request *request, void *owner,
                                const struct reply *reply);

void batch_shared_init(struct batch_shared *shared, struct context *context,
                       const struct members *members, struct batch_listener listener) {
    *shared = (struct batch_shared){.context = context, .members = members, .listener = listener};
    pool_init(&shared->pool, &context->allocator, &batch_kind, context);
}

void batch_shared_finish(struct batch_shared *shared) {
    pool_finish(&shared->pool);
}

struct batch *batch_create(struct batch_shared *shared, enum script script, uint32_t nodes,
                           uint32_t replicas, enum batch_order order) {
    struct batch *batch = pool_take(&shared->pool);
    if (batch != NULL) {
        batch->request.on_reply = on_batch_reply;
        batch->wait.on_reply = on_batch_wait_reply;
        /* New locks must not keep held ones from being renewed or released (core/load.h). */
        batch->request.load_class = batch->wait.load_class =
            script_takes(script) ? LOAD_NEW : LOAD_HELD;
        batch->shared = shared;
        batch->call = (struct call){.script = script};
        batch->nodes = nodes;
        batch->replicas = replicas;
        batch->order = order;
        batch->references = 1;
        batch->count = batch->key_count = batch->reads = batch->releases = batch->passes = 0;
        script_call_clear(&batch->arguments);
    }
    return batch;
}

void batch_drop(struct batch *batch) {
    /* A reply of each node is still to come, or a WAIT's. */
    if (--batch->references > 0) {
        return;
    }
    for (unsigned i = 0; i < batch->count; i++) {
        flight_drop(batch->flights[i]);
    }
    pool_put(&batch->shared->pool, batch);
}

/* The form of an item by which a call of QUEUE releases a key (scripts/queue.lua). */
#define FORM_OF_RELEASE '-'

/* Returns the time for which nodes keep the key: its TTL, or the time for which it stays. */
static uint64_t node_ttl(enum script script, const struct flight *flight) {
    const struct flight_plan *plan = &flight->plan;
    if (!script_infos[script].stays) {
        return plan->node_ttl;
    }
    /* The node's clock may be fast: with drift added, the key stays for the whole time of ours. */
    uint64_t left = nanos_sub(plan->stay_until, plan->now);
    return validity_ttl(left, flight->flights->context->options.drift);
}

void batch_add(struct batch *batch, struct flight *flight) {
    const struct context *context = batch->shared->context;
    const struct flight_plan *plan = &flight->plan;
    enum script script = batch->call.script;
    /* A call of QUEUE may release keys in the same command. */
    bool is_carried = script_takes(script) && flight_is_release(flight);
    script_call_add(
        &batch->arguments, script,
        &(struct lock_arguments){.key = plan->key,
                                 .value = flight->token,
                                 .owner = context->owner,
                                 .ttl_ms = is_carried ? 0 : nanos_to_ms(node_ttl(script, flight)),
                                 .key_count = plan->key->count,
                                 .is_fenced = kind_is_fenced(plan->kind),
                                 .fence = plan->fence,
                                 .counter_ttl_ms = context->options.fence_idle_ms,
                                 .step = plan->is_new,
                                 .intent_ms = plan->intent_ms,
                                 .permits = plan->permits,
                                 .reservation_ms = nanos_to_ms(plan->reservation),
                                 .ticket = plan->ticket,
                                 .form = is_carried ? FORM_OF_RELEASE : plan->kind->form});
    batch->request.sent_at = batch->wait.sent_at = plan->now;
    batch->flights[batch->count++] = flight_hold(flight);
    batch->key_count += plan->key->count;
    batch->reads += plan->key->count;
    /* To report free permits, the server looks at each permit of the semaphore. */
    batch->reads += script_infos[script].reports_free ? plan->permits : 0;
    batch->releases += is_carried;
    if (is_carried) { /* a release must get through, with all that is in its call */
        batch->request.load_class = LOAD_HELD;
    }
}

bool batch_may_carry(const struct batch *batch, const struct batch *releases) {
    enum script script = releases->call.script;
    /* Only without replicas, which releases do not wait for. An item of QUEUE releases one key. */
    return batch->call.script == SCRIPT_QUEUE &&
           (script == SCRIPT_RELEASE || script == SCRIPT_LEAVE) && batch->replicas == 0 &&
           batch->nodes == releases->nodes && releases->key_count == releases->count;
}

void batch_carry(struct batch *batch, struct batch *releases) {
    /*
     * After the entries, so that the node passes the keys to waiters that are in the queue by then.
     */
    for (unsigned i = 0; i < releases->count; i++) {
        batch_add(batch, releases->flights[i]);
    }
    batch_drop(releases);
}

/* ---- to one node ---- */

/*
 * Encodes the call, with a node's channel for scripts that take one, and after it the WAIT, if any.
 * Returns the call's length.
 */
static size_t encode_batch(struct batch *batch, bool with_text, const char *channel) {
    const struct context *context = batch->shared->context;
    struct bytes *command = &batch->shared->context->scratch;
    bytes_clear(command);
    batch->arguments.channel = channel;
    command_script(command, batch->call.script, with_text, &batch->arguments);
    size_t length = command->length;
    if (batch->replicas > 0) {
        command_wait(command, batch->replicas, options_wait_ms(&context->options));
    }
    batch->wait.length = command->length - length;
    return length;
}

/* Sends the encoded call, of `length` bytes, and the WAIT. Returns whether the call was sent. */
static bool send_batch_to(struct batch *batch, struct node *node, size_t length) {
    const struct bytes *command = &batch->shared->context->scratch;
    /* Without memory the command is incomplete, and must not be sent. */
    if (command->failed || !node_send(node, &batch->request, command->data, length)) {
        call_not_sent(&batch->call, &node->uplink, node->index);
        return false;
    }
    /* On the same connection, because WAIT covers the writes of its own connection. */
    if (batch->replicas > 0 &&
        node_send(node, &batch->wait, command->data + length, command->length - length)) {
        batch->references++;
        for (unsigned i = 0; i < batch->count; i++) {
            flight_asks_replicas(batch->flights[i], node);
        }
    }
    return true;
}

/* ---- replies ---- */

/* The most items of an answer: all locks but the last have fewer than SCRIPT_MAX_KEYS keys. */
#define ITEMS_MAX (SCRIPT_MAX_KEYS + REDLOCK_MAX_KEYS)

/* Reads the outcomes of all items. Returns false if the reply does not fit this call. */
static bool read_items(const struct batch *batch, const struct reply *reply,
                       struct reply_outcome *outcomes) {
    unsigned count = script_items(batch->call.script, batch->count, batch->key_count);
    return reply_to_script(reply, batch->call.script, outcomes, count);
}

/* Returns whether a grant carries the lock's counter; a release of a fenced lock does not. */
static bool has_counter(const struct batch *batch, const struct flight *flight) {
    return kind_is_fenced(flight->plan.kind) && script_counts(batch->call.script) &&
           !flight_is_release(flight);
}

/* Returns whether an outcome fits: a grant has a counter if and only if it should carry one. */
static bool is_fit(const struct batch *batch, const struct flight *flight,
                   const struct reply_outcome *outcome) {
    return outcome->vote != REDLOCK_VOTE_GRANTED ||
           has_counter(batch, flight) == (outcome->fence > 0);
}

/* Returns the detail of a vote, or NULL. In an item, only the counter can be an error. */
static const char *words_for(const struct reply_outcome *outcome) {
    return outcome->vote == REDLOCK_VOTE_ERROR ? COUNTER_RUINED : NULL;
}

/* Has a new batch sent that replaces this one or a part of it, or that continues it. */
static void repeat(struct batch *batch) {
    const struct batch_listener *listener = &batch->shared->listener;
    listener->on_repeat(listener->owner, batch);
}

/* The most calls of PASS in a row: 65,536 entries. A broken server may answer '+' without end. */
#define PASSES_MAX 1024

/*
 * Has the node continue at once with the keys of a flight whose call stopped at the bound. If there
 * is no memory, or that call fails, the next poll of a waiter does so.
 */
static void go_on(struct batch *batch, struct node *node, struct flight *flight) {
    if (batch->passes >= PASSES_MAX) {
        return;
    }
    const struct flight_plan plan = {.round = ROUND_DIAGNOSE,
                                     .request = flight->plan.request,
                                     .kind = flight->plan.kind,
                                     .key = flight->plan.key,
                                     .token = flight->token,
                                     .now = clock_now(),
                                     .nodes = node_bit(node)};
    struct flight *next = flight_create(flight->flights, FLIGHT_UNATTENDED, &plan);
    struct batch *pass = NULL;
    if (next != NULL) {
        pass = batch_create(batch->shared, SCRIPT_PASS, node_bit(node), 0, BATCH_FIRST);
    }
    /* Calls in a row are counted, because a broken server may never finish. */
    if (pass != NULL) {
        pass->passes = batch->passes + 1;
        batch_add(pass, next);
        repeat(pass);
    }
    flight_drop(next);
}

/* Sends PASS if an item of the flight reports that the call stopped at the bound. */
static __attribute__((noinline)) void go_on_if_unfinished(struct batch *batch, struct node *node,
                                                          struct flight *flight,
                                                          const struct reply_outcome *items,
                                                          unsigned count) {
    bool is_unfinished = false;
    for (unsigned i = 0; i < count; i++) {
        is_unfinished |= items[i].is_unfinished;
    }
    if (is_unfinished) {
        go_on(batch, node, flight);
    }
}

static void vote(struct batch *batch, struct node *node, const struct reply *reply) {
    struct reply_outcome outcomes[ITEMS_MAX];
    /* A reply that is not of the script's form gives no lock a grant. */
    bool understood = reply != NULL && read_items(batch, reply, outcomes);
    bool has_stopped = understood && reply_is_unfinished(reply);
    const struct reply_outcome *items = outcomes;
    for (unsigned i = 0; i < batch->count; i++) {
        struct flight *flight = batch->flights[i];
        unsigned count = script_items(batch->call.script, 1, flight->plan.key->count);
        const struct reply_outcome *outcome = understood ? reply_combine(items, count) : NULL;
        if (reply == NULL) {
            flight_vote_without_answer(flight, node);
        } else if (outcome == NULL || !is_fit(batch, flight, outcome)) {
            /* A grant without its counter must not become a fence of 0. */
            flight_vote_error(flight, node, reply);
        } else {
            flight_vote(flight, node, outcome, words_for(outcome));
        }
        if (has_stopped) {
            go_on_if_unfinished(batch, node, flight, items, count);
        }
        items += count;
    }
}

/*
 * Returns whether the ACL forbids one key of the call, for which Redis refuses the whole call, or a
 * key that a script derives from a lock's. A script that takes keys may have taken others by then:
 * it takes them again, which changes nothing.
 */
static bool lacks_right(const struct batch *batch, const struct reply *reply) {
    return reply_is_forbidden(reply) || (batch_takes(batch) && reply_lacks_right(reply));
}

/*
 * Returns whether an error may concern only a part of the call: the user lacks the right to one key
 * of many, or the server refuses entries and so did none of the releases that follow them.
 */
static bool is_about_a_part(const struct batch *batch, const struct reply *reply) {
    bool carries = batch->releases > 0 && batch->releases < batch->count;
    return reply->type == REPLY_ERROR && batch->count > 1 && (carries || lacks_right(batch, reply));
}

/*
 * Returns whether a flight may be in a call that is sent again. A try that was given up in the
 * meantime has been released at the node already, and must not take the key again.
 */
static bool may_repeat(const struct batch *batch, const struct flight *flight) {
    return !batch_takes(batch) || flight_is_release(flight) || flight_is_waited_for(flight);
}

/* Returns an empty batch of the same script, for one node; NULL when out of memory. */
static struct batch *new_batch_like(const struct batch *batch, const struct node *node) {
    return batch_create(batch->shared, batch->call.script, node_bit(node), batch->replicas,
                        batch->order);
}

/* Sends the locks that the error may not concern in calls of their own: only the others fail. */
static void split_batch(struct batch *batch, struct node *node, const struct reply *reply) {
    bool is_forbidden = lacks_right(batch, reply);
    for (unsigned i = 0; i < batch->count; i++) {
        struct flight *flight = batch->flights[i];
        /* Releases go again in any case, other commands only if one of them lacks a right. */
        bool is_due = flight_is_release(flight) || (is_forbidden && may_repeat(batch, flight));
        struct batch *alone = is_due ? new_batch_like(batch, node) : NULL;
        if (alone == NULL) {
            flight_vote_error(flight, node, reply);
        } else {
            batch_add(alone, flight);
            repeat(alone);
        }
    }
}

/* Sends the call again, with the script's text, for the locks that may be repeated. */
static void take_again(struct batch *batch, struct node *node, const struct reply *reply) {
    struct batch *again = new_batch_like(batch, node);
    for (unsigned i = 0; i < batch->count; i++) {
        struct flight *flight = batch->flights[i];
        /* A try that was given up has been released already, and must not take the key again. */
        if (again != NULL && may_repeat(batch, flight)) {
            batch_add(again, flight);
        } else {
            flight_vote_error(flight, node, reply);
        }
    }
    if (again != NULL) {
        repeat(again);
    }
}

/* Sends the whole call again. Returns whether it was sent, so that the node answers again. */
static bool send_batch_again(struct batch *batch, struct node *node) {
    bool with_text = call_takes_text(&batch->call, &node->uplink, node->index);
    context_wake(batch->shared->context);
    return send_batch_to(batch, node, encode_batch(batch, with_text, node_channel(node)));
}

static void on_batch_reply(struct conn_request *request, void *owner, const struct reply *reply) {
    struct batch *batch = (struct batch *)request;
    struct node *node = node_of(owner);
    bool is_asked_again = call_is_asked_again(&batch->call, &node->uplink, node->index, reply);
    /* NOSCRIPT: nothing was done, so releases and renewals are repeated as a whole. */
    if (is_asked_again && !batch_takes(batch) && send_batch_again(batch, node)) {
        return;
    }
    if (is_asked_again && batch_takes(batch)) {
        take_again(batch, node, reply);
    } else if (reply != NULL && is_about_a_part(batch, reply)) {
        split_batch(batch, node, reply);
    } else {
        vote(batch, node, reply);
    }
    batch_drop(batch);
}

static void on_batch_wait_reply(struct conn_request *request, void *owner,
                                const struct reply *reply) {
    struct batch *batch = (struct batch *)(void *)((char *)request - offsetof(struct batch, wait));
    for (unsigned i = 0; i < batch->count; i++) {
        flight_confirm(batch->flights[i], node_of(owner), reply);
    }
    batch_drop(batch);
}

/* ---- sending ---- */

static void vote_unsent(struct batch *batch, struct node *node) {
    for (unsigned i = 0; i < batch->count; i++) {
        /* A command that could not be encoded says nothing about the node. */
        if (batch->shared->context->scratch.failed) {
            flight_vote(batch->flights[i], node, &PLAIN_VOTE(UNREACHABLE), "out of memory");
        } else {
            flight_vote_unsent(batch->flights[i], node);
        }
    }
}

/* Records in all flights that a node may give their waiters entries. */
static void record_asked(struct batch *batch, bool with_channel) {
    /* Without a channel the node gives no entry, so none has to be given up. */
    for (unsigned i = 0; with_channel && i < batch->count; i++) {
        batch->flights[i]->asks_for_entry = true;
    }
}

/*
 * Sends one form of the call: by SHA-1 to nodes that have the script, with the text to others. It
 * is encoded once, unless each node has a channel of its own.
 */
static void send_form(struct batch *batch, uint32_t nodes, bool with_text) {
    const struct batch_shared *shared = batch->shared;
    bool has_channel = script_sources[batch->call.script].has_channel;
    size_t length = has_channel ? 0 : encode_batch(batch, with_text, "");
    struct node *node;
    while ((node = members_take(shared->members, &nodes)) != NULL) {
        if (has_channel) {
            /* The channel is an argument: each node publishes to its own. */
            length = encode_batch(batch, with_text, node_channel(node));
        }
        if (send_batch_to(batch, node, length)) {
            batch->references++;
            record_asked(batch, has_channel && node_channel(node)[0] != '\0');
        } else {
            vote_unsent(batch, node);
        }
    }
}

/* Drops the tries that were given up in the turn in which they began. */
static void prune(struct batch *batch) {
    unsigned count = batch->count;
    script_call_clear(&batch->arguments);
    batch->count = batch->key_count = batch->reads = batch->releases = 0;
    for (unsigned i = 0; i < count; i++) {
        struct flight *flight = batch->flights[i];
        if (!flight->is_void) {
            batch_add(batch, flight);
        }
        /* The batch's old reference: batch_add has taken a new one. */
        flight_drop(flight);
    }
}

static bool has_void(const struct batch *batch) {
    bool found = false;
    for (unsigned i = 0; i < batch->count && batch_takes(batch); i++) {
        found |= batch->flights[i]->is_void;
    }
    return found;
}

void batch_send(struct batch *batch) {
    /* A try given up in its own turn was never sent, and need not be undone. */
    if (has_void(batch)) {
        prune(batch);
    }
    if (batch->count == 0) {
        return;
    }
    /* Each form is encoded once for all nodes that need it. */
    uint32_t rest = batch->nodes;
    uint32_t lacking = 0;
    struct node *node;
    while ((node = members_take(batch->shared->members, &rest)) != NULL) {
        bool lacks = call_takes_text(&batch->call, &node->uplink, node->index);
        lacking |= lacks ? node_bit(node) : 0;
    }
    batch->request.length = script_call_length(&batch->arguments); /* without the text */
    send_form(batch, batch->nodes & ~lacking, false);
    if (lacking != 0) {
        send_form(batch, lacking, true);
    }
}
