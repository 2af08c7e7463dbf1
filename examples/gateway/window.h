/* Latencies of the last 1 to 2 minutes: differences of two copies of the library's histograms. */
#ifndef WINDOW_H
#define WINDOW_H

#include <redlock.h>
#include <stdint.h>

struct window {
    redlock_stats older; /* copy from 1 to 2 minutes ago, or from the start */
    redlock_stats newer; /* copy from up to 1 minute ago */
    uint64_t since_ms;   /* time of `newer` */
};

/* Initializes an empty window. */
void window_init(struct window *window, uint64_t now_ms);

/* Advances the window when a minute is over. Call it regularly, even if nobody looks. */
void window_turn(struct window *window, const redlock_client *client, uint64_t now_ms);

/* Reduces the histograms of current statistics to the durations within the window. */
void window_apply(const struct window *window, redlock_stats *stats);

#endif
