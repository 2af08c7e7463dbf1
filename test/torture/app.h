/* The application of a scenario: a client of the masters, whose requests may fail for faults. */
#ifndef REDLOCK_TORTURE_APP_H
#define REDLOCK_TORTURE_APP_H

#include "driver.h"
#include "masters.h"

/* Options for all masters at this kind of address, and timeouts that are soon over. */
void app_init(struct app *app, enum address address);

/* Makes the client; false when that was refused. */
bool app_open(struct app *app);

/* A request for one try, with a TTL that no run outlasts, whose loss is told. */
redlock_request app_request(const char *key);

/* NULL when it was refused. */
struct hold *app_acquire(struct app *app, const redlock_request *request);

/* Acquires without a place for the handle: it is known from on_acquired on. */
struct hold *app_acquire_blindly(struct app *app, const redlock_request *request);

redlock_status app_change_nodes(struct app *app, const char *const *uris, size_t count);
redlock_status app_commit_nodes(struct app *app);
redlock_status app_abandon_nodes(struct app *app);

/* How many nodes are connected. */
unsigned app_connected(struct app *app);

/* How many releases the nodes are owed. */
size_t app_debts(struct app *app);

/* Whether a callback is due, whatever happens: no lock that is merely held. */
bool app_is_busy(const struct app *app);

/* After on_closed, or when no client was made: all that was accepted has ended. */
void app_check_end(const struct app *app);

#endif
