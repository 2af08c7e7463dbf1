/*
 * An application of the library that checks (check.h) the promises of the API, whatever nodes
 * answer and whatever fails: exactly one callback for each accepted request, none for a refused
 * one, none before its call has returned, none after on_closed, and no memory left then. All calls
 * of the API go through this module. The torture test and the fuzzers drive the application.
 */
#ifndef REDLOCK_TEST_DRIVER_H
#define REDLOCK_TEST_DRIVER_H

#include <redlock.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct event_base;

/* The most requests for locks in one run. */
#define APP_HOLDS_MAX 128

/* The state of a requested lock, as the application knows it. */
enum hold_stage {
    HOLD_REFUSED,   /* the request was refused: there is no handle */
    HOLD_ACQUIRING, /* on_acquired has not come */
    HOLD_HELD,
    HOLD_LOST,      /* on_lost has come */
    HOLD_CLOSED,    /* likewise, with REDLOCK_ECLOSED: may still be released */
    HOLD_RELEASING, /* released: on_released has not come */
    HOLD_GONE       /* the handle has ended */
};

struct app;

struct hold {
    struct app *app;
    redlock_lock *lock;
    enum hold_stage stage;
    bool is_extending;        /* on_extended has not come */
    bool is_tried_once;       /* the request had neither a wait nor retries */
    bool hears_of_loss;       /* on_lost is set */
    bool hears_of_release;    /* on_released is set */
    bool in_callback;         /* in a callback of the lock, which may be asked at any stage */
    uint64_t min_validity_ms; /* the least validity when the lock is acquired */
    uint64_t valid_until;     /* if is_tried_once: the end of validity, by Redlock step 3 */
    redlock_status acquired, extended, lost, released; /* the statuses last told */
    unsigned losses, extensions;                       /* numbers of callbacks so far */

    void (*then)(struct hold *hold); /* runs inside each callback; NULL: nothing */
};

/* The program around the application: facts and callbacks. Each but `blocks` may be NULL. */
struct app_world {
    const size_t *blocks;          /* number of blocks that the library has not freed */
    bool (*may_lack_memory)(void); /* ENOMEM is a right status now; NULL: at any time */
    void (*on_line)(struct app *app, const char *line); /* called for each line of the log */
    void (*react)(struct app *app, struct hold *hold, void *arg); /* called inside each callback */
    void *react_arg;
};

struct app {
    struct app_world world;
    redlock_options options; /* as given to the library; pointers may be invalid */
    redlock_client *client;  /* NULL: not created, or closed */
    bool is_closing, is_closed;
    bool leaves_keys; /* a key is left to its TTL, as was told or could not be told */
    unsigned calls;   /* calls of the API that have not returned: 0 or 1 */
    unsigned
        looks; /* number of inspections, and calls of app_ready, without their callback so far */
    redlock_status seen; /* the status of the last inspection */
    unsigned count;
    struct hold holds[APP_HOLDS_MAX];

    /* Storage for the options, for a program that has no other. */
    const char *uris[REDLOCK_MAX_NODES];
    redlock_allocator allocator;
    size_t out; /* number of blocks that the library has not freed */
};

/* Each function checks the promises of its call; a status is that of the API. */

/* Makes the client, with the application's log. */
redlock_status app_create(struct app *app, struct event_base *base, redlock_options *options,
                          redlock_error *error);

/* Closes the client, and closes it again at once, which must be of no effect. */
void app_close(struct app *app);

/* Makes a request, whose on_lost, unless NULL, is replaced by the application's own. */
redlock_status app_ask_for(struct app *app, redlock_request *request, bool wants_handle,
                           struct hold **hold);
redlock_status app_extend(struct hold *hold, uint64_t ttl_ms, bool with_callback);
redlock_status app_release(struct hold *hold, bool with_callback);
redlock_status app_cancel(struct hold *hold);

/* Ask for the holder of a key, and whether a fence is the newest. */
redlock_status app_inspect(struct app *app, const char *key);
redlock_status app_check_fence(struct app *app, const char *key, uint64_t fence);

/* Waits until an acquisition can succeed. */
redlock_status app_ready(struct app *app, uint64_t timeout_ms);

/* Makes all calls that only ask, of a lock (explain, report, key, validity) and of the client. */
void app_ask(struct hold *hold, size_t capacity);
size_t app_ask_client(struct app *app, redlock_node_info *infos, size_t capacity);

/* Checks that the API has refused a call for a good reason. */
void app_check_refusal(const struct app *app, redlock_status status);

/* Returns whether the handle may be used: each call on the lock is then accepted or refused. */
bool hold_is_usable(const struct hold *hold);

/* Returns whether the handle is the application's to release. */
bool hold_is_ours(const struct hold *hold);

/* Returns whether a callback is due in any case: not for a lock merely held or being acquired. */
bool hold_is_awaited(const struct hold *hold);

#endif
