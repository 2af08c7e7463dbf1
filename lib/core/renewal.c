#include "core/renewal.h"

#include "base/nanos.h"
#include "core/backoff.h"

#include <stdbool.h>

/* The longest grain. */
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

/* Returns a bound, never reached, on the time by which rounding down makes an instant early. */
static uint64_t early_most(uint64_t ttl) {
    return renewal_interval(ttl) / TICKS_LEAST + grain(ttl);
}

static uint64_t round_down(uint64_t at, uint64_t ttl, const struct ticks *ticks) {
    uint64_t tick = ticks_round_down(ticks, at, renewal_interval(ttl));
    return tick - tick % grain(ttl);
}

uint64_t renewal_draw_phase(uint64_t start, uint64_t ttl, uint64_t *seed) {
    return nanos_add(start + early_most(ttl), 1 + backoff_random(seed) % renewal_interval(ttl));
}

uint64_t renewal_next(uint64_t *phase, uint64_t ttl, uint64_t start, const struct ticks *ticks) {
    uint64_t interval = renewal_interval(ttl), early = early_most(ttl);
    /* An early renewal: that at `start` was for this instant, shortly after it. */
    bool was_early = *phase >= start && *phase <= start + early;
    uint64_t span = nanos_sub(start + interval + early, *phase);
    *phase += span - span % interval;
    if (round_down(*phase, ttl, ticks) > start + interval) {
        /* Too late. If ticks have changed, the lock moves; otherwise its instant comes soon. */
        *phase -= was_early ? early : interval;
    }
    return round_down(*phase, ttl, ticks);
}

uint64_t renewal_retry(uint64_t now, uint64_t left, uint64_t ttl, uint64_t *seed,
                       const struct ticks *ticks) {
    uint64_t least = nanos_max(left / 8 * 3, ttl / RETRIES_MAX);
    uint64_t at = nanos_add(now, least + backoff_draw(seed, left / 8));
    return nanos_max(round_down(at, ttl, ticks), nanos_add(now, ttl / RETRIES_MAX));
}
