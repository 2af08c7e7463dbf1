/*
 * A timer compares the state with the wanted one. A change begins requests, releases or
 * cancellations, at most WINDOW at a time, and is complete with the last answer. Then the part
 * reports on the board, and does nothing but look for the next change.
 */
#include "crowd_part.h"

#include "client.h"
#include "clock.h"
#include "memory.h"
#include "naming.h"

#include <event2/event.h>
#include <redlock.h>
#include <stdio.h>
#include <stdlib.h>

#define POLL_S 0.005
#define WINDOW 50
#define CONNECT_LIMIT_S 60.0
#define GUARD_TTL_MS 3600000 /* so long that the guard's renewals do not count */

/* Number of further tries of requests that do not queue: a busy machine misses timeouts. */
#define RETRIES 1000

enum change { CONNECTING, CHANGING, SETTLED };

struct member {
    struct part *part;
    redlock_client *client;
    redlock_lock *lock; /* while requested or held */
};

struct part {
    const struct crowd_plan *plan;
    struct event_base *base;
    struct event *timer;
    struct event *end;
    bool ending;
    bool given_up;

    enum crowd_state state; /* the state that this part is in, or changes to */
    enum crowd_state from;  /* the state before */
    enum change change;
    size_t begun;   /* number of members whose part of the change has begun */
    size_t pending; /* number of answers to come */
    uint64_t connecting_from_ns;

    redlock_client *guard; /* NULL: another part has it */
    size_t closing;        /* number of clients that are not closed */
    size_t first;          /* number of the first member in the crowd */
    size_t created;        /* number of members with a client */
    size_t connected;      /* members before this one are connected */
    size_t count;
    struct member members[];
};

/* ------------------------------------------------------------------------------------- the end */

static void on_closed(void *arg) {
    struct part *part = arg;

    if (--part->closing == 0) {
        event_base_loopbreak(part->base);
    }
}

static void close_client(struct part *part, redlock_client *client) {
    part->closing++;
    redlock_client_close(client, on_closed, part);
}

static void end_all(struct part *part) {
    if (part->ending) {
        return;
    }
    part->ending = true;
    event_del(part->timer);
    event_del(part->end);
    part->closing = 1; /* until all have begun to close */
    for (size_t i = 0; i < part->created; i++) {
        close_client(part, part->members[i].client);
    }
    if (part->guard != NULL) {
        close_client(part, part->guard);
    }
    on_closed(part);
}

static void on_end(evutil_socket_t fd, short what, void *arg) {
    (void)fd;
    (void)what;
    end_all(arg);
}

static void give_up(struct part *part, const char *error) {
    if (!part->ending) {
        if (!atomic_exchange(&part->plan->board->has_failed, true)) {
            fprintf(stderr, "redlock-bench: %s\n", naming_by_options(error));
        }
        part->given_up = true;
        end_all(part);
    }
}

/* ------------------------------------------------------------------------------- the connecting */

static redlock_client *create_client(const struct part *part) {
    redlock_options options = REDLOCK_OPTIONS_INIT;

    options.max_ttl_ms = GUARD_TTL_MS;
    return client_create(part->base, part->plan->nodes, part->plan->node_count, options);
}

/*
 * Creates the clients, with a window that are connecting. Returns whether all are connected.
 */
static bool connect_more(struct part *part) {
    bool over = (double)(clock_now_ns() - part->connecting_from_ns) / 1e9 > CONNECT_LIMIT_S;

    if (part->plan->guarded > 0 && part->first == 0 && part->guard == NULL) {
        part->guard = create_client(part);
        if (part->guard == NULL) {
            give_up(part, "no client for the keys that others wait for");
            return false;
        }
    }
    while (part->connected < part->created &&
           client_is_ready(part->members[part->connected].client, over ? stderr : NULL)) {
        part->connected++;
        part->connecting_from_ns = clock_now_ns();
    }
    if (over && part->connected < part->created) {
        give_up(part, "a client does not connect");
        return false;
    }
    while (part->created < part->count && part->created < part->connected + WINDOW) {
        part->members[part->created].client = create_client(part);
        if (part->members[part->created].client == NULL) {
            give_up(part, "not all clients were created");
            return false;
        }
        part->created++;
    }
    return part->connected == part->count &&
           (part->guard == NULL || client_is_ready(part->guard, NULL));
}

/* --------------------------------------------------------------------------------- the requests */

static void go_on(struct part *part);

static void on_answer(struct part *part) {
    part->pending--;
    if (!part->ending) {
        go_on(part);
    }
}

static void on_guarded(redlock_lock *lock, redlock_status status, void *arg) {
    struct part *part = arg;

    if (status != REDLOCK_OK) {
        give_up(part, redlock_explain(lock));
    }
    on_answer(part);
}

static void guard(struct part *part, size_t number) {
    redlock_request request = REDLOCK_REQUEST_INIT;

    request.key = part->plan->guarded_keys[number];
    request.ttl_ms = GUARD_TTL_MS;
    request.retries = RETRIES;
    part->pending++;
    if (redlock_acquire(part->guard, &request, on_guarded, part, NULL) != REDLOCK_OK) {
        give_up(part, redlock_client_error(part->guard));
    }
}

/* A waiter gets no lock: the guard keeps it. So each answer is that of a cancellation. */
static void on_waited(redlock_lock *lock, redlock_status status, void *arg) {
    struct member *member = arg;

    member->lock = NULL;
    if (member->part->ending) {
        return;
    }
    if (status != REDLOCK_ECANCELED) {
        give_up(member->part,
                status == REDLOCK_OK ? "a guarded key was free" : redlock_explain(lock));
    }
    on_answer(member->part);
}

static void wait_for_key(struct part *part, struct member *member) {
    size_t number = (part->first + (size_t)(member - part->members)) % part->plan->guarded;
    redlock_request request = REDLOCK_REQUEST_INIT;

    request.key = part->plan->guarded_keys[number];
    request.wait_ms = REDLOCK_FOREVER;
    request.watchdog = true;
    if (redlock_acquire(member->client, &request, on_waited, member, &member->lock) != REDLOCK_OK) {
        give_up(part, redlock_client_error(member->client));
    }
}

static void cancel(struct part *part, struct member *member) {
    part->pending++;
    redlock_cancel(member->lock);
}

/* --------------------------------------------------------------------------------- the changes */

/* Returns the number of steps of the change. */
static size_t count_steps(const struct part *part) {
    if (part->state == CROWD_GUARDED) {
        return part->guard != NULL ? part->plan->guarded : 0;
    }
    return part->state != part->from &&
                   (part->state == CROWD_WAITING || part->from == CROWD_WAITING)
               ? part->count
               : 0;
}

static void begin_step(struct part *part, size_t number) {
    if (part->state == CROWD_GUARDED) {
        guard(part, number);
    } else if (part->state == CROWD_WAITING) {
        wait_for_key(part, &part->members[number]);
    } else {
        cancel(part, &part->members[number]);
    }
}

static void settle(struct part *part) {
    part->change = SETTLED;
    part->plan->board->reached++;
}

static void go_on(struct part *part) {
    size_t steps = count_steps(part);

    if (part->change != CHANGING) {
        return;
    }
    while (part->begun < steps && part->pending < WINDOW && !part->ending) {
        begin_step(part, part->begun++);
    }
    if (part->begun == steps && part->pending == 0 && !part->ending) {
        settle(part);
    }
}

static void look(struct part *part) {
    enum crowd_state wanted = (enum crowd_state)part->plan->board->wanted;

    if (part->change == CONNECTING && connect_more(part)) {
        settle(part);
    } else if (part->change == SETTLED && wanted != part->state) {
        part->from = part->state;
        part->state = wanted;
        part->begun = 0;
        part->change = CHANGING;
        go_on(part);
    }
}

static void on_timer(evutil_socket_t fd, short what, void *arg) {
    struct part *part = arg;

    (void)fd;
    (void)what;
    look(part);
    if (!part->ending) {
        clock_arm(part->timer, POLL_S);
    }
}

/* --------------------------------------------------------------------------------- the process */

static void free_event(struct event *event) {
    if (event != NULL) {
        event_free(event);
    }
}

static int run(struct part *part, struct workers_orders orders) {
    part->base = clock_create_base();
    if (part->base == NULL) {
        return EXIT_FAILURE;
    }
    part->timer = clock_timer(part->base, on_timer, part);
    part->end = event_new(part->base, orders.end, EV_READ, on_end, part);
    if (part->end == NULL || event_add(part->end, NULL) != 0) {
        memory_end();
    }
    clock_arm(part->timer, 0);
    part->connecting_from_ns = clock_now_ns();
    if (event_base_dispatch(part->base) < 0) {
        fputs("redlock-bench: the event loop failed\n", stderr);
        return EXIT_FAILURE;
    }
    return part->given_up ? EXIT_FAILURE : EXIT_SUCCESS;
}

int crowd_part_run(const struct crowd_plan *plan, size_t index, struct workers_orders orders) {
    size_t first = index * plan->part_clients;
    size_t left = plan->clients - first;
    size_t count = left < plan->part_clients ? left : plan->part_clients;
    struct part *part = memory_take(1, sizeof(*part) + count * sizeof(part->members[0]));
    int status;

    part->plan = plan;
    part->first = first;
    part->count = count;
    for (size_t i = 0; i < count; i++) {
        part->members[i].part = part;
    }
    status = run(part, orders);
    free_event(part->timer);
    free_event(part->end);
    if (part->base != NULL) {
        event_base_free(part->base);
    }
    free(part);
    return status;
}
