/*
 * The wait queues at the masters, read directly, without the library. Masters that were killed or
 * frozen are skipped.
 */
#ifndef REDLOCK_TEST_WAIT_QUEUE_H
#define REDLOCK_TEST_WAIT_QUEUE_H

#include "harness.h"

/* Returns a request with a long TTL and a watchdog that waits in the queue forever. */
redlock_request waiting_request(const char *key);

/* Returns such a request of a mode, for one of `permits` permits; 0: for the key itself. */
redlock_request waiting_request_of(const char *key, redlock_mode mode, uint32_t permits);

/*
 * Holds a lock as hold_for does, whose release reserves the key for waiters. By the last digits of
 * the token, 1 of 128 releases leaves the key to anybody for a while instead.
 */
redlock_lock *hold_for_waiters(struct fixture *f, redlock_client *client,
                               const redlock_request *request);

/* Does the same for a lock whose release leaves the key to anybody for a while. */
redlock_lock *hold_for_anybody(struct fixture *f, redlock_client *client,
                               const redlock_request *request);

/* Runs the loop until each master has `length` waiters in the key's queue. */
void wait_in_queue(struct fixture *f, const char *key, long long length);

/*
 * Runs the loop until each master from `from` on has `count` waiters in the key's queue that a
 * message would reach: their clients subscribe to the channels of their entries.
 */
void wait_listening(struct fixture *f, const char *key, size_t from, long long count);

/* Waits for the lock of a call and releases it; asserts that both succeed. */
void take_turn(struct fixture *f, struct call *call);

/*
 * Releases the lock; asserts that the calls then acquire theirs one after the other, in this order.
 */
void take_turns(struct fixture *f, redlock_lock *lock, struct call *const *calls, size_t count);

/* Runs the loop until no master has a waiter or a holder left. */
void wait_queue_empty(struct fixture *f, const char *key);

/*
 * Returns the number of waiters in the key's queue at a master: its entries, whose scores are
 * tickets.
 */
long long waiters_at(struct fixture *f, size_t master, const char *key);

/* Returns the clock of a master in ms. */
long long clock_at(struct fixture *f, size_t master);

/* Returns when the key expires by the clock of a master, in ms; 0: the key does not exist. */
long long expiry_at(struct fixture *f, size_t master, const char *key);

/*
 * Puts waiters that belong to no client at the front of the key's queue at each master: of a form,
 * on a channel, with a reservation in ms.
 */
void put_ghosts(struct fixture *f, const char *key, size_t count, char form, const char *channel,
                unsigned reservation_ms);

/* Subscribes a stranger at all masters, by a command, until the end of the test. */
void eavesdrop(struct fixture *f, const char *command);

/* Returns the channel of the first waiter in a master's queue; NULL: none. The caller frees it. */
char *first_channel(struct fixture *f, size_t master, const char *key);

/*
 * Advances the clock until master 0 has been asked twice or more for the entry of the only waiter,
 * one of the client's. Asserts that the waiter takes nothing there.
 */
void pass_polls(struct fixture *f, redlock_client *client);

#endif
