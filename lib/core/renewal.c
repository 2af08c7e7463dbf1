#include "core/renewal.h"

#include "base/nanos.h"
#include "core/backoff.h"

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

/* Returns a bound on the time by which rounding down makes an instant early; it is never reached.
 */
static uint64_t early_most(uint64_t ttl) {
    return renewal_interval(ttl) / TICKS_LEAST + grain(ttl);
}

static uint64_t round_down(uint64_t at, uint64_t ttl, const struct ticks *ticks) {
    uint64_t tick = ticks_round_down(ticks, at, renewal_interval(ttl));
    return tick - tick % grain(ttl);
}

uint64_t renewal_draw_phase(uint64_t start, uint64_t ttl, uint64_t *seed) {
    return nanos_add(start, backoff_random(seed) % renewal_interval(ttl));
}

uint64_t renewal_next(uint64_t *phase, uint64_t ttl, uint64_t start, const struct ticks *ticks) {
    uint64_t interval = renewal_interval(ttl);
    /*
     * A renewal may be early, so an instant shortly after `start` has been served by it. The last
     * instant of the lock that is early enough even so, once it is rounded down, is the next one.
     */
    uint64_t last = nanos_add(start, interval + early_most(ttl));
    uint64_t span = nanos_sub(last, *phase);
    *phase += span - span % interval;
    if (round_down(*phase, ttl, ticks) > start + interval) {
        /* Only after a late renewal, or if ticks have changed: move rather than renew twice. */
        *phase -= early_most(ttl);
    }
    return round_down(*phase, ttl, ticks);
}

uint64_t renewal_retry(uint64_t now, uint64_t left, uint64_t ttl, uint64_t *seed,
                       const struct ticks *ticks) {
    uint64_t least = nanos_max(left / 8 * 3, ttl / RETRIES_MAX);
    uint64_t at = nanos_add(now, least + backoff_draw(seed, left / 8));
    return nanos_max(round_down(at, ttl, ticks), nanos_add(now, ttl / RETRIES_MAX));
}
