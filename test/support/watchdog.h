/* Locks that the watchdog renews until they are released or lost. */
#ifndef REDLOCK_TEST_WATCHDOG_H
#define REDLOCK_TEST_WATCHDOG_H

#include "harness.h"

/*
 * Acquires as hold() does, with the watchdog, which lengthens the lock until its end; the news of
 * its loss will go into the record *loss.
 */
redlock_lock *hold_renewed(struct fixture *f, redlock_client *client, const char *key,
                           uint64_t ttl_ms, struct loss **loss);

/* Lets a third of the TTL pass, after which the watchdog renews, and waits for the renewal. */
void pass_renewal(struct fixture *f, const redlock_lock *lock, uint64_t ttl_ms);

/* Lets time pass, as pass_until does, until the loss is told; returns its status. */
redlock_status pass_until_lost(struct fixture *f, redlock_client *client, uint32_t silent,
                               uint64_t step_ms, struct loss *loss);

#endif
