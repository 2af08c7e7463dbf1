#include "core/ticks.h"

#include "base/nanos.h"
#include "core/backoff.h"

#include <assert.h>
#include <stdbool.h>

/*
 * The number of locks in a tick, on average. Their phases are random, so the fullest of these ticks
 * still rarely have more locks than a call may serve (SCRIPT_MAX_KEYS, 64). Inside the bounds the
 * number of ticks stays as it is, because each change moves locks to other ticks.
 */
#define LOCKS_LEAST 28
#define LOCKS_WANTED 44
#define LOCKS_MOST 56

/* The longest interval is far shorter, and the sum of an offset and an instant does not wrap. */
#define OFFSET_MAX (UINT64_C(1) << 62)

static void fit(struct ticks *ticks) {
    uint64_t count = ticks->count;
    bool fits = ticks->locks <= LOCKS_MOST * count &&
                (ticks->locks >= LOCKS_LEAST * count || count == TICKS_LEAST);
    if (!fits) {
        ticks->count = (uint32_t)nanos_max(ticks->locks / LOCKS_WANTED, TICKS_LEAST);
    }
}

void ticks_init(struct ticks *ticks, uint64_t *seed) {
    *ticks = (struct ticks){.offset = backoff_random(seed) % OFFSET_MAX, .count = TICKS_LEAST};
}

void ticks_add(struct ticks *ticks) {
    ticks->locks++;
    fit(ticks);
}

void ticks_remove(struct ticks *ticks) {
    assert(ticks->locks > 0);
    ticks->locks--;
    fit(ticks);
}

uint64_t ticks_round_down(const struct ticks *ticks, uint64_t at, uint64_t interval) {
    uint64_t length = nanos_max(interval / ticks->count, 1);
    return at - (at + ticks->offset) % interval % length;
}
