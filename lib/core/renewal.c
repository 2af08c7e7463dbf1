#include "core/renewal.h"

#include "base/nanos.h"
#include "core/backoff.h"

/* The longest time by which a renewal is early in order to share a turn with others. */
#define GRAIN_MAX (10 * NANOS_PER_MS)

/* A failed renewal is retried after 1/20 of the TTL at the earliest. */
#define RETRIES_MAX 20

static uint64_t grain(uint64_t ttl) {
    return nanos_max(nanos_min(GRAIN_MAX, ttl / 24), 1);
}

uint64_t renewal_interval(uint64_t ttl) {
    /* A third of the TTL leaves time for retries before the validity ends. */
    uint64_t third = ttl / 3;
    return nanos_max(third - third % grain(ttl), 1);
}

uint64_t renewal_draw_phase(uint64_t start, uint64_t ttl, uint64_t *seed) {
    uint64_t drawn = nanos_add(start, backoff_random(seed) % renewal_interval(ttl));
    /* Whole grains, so that locks that are due at nearly the same time share a turn. */
    return drawn - drawn % grain(ttl);
}

uint64_t renewal_next(uint64_t phase, uint64_t ttl, uint64_t start) {
    uint64_t interval = renewal_interval(ttl);
    /* Early rather than late: the lock's last instant within one interval. */
    return start < phase ? phase : nanos_add(start, interval - (start - phase) % interval);
}

uint64_t renewal_retry(uint64_t now, uint64_t left, uint64_t ttl, uint64_t *seed) {
    uint64_t least = nanos_max(left / 8 * 3, ttl / RETRIES_MAX);
    uint64_t at = nanos_add(now, least + backoff_draw(seed, left / 8));
    /* Rounded up, so that retries share a turn, too. */
    return nanos_add(at, grain(ttl) - at % grain(ttl));
}
