/*
 * An application of the library, and what it is promised, whatever fails: exactly one callback for
 * each accepted request, none for a refused one, never before its call has returned, none after
 * on_closed, and no memory left then. All calls of the API go through here, so that it is checked.
 */
#ifndef REDLOCK_TORTURE_APP_H
#define REDLOCK_TORTURE_APP_H

#include "masters.h"

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
    bool is_extending;                                 /* on_extended has not come */
    bool hears_of_loss;                                /* on_lost is set */
    bool hears_of_release;                             /* on_released is set */
    redlock_status acquired, extended, lost, released; /* as last told */
    unsigned losses, extensions;                       /* told so far */

    void (*then)(struct hold *hold); /* runs inside each callback; NULL: nothing */
};

struct app {
    redlock_options options;
    const char *uris[MASTERS_COUNT];
    redlock_allocator allocator;
    size_t out;             /* blocks that the library has not given back */
    redlock_client *client; /* NULL: not made, or gone */
    bool is_closing, is_closed;
    bool leaves_keys;    /* it was told that a key is left to its TTL */
    unsigned calls;      /* of the API that have not returned: 0 or 1 */
    unsigned looks;      /* inspections that have not been told */
    redlock_status seen; /* how the last one ended */
    unsigned count;
    struct hold holds[APP_HOLDS_MAX];
};

/* Options for all masters at this kind of address, and timeouts that are soon over. */
void app_init(struct app *app, enum address address);

/* Makes the client; false when that was refused. */
bool app_open(struct app *app);

/* A request for one try, with a TTL that no run outlasts, whose loss is told. */
redlock_request app_request(const char *key);

/* NULL when it was refused. */
struct hold *app_acquire(struct app *app, const redlock_request *request);

/*
 * Acquires as app_acquire does, without a place for the handle, which is known from on_acquired on.
 */
struct hold *app_acquire_blindly(struct app *app, const redlock_request *request);

/* Each call checks what it is promised; the status is that of the API. */
redlock_status app_extend(struct hold *hold, uint64_t ttl_ms, bool with_callback);
redlock_status app_release(struct hold *hold, bool with_callback);
redlock_status app_cancel(struct hold *hold);

redlock_status app_change_nodes(struct app *app, const char *const *uris, size_t count);
redlock_status app_commit_nodes(struct app *app);
redlock_status app_abandon_nodes(struct app *app);

/* Asks who holds the key, and whether the fence is the newest. */
redlock_status app_inspect(struct app *app, const char *key);
redlock_status app_check_fence(struct app *app, const char *key, uint64_t fence);

/* A second call is of no effect, as the API has it. */
void app_close(struct app *app);

/* Calls the functions that only ask: explain, report, key, validity. */
void app_ask(struct hold *hold);

/* How many nodes are connected. */
unsigned app_connected(struct app *app);

/* How many releases the nodes are owed. */
size_t app_debts(struct app *app);

/* Whether a callback is due, whatever happens: no lock that is merely held. */
bool app_is_busy(const struct app *app);

/* After on_closed, or when no client was made: all that was accepted has ended. */
void app_check_end(const struct app *app);

#endif
