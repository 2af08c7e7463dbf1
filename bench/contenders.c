/*
 * A process waits until its nodes are connected, reports that on the board, and waits for the order
 * to begin. From then on its contenders run by themselves until the order to end: then the client
 * is closed, and with it all requests and locks.
 *
 * A contender requests its key again in the turn in which it releases the key, without waiting for
 * the result: so it always either waits or holds, and its mean wait is the time that the others
 * take. A contender that polls does wait for the result: otherwise its request would follow its
 * release on each connection, before any other, and only one contender would be served. After an
 * error a contender pauses for a moment.
 */
#include "contenders.h"

#include "client.h"
#include "clock.h"
#include "memory.h"
#include "trips.h"

#include <event2/event.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/*
 * Many processes that start at once keep a small machine busy until all are connected. So each
 * looks less often, and waits longer.
 */
#define READY_POLL_LEAST_S 0.005
#define READY_POLL_OF_PROCESS_S 0.0002
#define READY_LIMIT_S 5.0
#define READY_LIMIT_OF_PROCESS_S 0.02
#define REST_S 0.01
/*
 * The processes begin one after the other: to open the channels of one takes 3 ms of CPU time, and
 * if a thousand did so at once on few cores, answers would come too late.
 */
#define BEGIN_SPREAD_S 0.005
#define ROUND_TRIPS 200

/* The bounds of the random delay before a retry, for holds of about a millisecond. */
#define RETRY_DELAY_MS 2
#define RETRY_DELAY_MAX_MS 10

enum state { RESTING, WAITING, HOLDING };

struct contender {
    struct contenders *all;
    size_t number; /* number on the board */
    enum state state;
    redlock_lock *lock;      /* while held */
    uint64_t held_until_ns;  /* while held */
    struct event *timer;     /* ends the hold or the pause */
    unsigned releasing;      /* releases without an answer */
    uint64_t released_at_ns; /* instant of the latest release */
};

struct contenders {
    const struct contenders_settings *settings;
    struct board *board;
    size_t process;
    struct event_base *base;
    redlock_client *client;
    struct event *ready_timer;
    struct trips *trips; /* first process only */
    struct event *begin; /* the orders */
    struct event *end;
    uint64_t connecting_from_ns;
    bool ending;
    bool given_up;
    size_t count;
    struct contender list[];
};

/* ----------------------------------------------------------------------------- the contenders */

static void wait_again(struct contender *contender);

static void rest(struct contender *contender, const char *error) {
    contender->state = RESTING;
    board_fail(contender->all->board, error);
    clock_arm(contender->timer, REST_S);
}

static void on_released(redlock_lock *lock, redlock_status status, void *arg) {
    struct contender *contender = arg;
    const struct contenders *all = contender->all;

    if (--contender->releasing == 0) {
        board_record_release(all->board, all->process, clock_now_ns() - contender->released_at_ns);
    }
    if (status != REDLOCK_OK) {
        board_fail(all->board, redlock_explain(lock));
    }
    if (all->settings->polls && !all->ending) {
        wait_again(contender);
    }
}

static void leave(struct contender *contender) {
    contender->state = RESTING;
    board_leave(contender->all->board, contender->number);
}

static void release(struct contender *contender) {
    struct contenders *all = contender->all;

    leave(contender);
    contender->releasing++;
    contender->released_at_ns = clock_now_ns();
    if (redlock_release(contender->lock, on_released, contender) != REDLOCK_OK) {
        contender->releasing--;
        rest(contender, redlock_client_error(all->client));
    } else if (!all->settings->polls) {
        wait_again(contender);
    }
}

static void on_lost(redlock_lock *lock, redlock_status status, void *arg) {
    struct contender *contender = arg;

    if (contender->all->ending) {
        return; /* the contender has left the key already */
    }
    board_fail(contender->all->board, redlock_strerror(status));
    event_del(contender->timer);
    leave(contender);
    redlock_release(lock, NULL, NULL);
    wait_again(contender);
}

/* Waits for the rest of the hold: libevent rounds, so the timer may fire too early. */
static void hold(struct contender *contender) {
    uint64_t now_ns = clock_now_ns();

    if (now_ns < contender->held_until_ns) {
        clock_arm(contender->timer, (double)(contender->held_until_ns - now_ns) / 1e9);
    } else {
        release(contender);
    }
}

static void on_acquired(redlock_lock *lock, redlock_status status, void *arg) {
    struct contender *contender = arg;
    struct contenders *all = contender->all;

    if (all->ending) {
        return; /* the client is closing, and its locks with it */
    }
    if (status != REDLOCK_OK) {
        rest(contender, redlock_explain(lock));
        return;
    }
    board_enter(all->board, all->process, contender->number);
    contender->state = HOLDING;
    contender->lock = lock;
    contender->held_until_ns = clock_now_ns() + all->settings->hold_us * 1000;
    hold(contender);
}

static void wait_again(struct contender *contender) {
    struct contenders *all = contender->all;
    redlock_request request = REDLOCK_REQUEST_INIT;

    request.key = board_key_of(all->board, contender->number)->name;
    request.ttl_ms = all->settings->ttl_ms;
    request.wait_ms = REDLOCK_FOREVER;
    request.retries = all->settings->polls ? UINT32_MAX : 0;
    request.watchdog = true;
    request.fenced = all->settings->fenced;
    request.on_lost = on_lost;
    request.on_lost_arg = contender;
    contender->state = WAITING;
    board_wait(all->board, contender->number);
    if (redlock_acquire(all->client, &request, on_acquired, contender, NULL) != REDLOCK_OK) {
        rest(contender, redlock_client_error(all->client));
    }
}

static void on_timer(evutil_socket_t fd, short what, void *arg) {
    struct contender *contender = arg;

    (void)fd;
    (void)what;
    if (contender->state == HOLDING) {
        hold(contender);
    } else {
        wait_again(contender);
    }
}

/* --------------------------------------------------------------------------------- the orders */

static void on_closed(void *arg) {
    struct contenders *all = arg;

    event_base_loopbreak(all->base);
}

static void end_all(struct contenders *all) {
    all->ending = true;
    event_del(all->ready_timer);
    if (all->trips != NULL) {
        trips_stop(all->trips);
    }
    event_del(all->begin);
    event_del(all->end);
    for (size_t i = 0; i < all->count; i++) {
        event_del(all->list[i].timer);
        if (all->list[i].state == HOLDING) {
            leave(&all->list[i]);
        }
    }
    redlock_client_close(all->client, on_closed, all);
}

static void on_end(evutil_socket_t fd, short what, void *arg) {
    (void)fd;
    (void)what;
    end_all(arg);
}

static void on_begin(evutil_socket_t fd, short what, void *arg) {
    struct contenders *all = arg;

    (void)fd;
    (void)what;
    event_del(all->begin);
    for (size_t i = 0; i < all->count; i++) {
        clock_arm(all->list[i].timer, contenders_begin_s(all->process));
    }
}

static void await_begin(struct contenders *all) {
    event_add(all->begin, NULL);
    all->board->ready++;
}

static void give_up(struct contenders *all) {
    all->given_up = true;
    end_all(all);
}

static void on_trips_done(void *arg) {
    struct contenders *all = arg;
    const struct histogram *times = trips_times(all->trips);

    if (!all->ending) {
        all->board->round_trip_us =
            times->count > 0 ? (double)histogram_quantile(times, 0.50) / 1e3 : NAN;
        await_begin(all);
    }
}

static double ready_poll_s(const struct contenders *all) {
    return READY_POLL_LEAST_S + READY_POLL_OF_PROCESS_S * (double)all->board->shape.processes;
}

/*
 * Waits until all nodes are connected; the first process also until all others are ready, and then
 * it measures the round trips. Only the first process prints which nodes are not connected.
 */
static void on_ready_timer(evutil_socket_t fd, short what, void *arg) {
    struct contenders *all = arg;
    double limit_s = READY_LIMIT_S + READY_LIMIT_OF_PROCESS_S * (double)all->board->shape.processes;
    bool over = (double)(clock_now_ns() - all->connecting_from_ns) / 1e9 > limit_s;
    bool connected = client_is_ready(all->client, over && all->trips != NULL ? stderr : NULL);

    (void)fd;
    (void)what;
    if (connected && all->trips == NULL) {
        await_begin(all);
    } else if (connected && all->board->ready + 1 == all->board->shape.processes) {
        trips_start(all->trips, all->client);
    } else if (over) {
        give_up(all);
    } else {
        clock_arm(all->ready_timer, ready_poll_s(all));
    }
}

/* --------------------------------------------------------------------------------- the process */

static redlock_client *create_client(const struct contenders *all) {
    const struct contenders_settings *settings = all->settings;
    redlock_options options = client_options(0, settings->ttl_ms, settings->node_timeout_ms);

    options.retry_delay_ms = RETRY_DELAY_MS;
    options.retry_delay_max_ms = RETRY_DELAY_MAX_MS;
    return client_create(all->base, settings->nodes, settings->node_count, options);
}

static bool create_events(struct contenders *all, struct workers_orders orders) {
    size_t first = board_first_contender(all->board, all->process);

    if (all->process == 0) {
        const struct trips_settings settings = {board_key_of(all->board, 0)->name, ROUND_TRIPS,
                                                on_trips_done, all};
        all->trips = trips_create(all->base, &settings);
    }
    all->ready_timer = clock_timer(all->base, on_ready_timer, all);
    all->begin = event_new(all->base, orders.begin, EV_READ, on_begin, all);
    all->end = event_new(all->base, orders.end, EV_READ, on_end, all);
    if (all->begin == NULL || all->end == NULL) {
        return false;
    }
    for (size_t i = 0; i < all->count; i++) {
        struct contender *contender = &all->list[i];

        contender->all = all;
        contender->number = first + i;
        contender->timer = clock_timer(all->base, on_timer, contender);
    }
    return event_add(all->end, NULL) == 0;
}

static void free_event(struct event *event) {
    if (event != NULL) {
        event_free(event);
    }
}

static void destroy(struct contenders *all) {
    for (size_t i = 0; i < all->count; i++) {
        free_event(all->list[i].timer);
    }
    trips_destroy(all->trips);
    free_event(all->ready_timer);
    free_event(all->begin);
    free_event(all->end);
    if (all->base != NULL) {
        event_base_free(all->base);
    }
    free(all);
}

static int run(struct contenders *all) {
    all->client = create_client(all);
    if (all->client == NULL) {
        return EXIT_FAILURE;
    }
    all->connecting_from_ns = clock_now_ns();
    clock_arm(all->ready_timer, ready_poll_s(all));
    if (event_base_dispatch(all->base) < 0) {
        fputs("redlock-bench: the event loop failed\n", stderr);
        return EXIT_FAILURE;
    }
    return all->given_up ? EXIT_FAILURE : EXIT_SUCCESS;
}

int contenders_run(const struct contenders_settings *settings, size_t process,
                   struct workers_orders orders) {
    struct board *board = settings->board;
    size_t count =
        board_first_contender(board, process + 1) - board_first_contender(board, process);
    struct contenders *all = memory_take(1, sizeof(*all) + count * sizeof(all->list[0]));
    int status = EXIT_FAILURE;

    all->settings = settings;
    all->board = board;
    all->process = process;
    all->count = count;
    all->base = clock_create_base();
    if (all->base != NULL && create_events(all, orders)) {
        status = run(all);
    } else {
        fputs("redlock-bench: cannot make the events of a process\n", stderr);
    }
    destroy(all);
    return status;
}

double contenders_begin_s(size_t processes) {
    return BEGIN_SPREAD_S * (double)processes;
}
