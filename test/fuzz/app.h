/* The application of a fuzzer: a client of the peers, in a world that the input rules. */
#ifndef REDLOCK_FUZZ_APP_H
#define REDLOCK_FUZZ_APP_H

#include "driver.h"
#include "heap.h"

/* The memory of its client, and the loop, which is that of all runs. */
struct heap *app_heap(void);
struct event_base *app_loop(void);

/* Begins a run. */
void app_begin(struct app *app);

/* Makes the client; its log is the application's. */
redlock_status app_make(struct app *app, redlock_options *options, redlock_error *error);

redlock_status app_acquire(struct app *app, redlock_request *request, bool wants_handle);

/* Asks who holds a key, or whether a fence is the newest. */
void app_look(struct app *app, const char *key, bool at_fence);

/* All that only asks a client. */
void app_ask_some(struct app *app, size_t capacity);

/* One iteration of the loop, with whatever the peers have to say. */
void app_turn(struct app *app);

/* How many extensions, releases and acquisitions without retries have not ended. */
unsigned app_pending(const struct app *app);

/*
 * Closes what is open, has time pass until that has ended, and asserts that nothing is left.
 * `node_timeout_ms` is that of the options.
 */
void app_end(struct app *app, uint64_t node_timeout_ms);

#endif
