/* Latencies of the last one to two minutes: differences of two copies of the library's histograms.
 */
#ifndef WINDOW_H
#define WINDOW_H

#include <redlock.h>
#include <stdint.h>

struct window {
    redlock_stats older; /* copy from one to two minutes ago, or from the start */
    redlock_stats newer; /* copy from up to a minute ago */
    uint64_t since_ms;   /* time of `newer` */
};

/* Begins with an empty window. */
void window_init(struct window *window, uint64_t now_ms);

/* Goes on by a minute where one is over. To be called now and then, also when nobody looks. */
void window_turn(struct window *window, const redlock_client *client, uint64_t now_ms);

/* Reduces the histograms of fresh statistics to the durations within the window. */
void window_apply(const struct window *window, redlock_stats *stats);

#endif
