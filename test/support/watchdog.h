/* Locks that the watchdog renews until they are released or lost. */
#ifndef REDLOCK_TEST_WATCHDOG_H
#define REDLOCK_TEST_WATCHDOG_H

#include "harness.h"

/*
 * Acquires as hold() does, with the watchdog, which renews the lock until its end. The record *loss
 * receives its loss.
 */
redlock_lock *hold_renewed(struct fixture *f, redlock_client *client, const char *key,
                           uint64_t ttl_ms, struct loss **loss);

/*
 * Advances the clock by 1/3 of the TTL, after which the watchdog renews, and waits for the renewal.
 */
void pass_renewal(struct fixture *f, const redlock_lock *lock, uint64_t ttl_ms);

/* Advances the clock as pass_until does until the loss is reported; returns its status. */
redlock_status pass_until_lost(struct fixture *f, redlock_client *client, uint32_t silent,
                               uint64_t step_ms, struct loss *loss);

#endif
