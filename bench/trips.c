#include "trips.h"

#include "clock.h"
#include "memory.h"

#include <event2/event.h>
#include <stdlib.h>

#define TTL_MS 10000
#define PAUSE_S 0.001

struct trips {
    struct trips_settings settings;
    redlock_client *client;
    struct event *timer; /* ends the pause */
    size_t begun;        /* number of trips */
    uint64_t began_ns;   /* start of the latest trip */
    struct histogram times;
};

static void go_on(struct trips *trips) {
    if (trips->begun < trips->settings.count) {
        clock_arm(trips->timer, PAUSE_S);
    } else {
        trips->settings.on_done(trips->settings.arg);
    }
}

static void on_released(redlock_lock *lock, redlock_status status, void *arg) {
    (void)lock;
    (void)status;
    go_on(arg);
}

static void on_acquired(redlock_lock *lock, redlock_status status, void *arg) {
    struct trips *trips = arg;

    if (status != REDLOCK_OK) {
        go_on(trips);
        return;
    }
    histogram_record(&trips->times, clock_now_ns() - trips->began_ns);
    if (redlock_release(lock, on_released, trips) != REDLOCK_OK) {
        go_on(trips);
    }
}

static void on_timer(evutil_socket_t fd, short what, void *arg) {
    struct trips *trips = arg;
    redlock_request request = REDLOCK_REQUEST_INIT;

    (void)fd;
    (void)what;
    request.key = trips->settings.key;
    request.ttl_ms = TTL_MS;
    trips->begun++;
    trips->began_ns = clock_now_ns();
    if (redlock_acquire(trips->client, &request, on_acquired, trips, NULL) != REDLOCK_OK) {
        go_on(trips);
    }
}

struct trips *trips_create(struct event_base *base, const struct trips_settings *settings) {
    struct trips *trips = memory_take(1, sizeof(*trips));

    trips->settings = *settings;
    histogram_init(&trips->times);
    trips->timer = clock_timer(base, on_timer, trips);
    return trips;
}

void trips_destroy(struct trips *trips) {
    if (trips != NULL) {
        event_free(trips->timer);
        free(trips);
    }
}

void trips_start(struct trips *trips, redlock_client *client) {
    trips->client = client;
    go_on(trips);
}

void trips_stop(struct trips *trips) {
    event_del(trips->timer);
}

const struct histogram *trips_times(const struct trips *trips) {
    return &trips->times;
}
