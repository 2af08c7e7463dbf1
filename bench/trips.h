/*
 * Round trips of the library on an otherwise idle network: acquisitions of a key that nobody else
 * wants, each after a pause of 1 ms.
 */
#ifndef BENCH_TRIPS_H
#define BENCH_TRIPS_H

#include "histogram.h"

#include <redlock.h>
#include <stddef.h>

struct trips;

struct trips_settings {
    const char *key; /* must live as long as the trips */
    size_t count;
    void (*on_done)(void *arg); /* called once, not inside trips_start */
    void *arg;
};

/* Creates the trips of a client. */
struct trips *trips_create(struct event_base *base, const struct trips_settings *settings);
void trips_destroy(struct trips *trips); /* NULL is allowed; the client must be gone */

void trips_start(struct trips *trips, redlock_client *client);

/* Begins no more acquisitions. */
void trips_stop(struct trips *trips);

/* Returns the times from the request to its callback, in ns, of the trips that succeeded. */
const struct histogram *trips_times(const struct trips *trips);

#endif
