/*
 * The application of a scenario: a client of the masters, whose requests may fail because of
 * faults.
 */
#ifndef REDLOCK_TORTURE_APP_H
#define REDLOCK_TORTURE_APP_H

#include "driver.h"
#include "masters.h"

/* Sets options for all masters at this kind of address, with short timeouts. */
void app_init(struct app *app, enum address address);

/* Creates the client. Returns false when it was refused. */
bool app_open(struct app *app);

/* Returns a request for one try, with on_lost, and a TTL that no run outlasts. */
redlock_request app_request(const char *key);

/* Makes a request. Returns NULL when it was refused. */
struct hold *app_acquire(struct app *app, const redlock_request *request);

/* Acquires without storing the handle, which is known from on_acquired on. */
struct hold *app_acquire_blindly(struct app *app, const redlock_request *request);

redlock_status app_change_nodes(struct app *app, const char *const *uris, size_t count);
redlock_status app_commit_nodes(struct app *app);
redlock_status app_abandon_nodes(struct app *app);

/* Returns the number of connected nodes. */
unsigned app_connected(struct app *app);

/* Returns the number of pending releases of all nodes. */
size_t app_pending_releases(struct app *app);

/* Returns whether a callback is certain to come. This is false for a lock that is only held. */
bool app_is_busy(const struct app *app);

/* Checks that all accepted requests have ended, after on_closed, or if no client was created. */
void app_check_end(const struct app *app);

#endif
