/* The application of a fuzzer: a client of the peers, in a world that the input controls. */
#ifndef REDLOCK_FUZZ_APP_H
#define REDLOCK_FUZZ_APP_H

#include "driver.h"
#include "heap.h"

/* Returns the memory of the client. */
struct heap *app_heap(void);

/* Begins a run. */
void app_begin(struct app *app);

/* Creates the client, with the application's log. */
redlock_status app_make(struct app *app, redlock_options *options, redlock_error *error);

redlock_status app_acquire(struct app *app, redlock_request *request, bool wants_handle);

/* Asks for the holder of a key, or whether a fence is the newest. */
void app_look(struct app *app, const char *key, bool at_fence);

/* Makes all calls that only read. */
void app_ask_some(struct app *app, size_t capacity);

/* Runs one iteration of the loop, with the bytes that the peers have to send. */
void app_turn(struct app *app);

/* Returns the number of pending extensions, releases and acquisitions without retries. */
unsigned app_pending(const struct app *app);

/*
 * Closes the client, lets time pass until it has ended, and asserts that nothing is left.
 * `node_timeout_ms` is that of the options.
 */
void app_end(struct app *app, uint64_t node_timeout_ms);

#endif
