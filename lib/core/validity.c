#include "core/validity.h"

#include "base/nanos.h"

#define FIXED_DRIFT (2 * NANOS_PER_MS)

uint64_t validity_drift(uint64_t ttl, double drift) {
    double share = (double)ttl * drift;
    /* Too large to be converted back to an integer. */
    if (share >= (double)(NANOS_NEVER / 2)) {
        return NANOS_NEVER;
    }
    /* Up, because a drift that is too small would make the validity too long. */
    uint64_t rounded_up = (uint64_t)share + ((double)(uint64_t)share < share ? 1 : 0);
    return nanos_add(rounded_up, FIXED_DRIFT);
}

uint64_t validity_end(uint64_t start, uint64_t ttl, double drift) {
    /* Ends at `start` if the drift is the whole TTL: nanos_sub stops at 0. */
    return nanos_add(start, nanos_sub(ttl, validity_drift(ttl, drift)));
}

uint64_t validity_ttl(uint64_t validity, double drift) {
    double ttl = (double)nanos_add(validity, FIXED_DRIFT) / (1 - drift);
    return ttl >= (double)(NANOS_NEVER / 2) ? NANOS_NEVER : nanos_add((uint64_t)ttl, NANOS_PER_MS);
}
