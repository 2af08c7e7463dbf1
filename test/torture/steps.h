/*
 * The steps of most scenarios. Each step tolerates a failure, and then returns its outcome or does
 * nothing.
 */
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

/* A client with all nodes connected; false when it was refused. */
bool open_connected(struct app *app);
void wait_connected(struct app *app);

/* Turns until every callback that is due has come. */
void wait_idle(struct app *app);

/* Acquires, and waits for the end of it: NULL when it is not held. */
struct hold *hold_for(struct app *app, const redlock_request *request);
struct hold *hold_key(struct app *app, const char *key);

/* A connected client that holds KEY; NULL when it did not come to that. */
struct hold *begin_held(struct app *app);

/* Begins to acquire KEY, however long it takes; NULL when it was refused. */
struct hold *begin(struct app *app);

/* Acquires, expecting to end like this; gives back what is held against all expectation. */
void acquire_in_vain(struct app *app, const redlock_request *request, redlock_status expected);
void try_in_vain(struct app *app, redlock_status expected);

/* Whether the lock can still be given back. */
bool is_ours(const struct hold *hold);

/* Releases it, if it is ours, and waits for the end of it. */
void let_go(struct hold *hold);

void wait_lost(const struct hold *hold);

bool is_closed(const void *app); /* for world_wait */
void close_and_wait(struct app *app);

/* Turns until so many SETs and scripts have arrived; where something failed, a while. */
void wait_asked(unsigned count);

/* Turns until no master has KEY, unless the application was told that one keeps it. */
void wait_free(const struct app *app);

#endif
