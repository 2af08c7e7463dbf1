/*
 * The happy path: a message names a token, which waiters.h finds the lock of; the lock's round
 * counts the grant as the node's vote. Messages about permits name an entry instead: they grant
 * nothing, and the lock asks for the permit.
 *
 * Failures: if no lock waits under the token any more, the key goes back to the node by a release,
 * so that the next waiter gets it before the reservation is over.
 */
#include "lock/pushes.h"

#include "base/nanos.h"
#include "core/options.h"
#include "io/clock.h"
#include "node/node.h"
#include "round/release.h"
#include "wire/push.h"

#include <string.h>

/* The most keys given back to one node in a second: a broken node may push without end. */
#define BACK_MAX 1024

/* Returns whether one more key may be given back to a node now, and counts it. */
static bool may_give_back(struct locks *locks, const struct node *node, uint64_t now) {
    struct locks_back *back = &locks->back[node->index];
    if (nanos_sub(now, back->since) >= 1000 * NANOS_PER_MS) { /* a new second begins */
        *back = (struct locks_back){.since = now};
    }
    return back->count++ < BACK_MAX;
}

/* Returns all keys of a message, linked; NULL when out of memory. */
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
 * Gives back pushed keys or, if `ticket` is not 0, the entry of a waiter that was offered a permit.
 * Without memory, or beyond BACK_MAX, these become free when the reservation is over.
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
    /* The kind decides which script gives them back. */
    unsigned features = ticket != 0 ? KIND_PERMIT : push->is_share ? KIND_READER : 0;
    const struct release release = {.kind = kind_of(features),
                                    .key = key,
                                    .token = token,
                                    .ticket = ticket,
                                    .until = nanos_add(now, nanos_from_ms(OPTIONS_RESERVATION_MS))};
    release_send(locks->rounds, OPERATION_UNATTENDED, &release, node_bit(node), now);
    context_wake(locks->context);
    key_drop(key);
}

/* Returns whether a message is for an entry in a semaphore's queue, not for a token. */
static bool is_for_entry(const struct push *push) {
    bool is_entry = push->expires_ms == 0;
    for (unsigned i = ENTRY_ID_LENGTH; i < TOKEN_LENGTH; i++) {
        is_entry &= push->token[i] == '0';
    }
    return is_entry;
}

/* Returns whether the lock has its permit without the node, so that the entry there is useless. */
static bool is_done_with(const redlock_lock *lock, const struct node *node) {
    return lease_is_held(&lock->lease) && lock->operation != NULL &&
           lock->operation->round.votes[node->index] == REDLOCK_VOTE_DENIED;
}

/*
 * Trust: a grant counts only after a recent heartbeat, and a client that waits for long sends none
 * without a poll (MEMBERS_ALERT). After an older one a push is like a change of the key: the lock
 * asks again, after a heartbeat, when the nodes that have pushed can make a quorum. Returns whether
 * the push was handled so.
 */
static bool is_taken_as_change(redlock_lock *lock, const struct node *node) {
    bool is_stale = guard_judge_push(&node->guard).fault == TRUST_STALE;
    if (is_stale) {
        locks_key_changed(lock, node_bit(node));
    }
    return is_stale;
}

/* Handles the message that a permit has come free, or that permits are open to all for a time. */
static void take_permit(struct locks *locks, struct node *node, const struct push *push) {
    redlock_lock *lock = waiters_find(&locks->waiters, push->token, ENTRY_ID_LENGTH);
    uint32_t permit;
    if (push->open_ms > 0) { /* open to all: the waiter asks again afterwards */
        if (lock != NULL && lock->operation != NULL) {
            operation_record_open(lock->operation, node, push->open_ms);
        }
    } else if (lock == NULL || is_done_with(lock, node)) {
        /* Permits: a reserved one that no lock needs goes to the next waiter now. */
        give_back(locks, node, push, 1); /* any ticket: an entry with an offer is found without */
    } else if (lock->operation != NULL && lock->wait->name != NULL &&
               key_read_permit(lock->wait->name, push->key, push->key_length,
                               lock->lease.terms->permits, &permit) &&
               !is_taken_as_change(lock, node)) {
        operation_record_permit(lock->operation, node, permit);
    }
}

void pushes_take(struct locks *locks, struct node *node, const char *text, size_t length) {
    struct push push;
    if (!push_read(text, length, &push)) {
        return;
    }
    if (is_for_entry(&push)) { /* permits: no key is granted yet */
        take_permit(locks, node, &push);
        return;
    }
    redlock_lock *lock = waiters_find(&locks->waiters, push.token, TOKEN_LENGTH);
    struct operation *operation = lock != NULL ? lock->operation : NULL;
    bool is_given = push.expires_ms > 0;
    if (lock == NULL && is_given) { /* the next waiter should not wait for the reservation's end */
        give_back(locks, node, &push, 0);
    } else if (operation != NULL && is_given) {
        /* Trust: the grant is a vote like any other, and counts only from a trusted node. */
        locks->counts.pushes++;
        if (!is_taken_as_change(lock, node)) {
            operation_push(operation, node, &push);
        }
    } else if (operation != NULL) { /* the key is open to all: the waiter asks again afterwards */
        operation_record_open(operation, node, push.open_ms);
    }
}
