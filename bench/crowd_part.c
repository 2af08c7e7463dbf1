/*
 * A timer compares the state with the wanted one. A change begins requests, releases or
 * cancellations, at most WINDOW at a time, and is complete with the last answer. Then the part
 * reports on the board, and does nothing but look for the next change, and the cycles that are due.
 *
 * The cycles of the working members are due one after the other, at even intervals.
 */
#include "crowd_part.h"

#include "client.h"
#include "clock.h"
#include "crowd_member.h"
#include "memory.h"
#include "naming.h"

#include <event2/event.h>
#include <redlock.h>
#include <stdio.h>
#include <stdlib.h>

#define POLL_S 0.005
#define WINDOW 50
#define CONNECT_LIMIT_S 60.0
#define GUARD_TTL_MS 3600000 /* so long that the guard need not renew */

enum step {
    CONNECTING, /* until all members are connected */
    CUTTING,    /* until all members have noticed that the first master is gone */
    CHANGING,   /* until all requests are answered */
    SETTLED
};

struct crowd_part {
    const struct crowd_plan *plan;
    struct event_base *base;
    struct event *timer;
    struct event *due_timer;
    struct event *end;
    bool ending;
    bool given_up;

    enum crowd_state state; /* the state that this part is in, or changes to */
    enum crowd_state from;  /* the state before */
    enum step step;
    size_t looked_at; /* connecting, cutting: number of members that need not be looked at again */
    uint64_t connecting_from_ns; /* instant at which the last one was connected */
    size_t begun;                /* changing: number of members whose change has begun */
    size_t pending;              /* number of answers to come */

    uint64_t working_from_ns; /* instant at which the first cycle was due */
    uint64_t due;             /* number of cycles that have been due */

    redlock_client *guard; /* NULL: another part has it */
    size_t closing;        /* number of clients that are not closed */
    size_t created;        /* number of members with a client */
    size_t count;
    struct crowd_member members[];
};

/* ------------------------------------------------------------------------------------- the end */

static void on_closed(void *arg) {
    struct crowd_part *part = arg;

    if (--part->closing == 0) {
        event_base_loopbreak(part->base);
    }
}

static void close_client(struct crowd_part *part, redlock_client *client) {
    part->closing++;
    redlock_client_close(client, on_closed, part);
}

static void end_all(struct crowd_part *part) {
    part->ending = true;
    event_del(part->timer);
    event_del(part->due_timer);
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

/* The close of the clients ends requests too: their status does not count. */
void crowd_part_fail(struct crowd_part *part, const char *error) {
    if (part->ending) {
        return;
    }
    if (!atomic_exchange(&part->plan->board->has_failed, true)) {
        fprintf(stderr, "redlock-bench: %s\n", naming_by_options(error));
    }
    part->given_up = true;
    end_all(part);
}

void crowd_part_report(const struct crowd_part *part, const char *error) {
    if (!part->ending && atomic_fetch_add(&part->plan->board->errors, 1) == 0) {
        fprintf(stderr, "redlock-bench: the first error of a cycle: %s\n",
                naming_by_options(error));
    }
}

/* ------------------------------------------------------------------------------- the connecting */

/* Returns NULL on failure, after a message. */
static redlock_client *create_client(struct crowd_part *part) {
    const struct crowd_settings *settings = &part->plan->settings;
    redlock_client *client =
        client_create(part->base, settings->nodes, part->plan->node_count,
                      client_options(0, GUARD_TTL_MS, settings->node_timeout_ms));

    if (client == NULL) {
        crowd_part_fail(part, "not all clients were created");
    }
    return client;
}

/* Creates clients while fewer than WINDOW connect. Returns false on failure. */
static bool create_more(struct crowd_part *part) {
    while (part->created < part->count && part->created < part->looked_at + WINDOW) {
        redlock_client *client = create_client(part);

        if (client == NULL) {
            return false;
        }
        part->members[part->created++].client = client;
    }
    return true;
}

/* Returns whether all clients are connected. */
static bool are_connected(struct crowd_part *part) {
    bool over = (double)(clock_now_ns() - part->connecting_from_ns) / 1e9 > CONNECT_LIMIT_S;

    while (part->looked_at < part->created &&
           client_is_ready(part->members[part->looked_at].client, over ? stderr : NULL)) {
        part->looked_at++;
        part->connecting_from_ns = clock_now_ns();
    }
    if (part->looked_at == part->count) {
        return part->guard == NULL || client_is_ready(part->guard, NULL);
    }
    if (over) {
        crowd_part_fail(part, "a client does not connect");
    } else {
        create_more(part);
    }
    return false;
}

/* Returns whether all clients have noticed that the first master is gone. */
static bool are_cut(struct crowd_part *part) {
    redlock_node_info infos[REDLOCK_MAX_NODES];

    while (part->looked_at < part->count) {
        redlock_client_nodes(part->members[part->looked_at].client, infos, REDLOCK_MAX_NODES);
        if (infos[0].connected) {
            return false;
        }
        part->looked_at++;
    }
    return true;
}

static void begin_connecting(struct crowd_part *part, enum step step) {
    part->step = step;
    part->looked_at = 0;
    part->connecting_from_ns = clock_now_ns();
}

/* ------------------------------------------------------------------------------------ the guard */

static void on_guarded(redlock_lock *lock, redlock_status status, void *arg) {
    if (status != REDLOCK_OK) {
        crowd_part_fail(arg, redlock_explain(lock));
    }
    crowd_part_answered(arg);
}

static void guard(struct crowd_part *part, size_t number) {
    redlock_request request = REDLOCK_REQUEST_INIT;

    request.key = part->plan->guarded_keys[number];
    request.ttl_ms = GUARD_TTL_MS;
    request.retries = CROWD_RETRIES;
    crowd_part_expect(part);
    if (redlock_acquire(part->guard, &request, on_guarded, part, NULL) != REDLOCK_OK) {
        crowd_part_fail(part, redlock_client_error(part->guard));
    }
}

/* ----------------------------------------------------------------------------------- the cycles */

/* Returns the number of members that work: rounded up, so that a small part works too. */
static size_t count_working(const struct crowd_part *part) {
    return (part->count * part->plan->settings.working_percent + 99) / 100;
}

/* Returns when the next cycle of the part is due. */
static uint64_t next_due_ns(const struct crowd_part *part) {
    double rate = (double)(count_working(part) * part->plan->settings.rate);

    return part->working_from_ns + (uint64_t)((double)part->due * 1e9 / rate);
}

static void on_due(evutil_socket_t fd, short what, void *arg) {
    struct crowd_part *part = arg;
    uint64_t now = clock_now_ns();
    uint64_t due_ns = next_due_ns(part);

    (void)fd;
    (void)what;
    for (; due_ns <= now && !part->ending; due_ns = next_due_ns(part)) {
        crowd_member_cycle(&part->members[part->due++ % count_working(part)]);
    }
    if (!part->ending) {
        clock_arm(part->due_timer, (double)(due_ns - now) / 1e9);
    }
}

static void begin_working(struct crowd_part *part) {
    part->working_from_ns = clock_now_ns();
    part->due = 0;
    if (part->count > 0) {
        clock_arm(part->due_timer, 0);
    }
}

/* --------------------------------------------------------------------------------- the changes */

/* Returns the number of requests, releases or cancellations of the change. */
static size_t count_steps(const struct crowd_part *part) {
    switch (part->state) {
    case CROWD_GUARDED:
        return part->guard != NULL ? part->plan->guarded : 0;
    case CROWD_WAITING:
    case CROWD_HOLDING:
        return part->count;
    case CROWD_IDLE:
        return part->from == CROWD_WAITING || part->from == CROWD_HOLDING ? part->count : 0;
    case CROWD_WORKING:
    case CROWD_CUT:
        break;
    }
    return 0;
}

static void begin_step(struct crowd_part *part, size_t number) {
    if (part->state == CROWD_GUARDED) {
        guard(part, number);
    } else if (part->state == CROWD_WAITING) {
        crowd_member_wait(&part->members[number]);
    } else if (part->state == CROWD_HOLDING) {
        crowd_member_hold(&part->members[number]);
    } else if (part->from == CROWD_WAITING) {
        crowd_member_cancel(&part->members[number]);
    } else {
        crowd_member_let_go(&part->members[number]);
    }
}

static void settle(struct crowd_part *part) {
    part->step = SETTLED;
    part->plan->board->reached++;
}

static void go_on(struct crowd_part *part) {
    size_t steps = count_steps(part);

    while (part->begun < steps && part->pending < WINDOW && !part->ending) {
        begin_step(part, part->begun++);
    }
    if (part->begun == steps && part->pending == 0 && !part->ending) {
        settle(part);
    }
}

void crowd_part_expect(struct crowd_part *part) {
    part->pending++;
}

void crowd_part_answered(struct crowd_part *part) {
    part->pending--;
    if (part->step == CHANGING) {
        go_on(part);
    }
}

static void change_to(struct crowd_part *part, enum crowd_state wanted) {
    part->from = part->state;
    part->state = wanted;
    event_del(part->due_timer);
    if (wanted == CROWD_CUT) {
        begin_connecting(part, CUTTING);
    } else if (part->from == CROWD_CUT) {
        begin_connecting(part, CONNECTING);
    } else {
        if (wanted == CROWD_WORKING) {
            begin_working(part);
        }
        part->step = CHANGING;
        part->begun = 0;
        go_on(part);
    }
}

static void look(struct crowd_part *part) {
    enum crowd_state wanted = (enum crowd_state)part->plan->board->wanted;

    if ((part->step == CONNECTING && are_connected(part)) ||
        (part->step == CUTTING && are_cut(part))) {
        settle(part);
    } else if (part->step == SETTLED && wanted != part->state) {
        change_to(part, wanted);
    }
}

static void on_timer(evutil_socket_t fd, short what, void *arg) {
    struct crowd_part *part = arg;

    (void)fd;
    (void)what;
    look(part);
    if (!part->ending) {
        clock_arm(part->timer, POLL_S);
    }
}

/* --------------------------------------------------------------------------------- the process */

static void create_events(struct crowd_part *part, struct workers_orders orders) {
    part->timer = clock_timer(part->base, on_timer, part);
    part->due_timer = clock_timer(part->base, on_due, part);
    part->end = event_new(part->base, orders.end, EV_READ, on_end, part);
    if (part->end == NULL || event_add(part->end, NULL) != 0) {
        memory_end();
    }
}

static int run(struct crowd_part *part, bool has_guard) {
    begin_connecting(part, CONNECTING);
    clock_arm(part->timer, 0);
    if (has_guard) {
        part->guard = create_client(part);
    }
    if (event_base_dispatch(part->base) < 0) {
        fputs("redlock-bench: the event loop failed\n", stderr);
        return EXIT_FAILURE;
    }
    return part->given_up ? EXIT_FAILURE : EXIT_SUCCESS;
}

static struct crowd_part *create_part(const struct crowd_plan *plan, size_t index) {
    size_t first = index * plan->part_clients;
    size_t left = first < plan->settings.clients ? plan->settings.clients - first : 0;
    size_t count = left < plan->part_clients ? left : plan->part_clients;
    struct crowd_part *part = memory_take(1, sizeof(*part) + count * sizeof(part->members[0]));

    part->plan = plan;
    part->count = count;
    for (size_t i = 0; i < count; i++) {
        part->members[i] = (struct crowd_member){
            .part = part,
            .board = plan->board,
            .own_key = plan->own_keys[first + i],
            .guarded_key = plan->guarded_keys[(first + i) % plan->guarded],
            .ttl_ms = plan->settings.ttl_ms,
        };
    }
    return part;
}

int crowd_part_run(const struct crowd_plan *plan, size_t index, struct workers_orders orders) {
    struct crowd_part *part = create_part(plan, index);
    int status = EXIT_FAILURE;

    part->base = clock_create_base();
    if (part->base != NULL) {
        create_events(part, orders);
        status = run(part, index == 0);
        event_free(part->timer);
        event_free(part->due_timer);
        event_free(part->end);
        event_base_free(part->base);
    }
    free(part);
    return status;
}
