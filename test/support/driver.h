/*
 * An application of the library, and what it is promised, whatever nodes say and whatever fails:
 * exactly one callback for each accepted request, none for a refused one, never before its call has
 * returned, none after on_closed, and no memory left then. All calls of the API go through here, so
 * that this is checked (check.h). The torture and the fuzzers drive it.
 */
#ifndef REDLOCK_TEST_DRIVER_H
#define REDLOCK_TEST_DRIVER_H

#include <redlock.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct event_base;

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
    bool is_tried_once;                                /* neither a wait nor retries */
    bool hears_of_loss;                                /* on_lost is set */
    bool hears_of_release;                             /* on_released is set */
    bool in_callback;                                  /* of it: it may be asked at any stage */
    uint64_t min_validity_ms;                          /* when it is acquired */
    uint64_t valid_until;                              /* if tried once: by Redlock step 3 */
    redlock_status acquired, extended, lost, released; /* as last told */
    unsigned losses, extensions;                       /* told so far */

    void (*then)(struct hold *hold); /* runs inside each callback; NULL: nothing */
};

/* What the program around the application knows, and does. Each but `blocks` may be NULL. */
struct app_world {
    const size_t *blocks;          /* that the library has not given back */
    bool (*may_lack_memory)(void); /* ENOMEM is an answer now; NULL: at any time */
    void (*on_line)(struct app *app, const char *line);           /* of the log */
    void (*react)(struct app *app, struct hold *hold, void *arg); /* inside each callback */
    void *react_arg;
};

struct app {
    struct app_world world;
    redlock_options options; /* as they were given; pointers may be gone */
    redlock_client *client;  /* NULL: not made, or gone */
    bool is_closing, is_closed;
    bool leaves_keys;    /* it was told that a key is left to its TTL, or cannot be told */
    unsigned calls;      /* of the API that have not returned: 0 or 1 */
    unsigned looks;      /* inspections that have not been told */
    redlock_status seen; /* how the last one ended */
    unsigned count;
    struct hold holds[APP_HOLDS_MAX];

    /* Kept for the options, by a program that has no other place for them. */
    const char *uris[REDLOCK_MAX_NODES];
    redlock_allocator allocator;
    size_t out; /* blocks that the library has not given back */
};

/* Each call checks what it is promised; a status is that of the API. */

/* Makes the client, with the application's log. */
redlock_status app_create(struct app *app, struct event_base *base, redlock_options *options,
                          redlock_error *error);

/* A second call of the API, at once, is of no effect: it is made, too. */
void app_close(struct app *app);

/* Has the loss of the lock told, if the request's `on_lost` is not NULL. */
redlock_status app_ask_for(struct app *app, redlock_request *request, bool wants_handle,
                           struct hold **hold);
redlock_status app_extend(struct hold *hold, uint64_t ttl_ms, bool with_callback);
redlock_status app_release(struct hold *hold, bool with_callback);
redlock_status app_cancel(struct hold *hold);

/* Asks who holds the key, and whether the fence is the newest. */
redlock_status app_inspect(struct app *app, const char *key);
redlock_status app_check_fence(struct app *app, const char *key, uint64_t fence);

/* All that only asks a lock: explain, report, key, validity; and a client: nodes, error. */
void app_ask(struct hold *hold, size_t capacity);
size_t app_ask_client(struct app *app, redlock_node_info *infos, size_t capacity);

/* That the API has refused a call for a good reason. */
void app_check_refusal(const struct app *app, redlock_status status);

/* Whether the handle may be used; then each call on it is answered, one way or another. */
bool hold_is_usable(const struct hold *hold);

/* Whether a callback is due, whatever happens: no lock that is merely held or acquired. */
bool hold_is_awaited(const struct hold *hold);

#endif
