#include "lock/pushes.h"

#include "base/nanos.h"
#include "core/options.h"
#include "io/clock.h"
#include "node/node.h"
#include "round/send.h"
#include "wire/push.h"

#include <string.h>

/* The keys that are given back to one node in a second: a broken one may push without end. */
#define BACK_MAX 1024

/* Returns whether one more key may be given back to a node now, and counts it. */
static bool may_give_back(struct locks *locks, const struct node *node, uint64_t now) {
    struct locks_back *back = &locks->back[node->index];
    if (nanos_sub(now, back->since) >= 1000 * NANOS_PER_MS) {
        *back = (struct locks_back){.since = now};
    }
    return back->count++ < BACK_MAX;
}

/* Gives a key back. Without memory, or beyond the bound, it is free when the claim is over. */
static void pass_on(struct locks *locks, const struct node *node, const struct push *push) {
    char token[TOKEN_LENGTH + 1];
    uint64_t now = clock_now();
    struct key *key = may_give_back(locks, node, now)
                          ? key_create(&locks->context->keys, push->key, push->key_length)
                          : NULL;
    if (key == NULL) {
        return;
    }
    memcpy(token, push->token, TOKEN_LENGTH);
    token[TOKEN_LENGTH] = '\0';
    const struct owed owed = {.kind = kind_of(0),
                              .key = key,
                              .token = token,
                              .until = nanos_add(now, nanos_from_ms(OPTIONS_CLAIM_MS))};
    round_send_release(locks->rounds, FLIGHT_UNATTENDED, &owed, node_bit(node), now);
    context_wake(locks->context);
    key_drop(key);
}

void pushes_take(struct locks *locks, struct node *node, const char *text, size_t length) {
    struct push push;
    if (!push_read(text, length, &push)) {
        return;
    }
    const redlock_lock *lock = waiters_find(&locks->waiters, push.token);
    struct flight *flight = lock != NULL ? lock->flight : NULL;
    bool is_given = push.expires_ms > 0;
    if (lock == NULL && is_given) {
        pass_on(locks, node, &push);
    } else if (flight != NULL && is_given) {
        flight_push(flight, node, &push);
    } else if (flight != NULL) {
        flight_note_open(flight, node, push.open_ms);
    }
}
