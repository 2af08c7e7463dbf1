#include "window.h"

#include <string.h>

#define TURN_MS 60000

static void subtract(redlock_histogram *from, const redlock_histogram *what) {
    from->count -= what->count;
    from->sum_ns -= what->sum_ns;
    for (size_t i = 0; i < REDLOCK_HISTOGRAM_BUCKETS; i++) {
        from->buckets[i] -= what->buckets[i];
    }
}

void window_init(struct window *window, uint64_t now_ms) {
    memset(window, 0, sizeof(*window));
    window->since_ms = now_ms;
}

void window_turn(struct window *window, const redlock_client *client, uint64_t now_ms) {
    if (now_ms - window->since_ms < TURN_MS) {
        return;
    }
    window->older = window->newer;
    window->newer.size = sizeof(window->newer);
    redlock_client_stats(client, &window->newer);
    window->since_ms = now_ms;
}

void window_apply(const struct window *window, redlock_stats *stats) {
    subtract(&stats->acquire, &window->older.acquire);
    subtract(&stats->wait, &window->older.wait);
    subtract(&stats->renew, &window->older.renew);
    subtract(&stats->release, &window->older.release);
}
