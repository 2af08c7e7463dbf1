#include "core/ticks.h"

#include "base/nanos.h"
#include "core/backoff.h"

#include <assert.h>
#include <stdbool.h>

/*
 * The most locks in a tick, on average. Their phases are random, so the fullest of these ticks
 * still rarely have more locks than a call may serve (SCRIPT_MAX_KEYS, 64).
 */
#define LOCKS_MOST 56

/* The longest interval is far shorter, and the sum of an offset and an instant does not wrap. */
#define OFFSET_MAX (UINT64_C(1) << 62)

static void fit(struct ticks *ticks) {
    uint64_t count = ticks->count;
    uint32_t most = ticks->most;
    /* From half full to full the number of ticks stays: each change moves locks to other ticks. */
    bool fits =
        ticks->locks <= most * count && (ticks->locks >= most / 2 * count || count == TICKS_LEAST);
    if (!fits) {
        ticks->count = (uint32_t)nanos_max(ticks->locks / (most - most / 5), TICKS_LEAST);
    }
}

void ticks_init(struct ticks *ticks, uint32_t max_commands, uint64_t *seed) {
    /* Each lock of a tick may have to be topped up, by a command of its own. */
    uint32_t most = max_commands / 4;
    *ticks = (struct ticks){.offset = backoff_random(seed) % OFFSET_MAX,
                            .count = TICKS_LEAST,
                            .most = most < LOCKS_MOST ? most : LOCKS_MOST};
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
