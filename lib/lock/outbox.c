/*
 * The happy path: outbox_send prepares a try (its key, token and ticket), fills an
 * operation, makes it the lock's latest one and sends it. Each vote that may change the lease's
 * decisions becomes an event of the lock.
 *
 * Failures: without memory for an operation nothing is sent, and the lease is notified. A release
 * without memory becomes a pending release of its nodes (round/release.h). A top-up for which a
 * node has no room waits for it; without memory or a connection it is omitted, since the next
 * renewal finds the key missing again.
 */
#include "lock/outbox.h"

#include "base/nanos.h"
#include "io/clock.h"
#include "io/random.h"
#include "round/release.h"
#include "wire/fence.h"

#include <string.h>

/* ---- votes ---- */

void outbox_rest(redlock_lock *lock) {
    const struct operation *operation = lock->operation;
    /* Still needed for: votes to come, a report with details, or the watches (has_changed). */
    if (operation == NULL || operation->round.silent != 0 || operation->details != NULL ||
        lock->lease.terms->watches) {
        return;
    }
    const struct round *round = &operation->round;
    uint32_t granted = round_voters(round, REDLOCK_VOTE_GRANTED);
    uint32_t unsent = round_unsent(round);
    /* Only if each node granted or was not sent the command, two masks say all of the votes. */
    if (round->verdict == ROUND_YES && (granted | unsent) == round->members) {
        lock->granted = granted;
        lock->unsent = unsent;
        lock->was_renewed = round->kind == ROUND_RENEW;
        locks_let_go(&lock->operation);
    }
}

/* Raises the event of a vote, if any. Kept out of on_vote, which runs often. */
static __attribute__((noinline)) void heed_vote(redlock_lock *lock, bool decided,
                                                redlock_vote vote) {
    if (decided) { /* a round is decided once; later votes may still need an event */
        locks_raise(lock, LOCK_DECIDED);
    } else if (lease_heeds(&lock->operation->round, vote)) {
        locks_raise(lock, LOCK_LATE_VOTE);
    }
    if (lock->operation->unwatched != 0) {
        locks_raise(lock, LOCK_UNWATCHED);
    }
    if (lock->lease.state == LEASE_HELD && lock->events == 0) {
        outbox_rest(lock);
    }
}

static void on_vote(void *owner, bool decided, redlock_vote vote) {
    redlock_lock *lock = owner;
    /* Most votes are plain grants that change nothing yet; a lock that is held may rest. */
    bool is_plain = vote == REDLOCK_VOTE_GRANTED && round_is_plain(&lock->operation->round);
    if (decided || !is_plain || lock->lease.state == LEASE_HELD) {
        heed_vote(lock, decided, vote);
    }
}

/* ---- filling ---- */

/* Changes the key to that of the permit to try, if any. Returns false when out of memory. */
static bool change_key(redlock_lock *lock) {
    struct lock_wait *wait = lock->wait;
    uint32_t permit = lock->lease.permit;
    /* No permit, or the key is that permit's already (before the first try it is the name). */
    if (wait == NULL || wait->name == NULL || (lock->key != wait->name && wait->permit == permit)) {
        return true;
    }
    struct key *key = key_create_permit(&lock->locks->context->keys, wait->name, permit);
    if (key != NULL) {
        key_drop(lock->key);
        lock->key = key;
        wait->permit = permit;
    }
    return key != NULL;
}

uint64_t outbox_entry_ticket(const redlock_lock *lock) {
    return lock->wait != NULL ? lock->wait->entry_ticket : 0;
}

/* Creates an operation for a key of the lock, as operation_create does. NULL: out of memory. */
static struct operation *create_operation(const redlock_lock *lock, struct key *key,
                                          const char *token, uint32_t permits) {
    struct operation *operation =
        operation_create(&lock->locks->rounds->operations, lock_kind(lock), key, token, permits);
    if (operation != NULL) {
        operation->request = lock->request;
        operation->nodes = members_all(lock->locks->members);
        operation->arguments.fence = lock->lease.fence;
    }
    return operation;
}

/* Returns the time for which nodes keep the key: the TTL and the lock delay. */
static uint64_t node_ttl_ms(const redlock_lock *lock, uint64_t ttl) {
    return nanos_to_ms(nanos_add(ttl, lock->lease.terms->lock_delay));
}

/* Fills in what a try needs beyond other commands. */
static void fill_try(const redlock_lock *lock, const struct lease_update *update,
                     struct operation *operation) {
    const struct lease_terms *terms = lock->lease.terms;
    uint64_t now = operation->round.start;
    operation->arguments.step = 1;
    if (operation->kind->features & KIND_WRITER) { /* readers make room until its next try */
        operation->arguments.intent_ms = nanos_to_ms(lease_next_try_within(&lock->lease, now));
    }
    if (update->round == ROUND_QUEUE) {
        operation->arguments.reservation_ms = nanos_to_ms(terms->reservation);
        operation->arguments.ticket = lock->wait->ticket;
        operation->arguments.ttl_ms = update->enters_only ? 0 : operation->arguments.ttl_ms;
        /*
         * Wait queue: a new token gets its entry before the release of the old one, a new leader
         * before the release that pushes to it. Any other QUEUE may get what this turn releases.
         */
        operation->order = update->undo != 0        ? OPERATION_AT_ONCE
                           : update->before_release ? OPERATION_BEFORE_RELEASES
                                                    : OPERATION_AFTER_RELEASES;
    } else if (terms->fenced) { /* Fence: a counter that a node lost restarts above this */
        operation->arguments.fence = members_fence_from_clock(lock->locks->members, now);
    }
}

/* Begins the round of an update, and fills in what its command needs. */
static void begin_operation(const redlock_lock *lock, const struct lease_update *update,
                            uint64_t now, struct operation *operation) {
    const struct lease *lease = &lock->lease;
    operation_begin(operation, update->round, now, update->ttl, update->awaited);
    operation->arguments.ttl_ms = node_ttl_ms(lock, update->ttl);
    operation->round.usable_until = update->usable_until;
    if (operation_is_release(operation)) { /* of the lock, or of a failed try by DIAGNOSE */
        operation_set_release(operation, lease->may_hold, outbox_entry_ticket(lock),
                              nanos_add(now, lease->longest_ttl),
                              update->round == ROUND_RELEASE ? lease->holding.stay_until : 0);
    } else {
        operation->replicas = lease->terms->replicas;
    }
    if (operation_is_try(operation)) {
        fill_try(lock, update, operation);
    }
}

/* ---- tries ---- */

void outbox_draw_ticket(redlock_lock *lock) {
    struct lock_wait *wait = lock->wait;
    uint64_t now = clock_now();
    bool is_due = wait->ticket == 0 || wait->is_makeshift;
    uint64_t masters_us = is_due ? members_clock_us(lock->locks->members, now) : 0;
    if (!is_due || (wait->ticket != 0 && masters_us == 0)) { /* none better can be drawn */
        return;
    }
    /* Wait queue: the order is by arrival, so the ticket is the time at which the request began. */
    uint64_t waited_us = (now - lock->lease.begun_at) / NANOS_PER_US;
    uint64_t time_us = masters_us != 0 ? masters_us : clock_wall_us();
    wait->is_makeshift = masters_us == 0;
    wait->ticket = fence_from_clock(time_us > waited_us ? time_us - waited_us : 0);
}

/* Returns whether a QUEUE, up to the latest round, may have left an entry for the token. */
static bool was_queued(const redlock_lock *lock) {
    return lock->wait->may_be_queued || lock->operation->asks_for_entry;
}

/* Draws the token of a try. If the entry stays, the digits that identify it stay, too. */
static void draw_token(redlock_lock *lock, bool keeps_entry) {
    unsigned char entry_id[ENTRY_ID_BYTES];
    memcpy(entry_id, lock->token, sizeof(entry_id));
    random_token(&lock->locks->context->random, lock->token);
    if (keeps_entry) {
        memcpy(lock->token, entry_id, sizeof(entry_id));
    }
}

/* Prepares a QUEUE under the token of the latest try. */
static void prepare_again(redlock_lock *lock) {
    lock->wait->may_be_queued = was_queued(lock);
    if (!lock->wait->may_be_queued) { /* no channel was ready: without an entry it may change */
        outbox_draw_ticket(lock);
        lock->wait->entry_ticket = lock->wait->ticket;
    }
}

/* Prepares a try that asks for a queue entry. Returns false when out of memory. */
static bool prepare_entry(redlock_lock *lock) {
    if (!lock->wait->may_be_queued) { /* the ticket of an entry that may exist must not change */
        outbox_draw_ticket(lock);
    }
    lock->wait->entry_ticket = lock->wait->ticket;
    locks_listen(lock);
    return waiters_add(&lock->locks->waiters, lock);
}

/* Prepares the key and the token of a try. Returns false when out of memory. */
static bool prepare_try(redlock_lock *lock, const struct lease_update *update) {
    struct lock_wait *wait = lock->wait;
    if (update->keeps_token) { /* the entry is asked for again: not a new try */
        prepare_again(lock);
        return true;
    }
    if (!change_key(lock)) {
        return false;
    }
    lock->locks->counts.tries++;
    waiters_remove(&lock->locks->waiters, lock); /* before the token, its hash key, changes */
    draw_token(lock, update->keeps_entry);
    if (wait != NULL) {
        wait->entry_ticket = 0;
        wait->may_be_queued = update->keeps_entry && was_queued(lock);
    }
    return update->round == ROUND_ACQUIRE || prepare_entry(lock);
}

/* ---- sending ---- */

/* Returns the release of one of the lock's tokens. */
static struct release release_of(const redlock_lock *lock, struct key *key, const char *token,
                                 uint64_t entry_ticket, uint64_t now) {
    return (struct release){.kind = lock_kind(lock),
                            .request = lock->request,
                            .key = key,
                            .token = token,
                            .ticket = entry_ticket,
                            .until = nanos_add(now, lock->lease.longest_ttl)};
}

/* Makes an operation the lock's latest one, and drops the events of the one before. */
static void adopt_operation(redlock_lock *lock, struct operation *operation) {
    operation->listener = (struct operation_listener){on_vote, lock};
    /* After a DIAGNOSE, the report needs the failed try's votes, too. */
    if (operation->round.kind == ROUND_DIAGNOSE) {
        lock->operation->listener = OPERATION_UNATTENDED;
        operation->tried = lock->operation;
    } else {
        locks_let_go(&lock->operation);
    }
    lock->operation = operation;
    lock->events &= (uint16_t) ~(LOCK_DECIDED | LOCK_LATE_VOTE | LOCK_NO_MEMORY);
    locks_record_sent(lock);
}

/* Returns the operation of an update, prepared and begun; NULL when out of memory. */
static struct operation *next_operation(redlock_lock *lock, const struct lease_update *update,
                                        uint64_t now) {
    bool is_try = update->round == ROUND_ACQUIRE || update->round == ROUND_QUEUE;
    char unpacked[TOKEN_LENGTH + 1];
    const char *token = unpacked;
    if (is_try && !prepare_try(lock, update)) {
        return NULL;
    }
    struct key *key = lock->key;
    if (lock->operation != NULL && !is_try) {
        /* Of the try that was sent: one for another permit may have failed for lack of memory. */
        key = lock->operation->arguments.key;
        token = lock->operation->arguments.value;
    } else {
        token_unpack(unpacked, lock->token);
    }
    struct operation *operation =
        create_operation(lock, key, token, is_try ? lock->lease.terms->permits : 0);
    if (operation != NULL) {
        begin_operation(lock, update, now, operation);
    }
    return operation;
}

/* Keeps a release of the lock that there was no memory to send pending at the nodes. */
static void defer_release(const redlock_lock *lock, uint64_t now) {
    char token[TOKEN_LENGTH + 1];
    token_unpack(token, lock->token);
    struct release release = release_of(lock, lock->key, token, outbox_entry_ticket(lock), now);
    release.stay_until = lock->lease.holding.stay_until;
    release_defer(lock->locks->rounds, &release, lock->lease.may_hold);
}

void outbox_send(redlock_lock *lock, const struct lease_update *update, uint64_t now) {
    if (!update->send) {
        return;
    }
    struct operation *operation = next_operation(lock, update, now);
    if (operation == NULL) {
        if (update->round == ROUND_RELEASE) {
            defer_release(lock, now);
        }
        locks_raise(lock, LOCK_NO_MEMORY);
        return;
    }
    if (update->keeps_token) {
        /* The call of the ask before, if still collected in this turn, is left out. */
        lock->operation->is_void = true;
    }
    adopt_operation(lock, operation);
    rounds_add(lock->locks->rounds, operation);
}

/* Sends a top-up. Returns a mask of the nodes that it was not sent to for want of room. */
static uint32_t send_top_up(const redlock_lock *lock, const struct lease_update *update,
                            uint32_t nodes, uint64_t now) {
    char token[TOKEN_LENGTH + 1];
    token_unpack(token, lock->token);
    struct operation *operation = create_operation(lock, lock->key, token, 0);
    if (operation == NULL) {
        return 0;
    }
    operation_begin(operation, ROUND_ACQUIRE, now, update->top_up_ttl, 0);
    operation->arguments.ttl_ms = node_ttl_ms(lock, update->top_up_ttl);
    operation->nodes = nodes;
    rounds_add(lock->locks->rounds, operation);
    uint32_t unsent = round_unsent(&operation->round) & nodes;
    operation_drop(operation);
    return members_without_room(lock->locks->members, unsent);
}

void outbox_top_up(redlock_lock *lock, const struct lease_update *update, uint64_t now) {
    if (update->top_up_ttl < NANOS_PER_MS) { /* expiries are in ms, and 0 would be an error */
        return;
    }
    /* Top-ups of a node are sent in their order, so a new one goes after those that wait. */
    uint32_t waiting = update->top_up_has_room ? 0 : locks_awaited(lock->locks, update->top_up);
    uint32_t nodes = update->top_up & ~waiting;
    if (nodes != 0) {
        waiting |= send_top_up(lock, update, nodes, now);
    }
    lease_await_room(&lock->lease, waiting);
}

void outbox_undo(redlock_lock *lock, struct key *key, const char *token, uint64_t entry_ticket,
                 uint32_t nodes, uint64_t now) {
    const struct release release = release_of(lock, key, token, entry_ticket, now);
    release_send(lock->locks->rounds, OPERATION_UNATTENDED, &release, nodes, now);
}

void outbox_leave_queue(redlock_lock *lock, uint64_t now) {
    char token[TOKEN_LENGTH + 1];
    token_unpack(token, lock->token);
    /* The first digits find the entry; with zeros after them the token matches no key. */
    memset(token + ENTRY_ID_LENGTH, '0', TOKEN_LENGTH - ENTRY_ID_LENGTH);
    outbox_undo(lock, lock->key, token, lock->wait->entry_ticket, lock->lease.may_hold, now);
}
