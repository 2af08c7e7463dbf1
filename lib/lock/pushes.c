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

/* Returns all keys of a message; NULL when out of memory. */
static struct key *keys_of(struct locks *locks, const struct push *push) {
    struct push rest = *push;
    struct key *first = key_create(&locks->context->keys, push->key, push->key_length);
    while (first != NULL && push_next_key(&rest)) {
        if (!key_append(first, rest.key, rest.key_length)) {
            key_drop(first);
            first = NULL;
        }
    }
    return first;
}

/*
 * Gives back keys that were pushed, or with a ticket the entry of a waiter that was told of a
 * permit. Without memory, or beyond the bound, they are free when the reservation is over.
 */
static void give_back(struct locks *locks, const struct node *node, const struct push *push,
                      uint64_t ticket) {
    char token[TOKEN_LENGTH + 1];
    uint64_t now = clock_now();
    struct key *key = may_give_back(locks, node, now) ? keys_of(locks, push) : NULL;
    if (key == NULL) {
        return;
    }
    locks->counts.pushes_returned++;
    memcpy(token, push->token, TOKEN_LENGTH);
    token[TOKEN_LENGTH] = '\0';
    unsigned features = ticket != 0 ? KIND_PERMIT : push->is_share ? KIND_READER : 0;
    const struct release release = {.kind = kind_of(features),
                                    .key = key,
                                    .token = token,
                                    .ticket = ticket,
                                    .until = nanos_add(now, nanos_from_ms(OPTIONS_RESERVATION_MS))};
    round_send_release(locks->rounds, FLIGHT_UNATTENDED, &release, node_bit(node), now);
    context_wake(locks->context);
    key_drop(key);
}

/* Returns whether the message is for an entry in the line of a semaphore, not for a token. */
static bool is_for_entry(const struct push *push) {
    bool is_entry = push->expires_ms == 0;
    for (unsigned i = ENTRY_ID_LENGTH; i < TOKEN_LENGTH; i++) {
        is_entry &= push->token[i] == '0';
    }
    return is_entry;
}

/* Returns whether the lock has its permit, but not from the node: the place there is of no use. */
static bool is_done_with(const redlock_lock *lock, const struct node *node) {
    return lease_is_held(&lock->lease) && lock->flight != NULL &&
           lock->flight->round.votes[node->index] == REDLOCK_VOTE_DENIED;
}

/* Takes the message that a permit has come free, or that permits are left to anybody for a time. */
static void take_permit(struct locks *locks, struct node *node, const struct push *push) {
    const redlock_lock *lock = waiters_find(&locks->waiters, push->token, ENTRY_ID_LENGTH);
    uint32_t permit;
    if (push->open_ms > 0) {
        if (lock != NULL && lock->flight != NULL) {
            flight_record_open(lock->flight, node, push->open_ms);
        }
    } else if (lock == NULL || is_done_with(lock, node)) {
        give_back(locks, node, push, 1); /* told entries are found without their ticket */
    } else if (lock->flight != NULL && lock->wait->name != NULL &&
               key_read_permit(lock->wait->name, push->key, push->key_length,
                               lock->lease.terms->permits, &permit)) {
        flight_record_permit(lock->flight, node, permit);
    }
}

void pushes_take(struct locks *locks, struct node *node, const char *text, size_t length) {
    struct push push;
    if (!push_read(text, length, &push)) {
        return;
    }
    if (is_for_entry(&push)) {
        take_permit(locks, node, &push);
        return;
    }
    const redlock_lock *lock = waiters_find(&locks->waiters, push.token, TOKEN_LENGTH);
    struct flight *flight = lock != NULL ? lock->flight : NULL;
    bool is_given = push.expires_ms > 0;
    if (lock == NULL && is_given) {
        give_back(locks, node, &push, 0);
    } else if (flight != NULL && is_given) {
        locks->counts.pushes++;
        flight_push(flight, node, &push);
    } else if (flight != NULL) {
        flight_record_open(flight, node, push.open_ms);
    }
}
