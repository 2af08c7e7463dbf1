/*
 * An application of the library, and what it is promised: exactly one callback for each accepted
 * request, never before its call has returned, none after on_closed, no memory and no descriptor
 * left. Each call of the API goes through here, so that this can be asserted.
 */
#ifndef REDLOCK_FUZZ_APP_H
#define REDLOCK_FUZZ_APP_H

#include "heap.h"

#include <event2/event.h>
#include <redlock.h>
#include <stdbool.h>
#include <stdint.h>

/* The most locks that one run asks for. */
#define APP_HOLDS_MAX 128

/* What the application knows of a lock that it asked for. */
enum hold_stage {
    HOLD_REFUSED,   /* the request was: there is no handle */
    HOLD_ACQUIRING, /* on_acquired has not come */
    HOLD_HELD,
    HOLD_LOST,      /* on_lost has come */
    HOLD_RELEASING, /* given back: on_released has not come */
    HOLD_GONE       /* the handle has ended */
};

struct app;

struct hold {
    struct app *app;
    redlock_lock *lock;
    enum hold_stage stage;
    bool is_extending;     /* on_extended has not come */
    bool is_tried_once;    /* the request had neither a wait nor retries */
    bool hears_of_loss;    /* on_lost is set */
    bool hears_of_release; /* on_released is set */
    bool in_callback;      /* of it: the handle may be asked, whatever its stage */
    uint64_t min_validity_ms;
    uint64_t valid_until; /* of one that is tried once: by Redlock step 3 */
};

struct app {
    struct event_base *base;
    struct heap heap;
    redlock_client *client;  /* NULL: not made, or gone */
    redlock_options options; /* as they were given; its pointers are not kept */
    bool is_closing, is_closed;
    unsigned calls; /* of the API that have not returned: 0 or 1 */
    unsigned looks; /* inspections that have not been told */
    unsigned count;
    struct hold holds[APP_HOLDS_MAX];
    int next_fd; /* the descriptor that the system would give next, before anything began */

    /* Called in each callback; may be NULL. */
    void (*react)(struct app *app, struct hold *hold, void *arg);
    void *react_arg;
};

/* Begins a run. */
void app_begin(struct app *app);

/* Makes the client; its hooks are the application's. */
redlock_status app_create(struct app *app, redlock_options *options, redlock_error *error);

/* Asks who holds a key, or whether a fence is the newest. */
void app_look(struct app *app, const char *key, bool at_fence);

/* Each call checks what it is promised; the status is that of the API. */
redlock_status app_acquire(struct app *app, redlock_request *request, bool wants_handle);
redlock_status app_extend(struct hold *hold, uint64_t ttl_ms, bool with_callback);
redlock_status app_release(struct hold *hold, bool with_callback);
redlock_status app_cancel(struct hold *hold);
void app_close(struct app *app);

/* Calls the functions that only ask: explain, report, key, validity, nodes, error. */
void app_ask(struct hold *hold, size_t capacity);
void app_ask_client(struct app *app, size_t capacity);

/* Whether the handle may be used; then each call on it is answered, one way or another. */
bool hold_is_usable(const struct hold *hold);

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
