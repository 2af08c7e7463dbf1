/*
 * An application of the library that checks (check.h) the promises of the API, whatever nodes
 * answer and whatever fails: exactly one callback for each accepted request, none for a refused
 * one, none before its call has returned, none after on_closed, and no memory in use after that.
 * All calls of the API go through this module. The torture test and the fuzzers drive the
 * application.
 */
#ifndef REDLOCK_TEST_DRIVER_H
#define REDLOCK_TEST_DRIVER_H

#include <redlock.h>
#include <redlock/loop.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct event_base;

/* Limit of requests for locks in one run. */
#define APP_HOLDS_MAX 128

/* The state of a requested lock, as the application knows it. */
enum hold_stage {
    HOLD_REFUSED,   /* the request was refused: no handle */
    HOLD_ACQUIRING, /* on_acquired is pending */
    HOLD_HELD,
    HOLD_LOST,      /* on_lost was called */
    HOLD_CLOSED,    /* likewise, with REDLOCK_ECLOSED: may still be released */
    HOLD_RELEASING, /* released: on_released is pending */
    HOLD_GONE       /* the handle is gone */
};

struct app;

struct hold {
    struct app *app;
    redlock_lock *lock;
    enum hold_stage stage;
    bool is_extending;     /* on_extended is pending */
    bool is_tried_once;    /* the request had neither a wait nor retries */
    bool hears_of_loss;    /* on_lost is set */
    bool hears_of_release; /* on_released is set */
    /* inside a callback of the lock, where calls that only read are allowed at any stage */
    bool in_callback;
    uint64_t min_validity_ms; /* the validity required when the lock is acquired */
    uint64_t valid_until;     /* if is_tried_once: the end of the validity, by Redlock step 3 */
    redlock_status acquired, extended, lost, released; /* the statuses last reported */
    unsigned losses, extensions;                       /* numbers of callbacks so far */

    void (*then)(struct hold *hold); /* runs inside each callback; NULL: nothing */
};

/* The program that uses the application: facts and callbacks. All but `blocks` may be NULL. */
struct app_world {
    const size_t *blocks; /* number of blocks that the library has not freed */
    /* returns whether ENOMEM is a legal status now; NULL: it always is */
    bool (*may_lack_memory)(void);
    void (*on_line)(struct app *app, const char *line); /* called for each line of the log */
    void (*react)(struct app *app, struct hold *hold, void *arg); /* called inside each callback */
    void *react_arg;
};

struct app {
    struct app_world world;
    redlock_options options; /* as given to the library; pointers may be invalid */
    redlock_client *client;  /* NULL: not created, or closed */
    bool is_closing, is_closed;
    /* a key is left to expire, and this was reported, or memory was lacking to report it */
    bool leaves_keys;
    unsigned calls; /* calls of the API that have not returned: 0 or 1 */
    unsigned
        looks; /* number of inspections, and of calls of app_ready, that await their callback */
    redlock_status seen; /* the status of the last inspection */
    unsigned count;
    struct hold holds[APP_HOLDS_MAX];

    /* Storage for the options, for programs that have no storage of their own. */
    const char *uris[REDLOCK_MAX_NODES];
    redlock_allocator allocator;
    size_t out; /* number of blocks that the library has not freed */
};

/* Each function checks the promises of its call. A returned status is that of the API. */

/* Make the client, with the application's log, on a loop of libevent or of the library. */
redlock_status app_create(struct app *app, struct event_base *base, redlock_options *options,
                          redlock_error *error);
redlock_status app_create_on(struct app *app, redlock_loop *loop, redlock_options *options,
                             redlock_error *error);

/* Closes the client, then closes it again, which must have no effect. */
void app_close(struct app *app);

/* Makes a request. An on_lost that is not NULL is replaced by the application's own. */
redlock_status app_ask_for(struct app *app, redlock_request *request, bool wants_handle,
                           struct hold **hold);
redlock_status app_extend(struct hold *hold, uint64_t ttl_ms, bool with_callback);
redlock_status app_release(struct hold *hold, bool with_callback);
redlock_status app_cancel(struct hold *hold);

/* Ask for the holder of a key; whether a fence is the newest. */
redlock_status app_inspect(struct app *app, const char *key);
redlock_status app_check_fence(struct app *app, const char *key, uint64_t fence);

/* Waits until an acquisition can succeed. */
redlock_status app_ready(struct app *app, uint64_t timeout_ms);

/* Makes all calls that only read, on a lock (explain, report, key, validity) and on the client. */
void app_ask(struct hold *hold, size_t capacity);
size_t app_ask_client(struct app *app, redlock_node_info *infos, size_t capacity);

/* Checks that the API refused a call for a valid reason. */
void app_check_refusal(const struct app *app, redlock_status status);

/* Returns whether the handle may be used: any call on the lock is then accepted or refused. */
bool hold_is_usable(const struct hold *hold);

/* Returns whether the application has yet to release the handle. */
bool hold_is_ours(const struct hold *hold);

/*
 * Returns whether a callback is certain to come. This is false for a lock that is held or being
 * acquired.
 */
bool hold_is_awaited(const struct hold *hold);

#endif
