/*
 * The happy path: rounds_add adds an operation to the open call of the same script and nodes; a
 * full call takes no more locks. At the end of the turn all are sent, those that release and renew
 * first, so that a key released in this turn can be taken in it.
 *
 * A SET, a call for a top-up, a try that must go at once, and a call for a node that must be asked
 * again do not wait for the end of the turn. The collected calls are sent before them if one of
 * them may release the key.
 *
 * Failures: without memory for a call, the operation's nodes vote UNREACHABLE.
 */
#include "round/rounds.h"

#include <string.h>

/* The number of bytes from which a call takes no more locks. */
#define CALL_BYTES_MAX (64 * 1024)

static void send_now(void *owner, struct call *call);

void rounds_init(struct rounds *rounds, struct context *context, const struct members *members) {
    struct call_listener listener = {.on_repeat = send_now, .owner = rounds};
    *rounds = (struct rounds){0};
    operations_init(&rounds->operations, context, members);
    calls_init(&rounds->calls, context, members, listener);
    STAILQ_INIT(&rounds->open);
    STAILQ_INIT(&rounds->full);
}

void rounds_finish(struct rounds *rounds) {
    calls_finish(&rounds->calls);
    operations_finish(&rounds->operations);
}

/* ---- the keys of collected calls ---- */

/* Returns the index of the word with a key's bit, in the filter over collected calls. */
static size_t filter_word(const struct key *key) {
    return key->hash % ROUNDS_KEY_BITS / 64;
}

static uint64_t filter_bit(const struct key *key) {
    return UINT64_C(1) << key->hash % 64;
}

/*
 * Returns whether a collected call may name one of these keys: a filter, with rare false positives.
 */
static bool may_name(const struct rounds *rounds, const struct key *keys) {
    bool may_hold = false;
    for (const struct key *key = keys; key != NULL; key = key->next) {
        may_hold |= (rounds->keys[filter_word(key)] & filter_bit(key)) != 0;
    }
    return may_hold;
}

static void record_keys(struct rounds *rounds, const struct key *keys) {
    for (const struct key *key = keys; key != NULL; key = key->next) {
        rounds->keys[filter_word(key)] |= filter_bit(key);
    }
}

/* ---- collecting ---- */

bool rounds_call_is_full(const struct rounds *rounds, unsigned reads, size_t bytes) {
    /* Half of max_bytes: a longer call would have to wait for an idle connection. */
    size_t sendable = rounds->calls.context->options.max_bytes / 2;
    size_t most = sendable < CALL_BYTES_MAX ? sendable : CALL_BYTES_MAX;
    return reads >= SCRIPT_MAX_KEYS || bytes >= most;
}

static bool call_has_room(const struct rounds *rounds, const struct call *call) {
    return !call->arguments.keys.failed && !call->arguments.arguments.failed &&
           !rounds_call_is_full(rounds, call->reads, script_call_length(&call->arguments));
}

/*
 * Returns the position of an operation's call in the turn. If the key is released in the turn in
 * which it is requested, other waiters are likely, and one call can do both.
 */
static enum call_order order_of(const struct rounds *rounds, enum script script,
                                const struct operation *operation) {
    const struct members *members = rounds->calls.members;
    /* Releases and renewals first: keys that are released here can be taken in this turn. */
    if (!script_takes(script)) {
        return CALL_FIRST;
    }
    /* The entry is there when the release comes, and the node pushes the key at once. */
    if (operation->order == OPERATION_BEFORE_RELEASES && members_can_push(members)) {
        return CALL_BEFORE_RELEASES;
    }
    bool is_released = script == SCRIPT_QUEUE && may_name(rounds, operation->arguments.key);
    return is_released && members_can_push(members) ? CALL_AFTER_RELEASES : CALL_LAST;
}

/* Returns the open call for an operation, or a new one; NULL when out of memory. */
static struct call *find_call(struct rounds *rounds, enum script script, uint32_t nodes,
                              const struct operation *operation) {
    enum call_order order = order_of(rounds, script, operation);
    struct call *call;
    STAILQ_FOREACH(call, &rounds->open, link) {
        /* A call has one script, one set of nodes, one WAIT and one place in the turn. */
        if (call->eval.script == script && call->nodes == nodes &&
            call->replicas == operation->replicas && call->order == order) {
            return call;
        }
    }
    call = call_create(&rounds->calls, script, nodes, operation->replicas, order);
    if (call != NULL) {
        STAILQ_INSERT_TAIL(&rounds->open, call, link);
    }
    return call;
}

static void vote_out_of_memory(const struct rounds *rounds, uint32_t nodes,
                               struct operation *operation) {
    struct node *node;
    while ((node = members_take(rounds->calls.members, &nodes)) != NULL) {
        operation_vote_out_of_memory(operation, node);
    }
}

/* Records what a collected call names, and closes it to further locks when it is full. */
static void collect(struct rounds *rounds, struct call *call, const struct key *key) {
    record_keys(rounds, key);
    if (!call_has_room(rounds, call)) { /* find_call must not find it again */
        STAILQ_REMOVE(&rounds->open, call, call, link);
        STAILQ_INSERT_TAIL(&rounds->full, call, link);
    }
}

/* ---- sending ---- */

static void send_all(struct call_list *list) {
    while (!STAILQ_EMPTY(list)) {
        struct call *call = STAILQ_FIRST(list);
        STAILQ_REMOVE_HEAD(list, link);
        call_send(call);
        call_drop(call);
    }
}

/* Returns whether two calls together are no longer than one may be. */
static bool fit_together(const struct rounds *rounds, const struct call *one,
                         const struct call *other) {
    size_t bytes = script_call_length(&one->arguments) + script_call_length(&other->arguments);
    return !rounds_call_is_full(rounds, one->reads + other->reads, bytes);
}

/* Moves the collected releases into the calls for entries, as far as they fit. */
static void carry_releases(const struct rounds *rounds, struct call_list *askers,
                           struct call_list *first) {
    struct call *call, *releases, *next;
    STAILQ_FOREACH(call, askers, link) {
        for (releases = STAILQ_FIRST(first); releases != NULL; releases = next) {
            /* Read first, because carrying drops the call. */
            next = STAILQ_NEXT(releases, link);
            /* One command instead of two, as long as it stays within the bounds of a call. */
            if (call_may_carry(call, releases) && fit_together(rounds, call, releases)) {
                STAILQ_REMOVE(first, releases, call, link);
                call_carry(call, releases);
            }
        }
    }
}

/* Sorts the collected calls by their positions in the turn. */
static void sort(const struct rounds *rounds, struct call_list *collected,
                 struct call_list lists[CALL_ORDERS]) {
    const struct members *members = rounds->calls.members;
    for (unsigned order = 0; order < CALL_ORDERS; order++) {
        STAILQ_INIT(&lists[order]);
    }
    while (!STAILQ_EMPTY(collected)) {
        struct call *call = STAILQ_FIRST(collected);
        STAILQ_REMOVE_HEAD(collected, link);
        /* A channel may have broken since order_of was asked. */
        bool is_late = call->order == CALL_BEFORE_RELEASES && !members_can_push(members);
        STAILQ_INSERT_TAIL(&lists[is_late ? CALL_LAST : call->order], call, link);
    }
}

void rounds_send(struct rounds *rounds) {
    STAILQ_CONCAT(&rounds->full, &rounds->open);
    if (STAILQ_EMPTY(&rounds->full)) {
        return;
    }
    /* Nothing is collected any more, so no later command has to wait for a call. */
    memset(rounds->keys, 0, sizeof(rounds->keys));
    struct call_list lists[CALL_ORDERS];
    sort(rounds, &rounds->full, lists);
    carry_releases(rounds, &lists[CALL_BEFORE_RELEASES], &lists[CALL_FIRST]);
    carry_releases(rounds, &lists[CALL_AFTER_RELEASES], &lists[CALL_FIRST]);
    for (unsigned order = 0; order < CALL_ORDERS; order++) {
        send_all(&lists[order]); /* a key released in this turn can be taken in it */
    }
}

/*
 * Sends the collected calls if one of them may name the key: a command that takes it goes after its
 * release, or our own old token would deny the key to the new one.
 */
static void send_what_names(struct rounds *rounds, const struct key *key) {
    if (may_name(rounds, key)) {
        rounds_send(rounds);
    }
}

/* Sends a call out of turn, and drops the reference. */
static void send_now(void *owner, struct call *call) {
    struct rounds *rounds = owner;
    for (unsigned i = 0; i < call->count && call_takes(call); i++) {
        send_what_names(rounds, call->operations[i]->arguments.key);
    }
    call_send(call);
    /* Commands are written at the end of a turn, so one must follow. */
    context_wake(rounds->calls.context);
    call_drop(call);
}

/* Adds an operation to a call to `nodes`, members: one of its own, sent now, or one of the turn. */
static void add_to_call(struct rounds *rounds, enum script script, uint32_t nodes,
                        struct operation *operation, bool is_urgent) {
    struct call *call =
        is_urgent ? call_create(&rounds->calls, script, nodes, operation->replicas, CALL_LAST)
                  : find_call(rounds, script, nodes, operation);
    if (call == NULL) {
        vote_out_of_memory(rounds, nodes, operation);
        return;
    }
    call_add(call, operation);
    if (is_urgent) {
        send_now(rounds, call);
    } else {
        collect(rounds, call, operation->arguments.key);
    }
}

void rounds_add(struct rounds *rounds, struct operation *operation) {
    enum script script = operation_script(operation);
    bool takes = operation_is_try(operation);
    EMIT(&rounds->operations.context->events, round_sent, .request = operation->request,
         .key = operation->arguments.key->bytes, .round = operation->round.kind);
    if (!takes && !operation_is_release(operation)) {
        operation_send_beats(operation);
    }
    /* Commands that take the key refresh the nodes' trust, too, and leave duplicates out. */
    uint32_t nodes = takes ? operation_prepare_take(operation) : operation->nodes;
    nodes &= members_all(rounds->calls.members);
    if (script == SCRIPT_NONE) {
        send_what_names(rounds, operation->arguments.key);
        call_send_set(operation, nodes);
    } else {
        /* A top-up restores a held lock; a try that replaces a token goes before its release. */
        bool is_urgent =
            takes && (operation->arguments.step == 0 || operation->order == OPERATION_AT_ONCE);
        add_to_call(rounds, script, nodes, operation, is_urgent);
    }
}
