/*
 * The happy path: batch_add appends a key and its arguments to the open batch of the same script
 * and nodes; at the end of the turn the call is encoded once and sent to each of its nodes; each
 * reply, one item per key, becomes a vote in the round of each key.
 *
 * A node that lacks the script (a restart, SCRIPT FLUSH) answers NOSCRIPT: it is sent the same
 * call at once with the script's text, which loads it too. The rounds do not notice.
 */
#include "batch.h"

#include "base/nanos.h"
#include "node.h"
#include "wire/command.h"

#include <string.h>

/* A call that has grown beyond this takes no further key. */
#define BATCH_BYTES_MAX (64 * 1024)

struct batch {
    struct conn_request request;
    struct context *context;
    enum script script;
    uint32_t nodes;      /* mask: where it goes */
    uint32_t reloaded;   /* mask: nodes that were sent the script's text */
    uint32_t references; /* replies to come, and one while it is open */
    bool is_alone;       /* for one key, whatever there is room for */
    unsigned count;
    struct flight *flights[SCRIPT_MAX_KEYS];
    struct bytes keys, arguments;
    STAILQ_ENTRY(batch) link;
};

static bool set_up(void *object, void *context) {
    struct batch *batch = object;
    const struct context *shared = context;
    bytes_init(&batch->keys, &shared->allocator);
    bytes_init(&batch->arguments, &shared->allocator);
    return true;
}

static void take_down(void *object) {
    struct batch *batch = object;
    bytes_finish(&batch->keys);
    bytes_finish(&batch->arguments);
}

const struct pool_kind batch_kind = {
    .size = sizeof(struct batch), .max_spares = 256, .set_up = set_up, .take_down = take_down};

static void on_reply(struct conn_request *request, void *owner, const struct reply *reply);

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

static struct batch *open_batch(struct context *context, enum script script, uint32_t nodes) {
    struct batch *batch = pool_take(&context->batches);
    if (batch != NULL) {
        batch->request.on_reply = on_reply;
        batch->context = context;
        batch->script = script;
        batch->nodes = nodes;
        batch->reloaded = 0;
        batch->references = 1;
        batch->count = 0;
        batch->is_alone = false;
        bytes_clear(&batch->keys);
        bytes_clear(&batch->arguments);
        STAILQ_INSERT_TAIL(&context->open, batch, link);
    }
    return batch;
}

static bool has_room(const struct batch *batch) {
    size_t sendable = batch->context->options.max_bytes / 2;
    size_t most = sendable < BATCH_BYTES_MAX ? sendable : BATCH_BYTES_MAX;
    return !batch->is_alone && batch->count < SCRIPT_MAX_KEYS && !batch->keys.failed &&
           !batch->arguments.failed && batch->keys.length + batch->arguments.length < most;
}

static struct batch *find_batch(struct context *context, enum script script, uint32_t nodes) {
    struct batch *batch;
    STAILQ_FOREACH(batch, &context->open, link) {
        if (batch->script == script && batch->nodes == nodes) {
            return batch;
        }
    }
    return open_batch(context, script, nodes);
}

/* Where a key's bit stands in the filter over open batches. */
static size_t filter_word(const struct key *key) {
    return key->hash % OPEN_KEYS_BITS / 64;
}

static uint64_t filter_bit(const struct key *key) {
    return UINT64_C(1) << key->hash % 64;
}

bool batch_may_hold(const struct context *context, const struct key *key) {
    return (context->open_keys[filter_word(key)] & filter_bit(key)) != 0;
}

static void add_key(struct batch *batch, struct flight *flight) {
    struct context *context = batch->context;
    command_script_key(batch->script, &batch->keys, &batch->arguments, flight->key->bytes,
                       flight->key->length, flight->token, nanos_to_ms(flight->round.ttl));
    context->open_keys[filter_word(flight->key)] |= filter_bit(flight->key);
    batch->request.sent_at = flight->round.start;
    batch->flights[batch->count++] = flight_hold(flight);
    if (!has_room(batch)) { /* those that follow need not look at it */
        STAILQ_REMOVE(&context->open, batch, batch, link);
        STAILQ_INSERT_TAIL(&context->full, batch, link);
    }
}

void batch_add(struct context *context, enum script script, uint32_t nodes, struct flight *flight) {
    uint32_t rest = nodes & members_all(&context->members);
    struct batch *batch = find_batch(context, script, rest);
    struct node *node;
    if (batch != NULL) {
        add_key(batch, flight);
        return;
    }
    while ((node = members_take(&context->members, &rest)) != NULL) {
        flight_vote(flight, node, REDLOCK_VOTE_UNREACHABLE, 0, "out of memory");
    }
}

/* ---- replies ---- */

static bool send_to(struct batch *batch, struct node *node, bool with_text) {
    struct bytes *command = &batch->context->scratch;
    bytes_clear(command);
    command_script(command, batch->script, with_text, batch->count, &batch->keys,
                   &batch->arguments);
    return !command->failed && node_send(node, &batch->request, command->data, command->length);
}

/* True when the node was sent the script's text, and will answer again. */
static bool reload(struct batch *batch, struct node *node, const struct reply *reply) {
    uint32_t bit = UINT32_C(1) << node->index;
    if (reply->type != REPLY_ERROR || reply_classify(reply) != REPLY_ERROR_NO_SCRIPT ||
        (batch->reloaded & bit)) {
        return false;
    }
    batch->reloaded |= bit;
    context_wake(batch->context);
    return send_to(batch, node, true);
}

static void vote(struct batch *batch, struct node *node, const struct reply *reply) {
    struct reply_outcome outcomes[SCRIPT_MAX_KEYS];
    bool understood = reply != NULL && reply_to_script(reply, outcomes, batch->count);
    for (unsigned i = 0; i < batch->count; i++) {
        struct flight *flight = batch->flights[i];
        if (understood) {
            flight_vote(flight, node, outcomes[i].vote, outcomes[i].other_ttl_ms, NULL);
        } else if (reply != NULL) {
            flight_vote_error(flight, node, reply);
        } else {
            flight_vote_without_answer(flight, node);
        }
    }
}

/* Where the user may not touch one of the keys, Redis refuses the whole call. */
static bool is_about_one_key(const struct batch *batch, const struct reply *reply) {
    return batch->count > 1 && reply->type == REPLY_ERROR && strncmp(reply->text, "NOPERM", 6) == 0;
}

/* Sends each key in a call of its own: the others have nothing to do with the one at fault. */
static void split(struct batch *batch, struct node *node, const struct reply *reply) {
    for (unsigned i = 0; i < batch->count; i++) {
        struct batch *alone = open_batch(batch->context, batch->script, UINT32_C(1) << node->index);
        if (alone == NULL) {
            flight_vote_error(batch->flights[i], node, reply);
        } else {
            alone->is_alone = true;
            add_key(alone, batch->flights[i]);
        }
    }
    context_wake(batch->context);
}

static void on_reply(struct conn_request *request, void *owner, const struct reply *reply) {
    struct batch *batch = (struct batch *)request;
    if (reply != NULL && reload(batch, owner, reply)) {
        return;
    }
    if (reply == NULL || !is_about_one_key(batch, reply)) {
        vote(batch, owner, reply);
    } else {
        split(batch, owner, reply);
    }
    batch_drop(batch);
}

/* ---- sending ---- */

static void vote_unreachable(struct batch *batch, struct node *node, const char *detail) {
    for (unsigned i = 0; i < batch->count; i++) {
        flight_vote(batch->flights[i], node, REDLOCK_VOTE_UNREACHABLE, 0, detail);
    }
}

/* To those of the nodes that know the script, or to those that have to be sent its text. */
static void send_form(struct batch *batch, uint32_t nodes, bool with_text) {
    struct context *context = batch->context;
    struct bytes *command = &context->scratch;
    bytes_clear(command);
    command_script(command, batch->script, with_text, batch->count, &batch->keys,
                   &batch->arguments);
    struct node *node;
    while ((node = members_take(&context->members, &nodes)) != NULL) {
        if (!command->failed && node_send(node, &batch->request, command->data, command->length)) {
            batch->references++;
        } else {
            node->lacks |= (uint32_t)with_text << batch->script;
            vote_unreachable(batch, node, command->failed ? "out of memory" : NULL);
        }
    }
}

static void batch_send(struct batch *batch) {
    struct context *context = batch->context;
    uint32_t rest = batch->nodes;
    uint32_t lacking = 0;
    struct node *node;
    while ((node = members_take(&context->members, &rest)) != NULL) {
        lacking |= (uint32_t)node_takes_text(node, batch->script) << node->index;
    }
    batch->request.length = batch->keys.length + batch->arguments.length; /* without the text */
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
    while (!STAILQ_EMPTY(&context->full)) {
        struct batch *batch = STAILQ_FIRST(&context->full);
        STAILQ_REMOVE_HEAD(&context->full, link);
        batch_send(batch);
        batch_drop(batch);
    }
}
