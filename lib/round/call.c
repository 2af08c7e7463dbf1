/*
 * The happy path: call_add appends a lock's keys and arguments to the call; call_send encodes the
 * call once, and sends it to each of its nodes; each reply becomes a vote in each lock's operation.
 * A SET is encoded once as well, but needs no call.
 *
 * Failures: a node that lacks the script is sent the call again, with the text (node/eval.h); the
 * rounds do not notice. A script that takes keys is repeated only for tries that are still waited
 * for. The refusal may have come late, so a heartbeat goes ahead if need be. If the ACL forbids one
 * of the keys, Redis refuses the whole call; then each lock is sent in a call of its own. So are
 * the releases that a failed call for entries carried. A call that stopped at the bound on its
 * entries is followed by a call of PASS.
 */
#include "round/call.h"

#include "core/options.h"
#include "io/clock.h"
#include "node/eval.h"
#include "node/node.h"
#include "wire/command.h"

#include <stddef.h>
#include <string.h>

static bool set_up_pooled_call(void *object, void *context) {
    struct call *call = object;
    const struct context *client = context;
    script_call_init(&call->arguments, &client->allocator);
    return true;
}

static void take_down_pooled_call(void *object, void *context) {
    struct call *call = object;
    (void)context;
    script_call_finish(&call->arguments);
}

static const struct pool_kind call_kind = {.size = sizeof(struct call),
                                           .max_spares = 256,
                                           .set_up = set_up_pooled_call,
                                           .take_down = take_down_pooled_call};

static void on_call_reply(struct conn_request *request, void *owner, const struct reply *reply);
static void on_call_wait_reply(struct conn_request *request, void *owner,
                               const struct reply *reply);

void calls_init(struct calls *calls, struct context *context, const struct members *members,
                struct call_listener listener) {
    *calls = (struct calls){.context = context, .members = members, .listener = listener};
    pool_init(&calls->pool, &context->allocator, &call_kind, context);
}

void calls_finish(struct calls *calls) {
    pool_finish(&calls->pool);
}

struct call *call_create(struct calls *calls, enum script script, uint32_t nodes, uint32_t replicas,
                         enum call_order order) {
    struct call *call = pool_take(&calls->pool);
    if (call != NULL) {
        call->request.on_reply = on_call_reply;
        call->wait.on_reply = on_call_wait_reply;
        /* New locks must not keep held ones from being renewed or released (core/load.h). */
        call->request.load_class = call->wait.load_class =
            script_takes(script) ? LOAD_NEW : LOAD_HELD;
        call->calls = calls;
        call->eval = (struct eval){.script = script};
        call->nodes = nodes;
        call->replicas = replicas;
        call->order = order;
        call->references = 1;
        call->count = call->key_count = call->reads = call->releases = call->passes = 0;
        script_call_clear(&call->arguments);
    }
    return call;
}

void call_drop(struct call *call) {
    /* A reply of each node is still to come, or a WAIT's. */
    if (--call->references > 0) {
        return;
    }
    for (unsigned i = 0; i < call->count; i++) {
        operation_drop(call->operations[i]);
    }
    pool_put(&call->calls->pool, call);
}

void call_add(struct call *call, struct operation *operation) {
    enum script script = call->eval.script;
    const struct lock_arguments *arguments = &operation->arguments;
    /* A call of QUEUE may release keys in the same command. */
    bool is_carried = script_takes(script) && operation_is_release(operation);
    script_call_add(&call->arguments, script, arguments);
    call->request.sent_at = call->wait.sent_at = operation->round.start;
    call->operations[call->count++] = operation_hold(operation);
    call->key_count += arguments->key->count;
    call->reads += arguments->key->count;
    /* To report free permits, the server looks at each permit of the semaphore. */
    call->reads += script_infos[script].reports_free ? (unsigned)arguments->permits : 0;
    call->releases += is_carried;
    if (is_carried) { /* a release must get through, with all that is in its call */
        call->request.load_class = LOAD_HELD;
    }
}

bool call_may_carry(const struct call *call, const struct call *releases) {
    enum script script = releases->eval.script;
    /* Only without replicas, which releases do not wait for. An item of QUEUE releases one key. */
    return call->eval.script == SCRIPT_QUEUE &&
           (script == SCRIPT_RELEASE || script == SCRIPT_LEAVE) && call->replicas == 0 &&
           call->nodes == releases->nodes && releases->key_count == releases->count;
}

void call_carry(struct call *call, struct call *releases) {
    /*
     * After the entries, so that the node passes the keys to waiters that are in the queue by then.
     */
    for (unsigned i = 0; i < releases->count; i++) {
        call_add(call, releases->operations[i]);
    }
    call_drop(releases);
}

/* ---- to one node ---- */

/*
 * Appends the WAIT, if replicas must confirm grants, to the encoded command. Returns the length of
 * the command before it.
 */
static size_t append_wait(struct context *context, uint32_t replicas, struct conn_request *wait) {
    size_t length = context->scratch.length;
    if (replicas > 0) {
        command_wait(&context->scratch, replicas, options_wait_ms(&context->options));
    }
    wait->length = context->scratch.length - length;
    return length;
}

/*
 * Sends the encoded command, of `length` bytes, and the WAIT after it. Returns whether the command
 * was sent; `waits`: whether the WAIT was, too.
 */
static bool send_command(struct context *context, struct node *node, size_t length,
                         struct conn_request *request, struct conn_request *wait, bool *waits) {
    const struct bytes *command = &context->scratch;
    *waits = false;
    /* Without memory the command is incomplete, and must not be sent. */
    if (command->failed || !node_send(node, request, command->data, length)) {
        return false;
    }
    /* On the same connection, because WAIT covers the writes of its own connection. */
    *waits = wait->length > 0 && node_send(node, wait, command->data + length, wait->length);
    return true;
}

static void vote_unsent(struct operation *operation, struct node *node) {
    /* A command that could not be encoded says nothing about the node. */
    if (operation->operations->context->scratch.failed) {
        operation_vote_out_of_memory(operation, node);
    } else {
        operation_vote_unsent(operation, node);
    }
}

/* Encodes the call and its WAIT, with a node's channel for scripts that take one. */
static size_t encode_call(struct call *call, bool with_text, const char *channel) {
    struct context *context = call->calls->context;
    bytes_clear(&context->scratch);
    call->arguments.channel = channel;
    command_script(&context->scratch, call->eval.script, with_text, &call->arguments);
    return append_wait(context, call->replicas, &call->wait);
}

/* Sends the encoded call to a node. Returns false if it was not sent. */
static bool send_call_to(struct call *call, struct node *node, size_t length) {
    bool waits;
    if (!send_command(call->calls->context, node, length, &call->request, &call->wait, &waits)) {
        eval_not_sent(&call->eval, &node->uplink, node->index);
        return false;
    }
    call->references += waits;
    for (unsigned i = 0; i < call->count && waits; i++) {
        operation_asks_replicas(call->operations[i], node);
    }
    return true;
}

/* ---- SET ---- */

static void on_set_reply(struct conn_request *request, void *owner, const struct reply *reply) {
    struct operation *operation =
        (struct operation *)(void *)((char *)request - offsetof(struct operation, set));
    struct node *node = node_of(owner);
    /* Without an answer, the vote depends on whether there was a connection. */
    if (reply == NULL) {
        operation_vote_without_answer(operation, node);
    } else {
        struct reply_outcome outcome = reply_to_set(reply);
        /* The text of an error distinguishes a missing right from other errors. */
        if (outcome.vote == REDLOCK_VOTE_ERROR) {
            operation_vote_error(operation, node, reply);
        } else {
            operation_vote(operation, node, &outcome, NULL);
        }
    }
    operation_drop(operation);
}

static void on_set_wait_reply(struct conn_request *request, void *owner,
                              const struct reply *reply) {
    struct operation *operation =
        (struct operation *)(void *)((char *)request - offsetof(struct operation, wait));
    operation_confirm(operation, node_of(owner), reply);
    operation_drop(operation);
}

/* Encodes the SET and its WAIT. */
static void encode_set(struct operation *operation) {
    struct context *context = operation->operations->context;
    bytes_clear(&context->scratch);
    command_set(&context->scratch, &operation->arguments);
    operation->set = (struct conn_request){.on_reply = on_set_reply,
                                           .sent_at = operation->round.start,
                                           .length = context->scratch.length,
                                           .load_class = LOAD_NEW};
    operation->wait = (struct conn_request){
        .on_reply = on_set_wait_reply, .sent_at = operation->round.start, .load_class = LOAD_NEW};
    append_wait(context, operation->replicas, &operation->wait);
}

void call_send_set(struct operation *operation, uint32_t nodes) {
    struct context *context = operation->operations->context;
    struct node *node;
    bool waits;
    encode_set(operation);
    while ((node = members_take(operation->operations->members, &nodes)) != NULL) {
        if (!send_command(context, node, operation->set.length, &operation->set, &operation->wait,
                          &waits)) {
            vote_unsent(operation, node);
            continue;
        }
        /* One reference for each reply to come, so that late replies find the operation. */
        operation->references += 1U + waits;
        if (waits) {
            operation_asks_replicas(operation, node);
        }
    }
}

/* ---- replies ---- */

/* The most items of an answer: all locks but the last have fewer than SCRIPT_MAX_KEYS keys. */
#define ITEMS_MAX (SCRIPT_MAX_KEYS + REDLOCK_MAX_KEYS)

/* Reads the outcomes of all items. Returns false if the reply does not fit this call. */
static bool read_items(const struct call *call, const struct reply *reply,
                       struct reply_outcome *outcomes) {
    unsigned count = script_items(call->eval.script, call->count, call->key_count);
    return reply_to_script(reply, call->eval.script, outcomes, count);
}

/* Returns whether a grant carries the lock's counter; a release of a fenced lock does not. */
static bool has_counter(const struct call *call, const struct operation *operation) {
    return kind_is_fenced(operation->kind) && script_counts(call->eval.script) &&
           !operation_is_release(operation);
}

/* Returns whether an outcome fits: a grant has a counter if and only if it should carry one. */
static bool is_fit(const struct call *call, const struct operation *operation,
                   const struct reply_outcome *outcome) {
    return outcome->vote != REDLOCK_VOTE_GRANTED ||
           has_counter(call, operation) == (outcome->fence > 0);
}

/* Returns the detail of a vote, or NULL. In an item, only the counter can be an error. */
static const char *words_for(const struct reply_outcome *outcome) {
    return outcome->vote == REDLOCK_VOTE_ERROR ? COUNTER_RUINED : NULL;
}

/* Has a new call sent that replaces this one or a part of it, or that continues it. */
static void repeat(struct call *call) {
    const struct call_listener *listener = &call->calls->listener;
    listener->on_repeat(listener->owner, call);
}

/* The most calls of PASS in a row: 65,536 entries. A broken server may answer '+' without end. */
#define PASSES_MAX 1024

/*
 * Has the node continue at once with the keys of an operation whose call stopped at the bound. If
 * there is no memory, or that call fails, the next poll of a waiter does so.
 */
static void go_on(struct call *call, struct node *node, struct operation *operation) {
    if (call->passes >= PASSES_MAX) {
        return;
    }
    struct operation *next =
        operation_create(operation->operations, operation->kind, operation->arguments.key,
                         operation->arguments.value, 0);
    struct call *pass = NULL;
    if (next != NULL) {
        next->request = operation->request;
        operation_begin(next, ROUND_DIAGNOSE, clock_now(), 0, 0);
        pass = call_create(call->calls, SCRIPT_PASS, node_bit(node), 0, CALL_FIRST);
    }
    /* Calls in a row are counted, because a broken server may never finish. */
    if (pass != NULL) {
        pass->passes = call->passes + 1;
        call_add(pass, next);
        repeat(pass);
    }
    operation_drop(next);
}

/* Sends PASS if an item of the operation reports that the call stopped at the bound. */
static __attribute__((noinline)) void go_on_if_unfinished(struct call *call, struct node *node,
                                                          struct operation *operation,
                                                          const struct reply_outcome *items,
                                                          unsigned count) {
    bool is_unfinished = false;
    for (unsigned i = 0; i < count; i++) {
        is_unfinished |= items[i].is_unfinished;
    }
    if (is_unfinished) {
        go_on(call, node, operation);
    }
}

static void vote(struct call *call, struct node *node, const struct reply *reply) {
    struct reply_outcome outcomes[ITEMS_MAX];
    /* A reply that is not of the script's form gives no lock a grant. */
    bool understood = reply != NULL && read_items(call, reply, outcomes);
    bool has_stopped = understood && reply_is_unfinished(reply);
    const struct reply_outcome *items = outcomes;
    for (unsigned i = 0; i < call->count; i++) {
        struct operation *operation = call->operations[i];
        unsigned count = script_items(call->eval.script, 1, operation->arguments.key->count);
        const struct reply_outcome *outcome = understood ? reply_combine(items, count) : NULL;
        if (reply == NULL) {
            operation_vote_without_answer(operation, node);
        } else if (outcome == NULL || !is_fit(call, operation, outcome)) {
            /* A grant without its counter must not become a fence of 0. */
            operation_vote_error(operation, node, reply);
        } else {
            operation_vote(operation, node, outcome, words_for(outcome));
        }
        if (has_stopped) {
            go_on_if_unfinished(call, node, operation, items, count);
        }
        items += count;
    }
}

/*
 * Returns whether the ACL forbids one key of the call, for which Redis refuses the whole call, or a
 * key that a script derives from a lock's. A script that takes keys may have taken others by then:
 * it takes them again, which changes nothing.
 */
static bool lacks_right(const struct call *call, const struct reply *reply) {
    return reply_is_forbidden(reply) || (call_takes(call) && reply_lacks_right(reply));
}

/*
 * Returns whether an error may concern only a part of the call: the user lacks the right to one key
 * of many, or the server refuses entries and so did none of the releases that follow them.
 */
static bool is_about_a_part(const struct call *call, const struct reply *reply) {
    bool carries = call->releases > 0 && call->releases < call->count;
    return reply->type == REPLY_ERROR && call->count > 1 && (carries || lacks_right(call, reply));
}

/*
 * Returns whether a operation may be in a call that is sent again. A try that was given up in the
 * meantime has been released at the node already, and must not take the key again.
 */
static bool may_repeat(const struct call *call, const struct operation *operation) {
    return !call_takes(call) || operation_is_release(operation) ||
           operation_is_waited_for(operation);
}

/* Returns an empty call of the same script, for one node; NULL when out of memory. */
static struct call *new_call_like(const struct call *call, const struct node *node) {
    return call_create(call->calls, call->eval.script, node_bit(node), call->replicas, call->order);
}

/* Sends the locks that the error may not concern in calls of their own: only the others fail. */
static void split_call(struct call *call, struct node *node, const struct reply *reply) {
    bool is_forbidden = lacks_right(call, reply);
    for (unsigned i = 0; i < call->count; i++) {
        struct operation *operation = call->operations[i];
        /* Releases go again in any case, other commands only if one of them lacks a right. */
        bool is_due =
            operation_is_release(operation) || (is_forbidden && may_repeat(call, operation));
        struct call *alone = is_due ? new_call_like(call, node) : NULL;
        if (alone == NULL) {
            operation_vote_error(operation, node, reply);
        } else {
            call_add(alone, operation);
            repeat(alone);
        }
    }
}

/* Sends the call again, with the script's text, for the locks that may be repeated. */
static void take_again(struct call *call, struct node *node, const struct reply *reply) {
    struct call *again = new_call_like(call, node);
    for (unsigned i = 0; i < call->count; i++) {
        struct operation *operation = call->operations[i];
        /* A try that was given up has been released already, and must not take the key again. */
        if (again != NULL && may_repeat(call, operation)) {
            call_add(again, operation);
        } else {
            operation_vote_error(operation, node, reply);
        }
    }
    if (again != NULL) {
        repeat(again);
    }
}

/* Sends the whole call again. Returns whether it was sent, so that the node answers again. */
static bool send_call_again(struct call *call, struct node *node) {
    bool with_text = eval_takes_text(&call->eval, &node->uplink, node->index);
    context_wake(call->calls->context);
    return send_call_to(call, node, encode_call(call, with_text, node_channel(node)));
}

static void on_call_reply(struct conn_request *request, void *owner, const struct reply *reply) {
    struct call *call = (struct call *)request;
    struct node *node = node_of(owner);
    bool is_asked_again = eval_is_asked_again(&call->eval, &node->uplink, node->index, reply);
    bool may_split = reply != NULL && is_about_a_part(call, reply);
    if (is_asked_again || may_split) { /* Trust: the refusal may have come long after the beat */
        node_beat(node, clock_now());
    }
    /* NOSCRIPT: nothing was done, so releases and renewals are repeated as a whole. */
    if (is_asked_again && !call_takes(call) && send_call_again(call, node)) {
        return;
    }
    if (is_asked_again && call_takes(call)) {
        take_again(call, node, reply);
    } else if (may_split) {
        split_call(call, node, reply);
    } else {
        vote(call, node, reply);
    }
    call_drop(call);
}

static void on_call_wait_reply(struct conn_request *request, void *owner,
                               const struct reply *reply) {
    struct call *call = (struct call *)(void *)((char *)request - offsetof(struct call, wait));
    for (unsigned i = 0; i < call->count; i++) {
        operation_confirm(call->operations[i], node_of(owner), reply);
    }
    call_drop(call);
}

/* ---- sending ---- */

/* Records in all operations that a node may give their waiters entries. */
static void record_asked(struct call *call, bool with_channel) {
    /* Without a channel the node gives no entry, so none has to be given up. */
    for (unsigned i = 0; with_channel && i < call->count; i++) {
        call->operations[i]->asks_for_entry = true;
    }
}

/*
 * Sends one form of the call: by SHA-1 to nodes that have the script, with the text to others. It
 * is encoded once, unless each node has a channel of its own.
 */
static void send_form(struct call *call, uint32_t nodes, bool with_text) {
    const struct calls *calls = call->calls;
    bool has_channel = script_sources[call->eval.script].has_channel;
    size_t length = has_channel ? 0 : encode_call(call, with_text, "");
    struct node *node;
    while ((node = members_take(calls->members, &nodes)) != NULL) {
        if (has_channel) {
            /* The channel is an argument: each node publishes to its own. */
            length = encode_call(call, with_text, node_channel(node));
        }
        if (send_call_to(call, node, length)) {
            call->references++;
            record_asked(call, has_channel && node_channel(node)[0] != '\0');
        } else {
            for (unsigned i = 0; i < call->count; i++) {
                vote_unsent(call->operations[i], node);
            }
        }
    }
}

/* Sends each form of the call to those of the nodes that need it: it is encoded once for all. */
static void send_forms(struct call *call, uint32_t nodes, uint32_t lacking) {
    send_form(call, nodes & ~lacking, false);
    if ((nodes & lacking) != 0) {
        send_form(call, nodes & lacking, true);
    }
}

/* Has the locks of a call for entries only enter the queue. */
static void take_nothing(struct call *call) {
    script_call_clear(&call->arguments);
    for (unsigned i = 0; i < call->count; i++) {
        struct lock_arguments arguments = call->operations[i]->arguments;
        arguments.ttl_ms = 0;
        script_call_add(&call->arguments, call->eval.script, &arguments);
    }
}

/*
 * Returns those of the nodes whose grants do not count for a while: they were restarted, for
 * example. A waiter would only keep the key from a holder, whose next renewal brings it there. A
 * node that is back may have been restarted, until it has answered.
 */
static uint32_t find_useless(const struct call *call, uint32_t nodes) {
    uint64_t now = clock_now();
    uint32_t useless = 0;
    struct node *node;
    while ((node = members_take(call->calls->members, &nodes)) != NULL) {
        struct trust_view view = guard_look(&node->guard);
        bool is_back = view.fault == TRUST_NOT_ASKED && node->uplink.disconnected > 0;
        useless |= is_back || view.until > now ? node_bit(node) : 0;
    }
    return useless;
}

/* Drops the tries that were given up in the turn in which they began. */
static void prune(struct call *call) {
    unsigned count = call->count;
    script_call_clear(&call->arguments);
    call->count = call->key_count = call->reads = call->releases = 0;
    for (unsigned i = 0; i < count; i++) {
        struct operation *operation = call->operations[i];
        if (!operation->is_void) {
            call_add(call, operation);
        }
        /* The call's old reference: call_add has taken a new one. */
        operation_drop(operation);
    }
}

static bool has_void(const struct call *call) {
    bool found = false;
    for (unsigned i = 0; i < call->count && call_takes(call); i++) {
        found |= call->operations[i]->is_void;
    }
    return found;
}

void call_send(struct call *call) {
    /* A try given up in its own turn was never sent, and need not be undone. */
    if (has_void(call)) {
        prune(call);
    }
    if (call->count == 0) {
        return;
    }
    uint32_t rest = call->nodes;
    uint32_t lacking = 0;
    struct node *node;
    while ((node = members_take(call->calls->members, &rest)) != NULL) {
        bool lacks = eval_takes_text(&call->eval, &node->uplink, node->index);
        lacking |= lacks ? node_bit(node) : 0;
    }
    call->request.length = script_call_length(&call->arguments); /* without the text */
    bool asks = script_sources[call->eval.script].has_channel;
    uint32_t useless = asks ? find_useless(call, call->nodes) : 0;
    send_forms(call, call->nodes & ~useless, lacking);
    if (useless != 0) {
        take_nothing(call);
        send_forms(call, useless, lacking);
    }
}
