/* The steps of most scenarios. After a failure a step returns its outcome or does nothing. */
#ifndef REDLOCK_TORTURE_STEPS_H
#define REDLOCK_TORTURE_STEPS_H

#include "app.h"
#include "faults.h"
#include "masters.h"
#include "world.h"

#include <redlock.h>
#include <stdbool.h>

/* The key of most scenarios. */
#define KEY "orders:42"

/* Masks of masters: without FIRST there is a quorum, without FIRST_TWO there is none. */
#define FIRST 1u
#define FIRST_TWO 3u

/* Asserts the outcome of a scenario in which nothing has failed. */
#define EXPECT(condition) CHECK(faults_struck() > 0 || (condition))

/* Makes a client, and connects it to all nodes. Returns false when it was refused. */
bool open_connected(struct app *app);
void wait_connected(struct app *app);

/* Turns until every pending callback has come. */
void wait_idle(struct app *app);

/* Acquires, and waits for the end of the acquisition. Returns NULL when the lock is not held. */
struct hold *hold_for(struct app *app, const redlock_request *request);
struct hold *hold_key(struct app *app, const char *key);

/* Makes a connected client that holds KEY. Returns NULL when that has failed. */
struct hold *begin_held(struct app *app);

/* Begins to acquire KEY, without a limit of the wait. Returns NULL when refused. */
struct hold *begin(struct app *app);

/* Acquires, and expects the status; releases a lock that was acquired contrary to expectation. */
void acquire_in_vain(struct app *app, const redlock_request *request, redlock_status expected);
void try_in_vain(struct app *app, redlock_status expected);

/* Returns whether the lock can still be released. */
bool is_ours(const struct hold *hold);

/* Releases a lock, if it is ours, and waits for the end of the release. */
void let_go(struct hold *hold);

void wait_lost(const struct hold *hold);

bool is_closed(const void *app); /* for world_wait */
void close_and_wait(struct app *app);

/* Turns until `count` SETs and scripts have arrived; after a failure only for a while. */
void wait_asked(unsigned count);

/* Turns until no master has KEY, unless the application was notified that a master keeps it. */
void wait_free(const struct app *app);

#endif
