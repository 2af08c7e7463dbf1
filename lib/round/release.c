/*
 * The happy path: release_retry takes pending releases from the front, and makes each an operation;
 * many share the calls of release scripts. Each vote is reported to the node (node_retried), which
 * sends the rest after the last one. The budget keeps half of the node's room free for locks, and
 * the turn short.
 *
 * Failures: a release that fails again becomes a pending release again (operation.c), and so does
 * one without memory for its operation. If the first release is longer than half of the room, it is
 * sent alone, so that it does not block the others.
 */
#include "round/release.h"

#include "io/clock.h"
#include "wire/command.h"

#include <string.h>

void release_defer(const struct rounds *rounds, const struct release *release, uint32_t nodes) {
    const struct members *members = rounds->operations.members;
    uint32_t rest = nodes & members_all(members);
    struct node *node;
    while ((node = members_take(members, &rest)) != NULL) {
        node_defer_release(node, release);
    }
}

bool release_send(struct rounds *rounds, struct operation_listener listener,
                  const struct release *release, uint32_t nodes, uint64_t now) {
    struct operation *operation =
        operation_create(&rounds->operations, release->kind, release->key, release->token, 0);
    if (operation == NULL) { /* nothing would report a failure, so it is pending at all nodes */
        release_defer(rounds, release, nodes);
        return false;
    }
    operation->listener = listener;
    operation->request = release->request;
    operation->nodes = nodes;
    operation_begin(operation, ROUND_DIAGNOSE, now, 0, 0);
    operation_set_release(operation, nodes, release->ticket, release->until, release->stay_until);
    rounds_add(rounds, operation);
    operation_drop(operation);
    return true;
}

/* ---- pending releases ---- */

/* The most calls in one round of retries, so that the turn is short. */
#define RETRY_CALLS_MAX 64

/* An upper bound on the bytes of one key's release, its names not included: token and headers. */
#define RELEASE_BYTES 128

/* The calls and bytes that may still be sent, and the size of the last call of each script. */
struct retry_budget {
    uint32_t calls;
    size_t bytes;
    struct {
        unsigned keys;
        size_t bytes;
    } last[SCRIPT_COUNT];
};

/* Begins a budget of half of the free room; the rest is for locks. */
static void budget_init(struct retry_budget *budget, const struct node *node) {
    /* Rounded up for calls, so that one release can be sent even if the room is one command. */
    struct node_room room = node_room(node);
    *budget = (struct retry_budget){.calls = room.commands / 2 + room.commands % 2,
                                    .bytes = room.bytes / 2};
    if (budget->calls > RETRY_CALLS_MAX) {
        budget->calls = RETRY_CALLS_MAX;
    }
}

/* Returns an upper bound on the bytes that the release of a list of keys adds to a call. */
static size_t length_of(const struct rounds *rounds, enum script script, const struct key *first) {
    size_t owner = strlen(rounds->operations.context->owner);
    size_t length = 0;
    for (const struct key *key = first; key != NULL; key = key->next) {
        length += script_names(script) * (size_t)key->length + RELEASE_BYTES + owner;
    }
    return length;
}

/* Adds a release to the budget. Returns false if it exceeds the calls or bytes left. */
static bool budget_takes(struct retry_budget *budget, const struct rounds *rounds,
                         enum script script, const struct key *key) {
    unsigned keys = budget->last[script].keys;
    size_t bytes = budget->last[script].bytes;
    size_t length = length_of(rounds, script, key);
    /* Releases of one script share a call until it is full (rounds_add). */
    bool is_new_call = keys == 0 || rounds_call_is_full(rounds, keys, bytes);
    if ((is_new_call && budget->calls == 0) || length > budget->bytes) {
        return false;
    }
    budget->calls -= is_new_call;
    budget->bytes -= length;
    budget->last[script].keys = is_new_call ? key->count : keys + key->count;
    budget->last[script].bytes = is_new_call ? length : bytes + length;
    return true;
}

static void on_vote(void *owner, bool decided, redlock_vote vote) {
    (void)decided;
    node_retried(owner, vote);
}

static void retry_first(struct rounds *rounds, struct node *node, uint64_t now) {
    const struct release *release = &STAILQ_FIRST(&node->pending.list)->release;
    struct operation_listener listener = {.owner = node, .on_vote = on_vote};
    node->retries++;
    if (!release_send(rounds, listener, release, node_bit(node), now)) {
        node->retries--; /* no vote follows: the release is pending again, at the end of the list */
    }
    pending_releases_drop_first(&node->pending);
}

void release_retry(struct rounds *rounds, struct node *node) {
    uint64_t now = clock_now();
    struct retry_budget budget;
    bool has_room = true;
    budget_init(&budget, node);
    bool is_first = budget.calls > 0; /* a release longer than half of the room is sent alone */
    while (has_room && node->pending.count > 0) {
        const struct release *release = &STAILQ_FIRST(&node->pending.list)->release;
        enum script script =
            operation_release_script(release->kind, release->ticket, release->stay_until, now);
        if (release->until <= now) { /* the key has expired: nothing is left to release */
            pending_releases_drop_first(&node->pending);
        } else if (budget_takes(&budget, rounds, script, release->key) || is_first) {
            retry_first(rounds, node, now);
            is_first = false;
        } else {
            has_room = false;
        }
    }
    context_wake(rounds->operations.context);
}
