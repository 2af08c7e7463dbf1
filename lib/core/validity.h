/*
 * Validity: the time for which a lock is certain to be ours. It is the rest of the TTL, counted
 * from before the first byte was sent, less the drift ("Distributed Locks with Redis", The Redlock
 * Algorithm, step 3 and the footnote on clock drift). All times are in nanoseconds.
 */
#ifndef REDLOCK_CORE_VALIDITY_H
#define REDLOCK_CORE_VALIDITY_H

#include <stdint.h>

/*
 * Returns ttl * drift + 2 ms, rounded up. The 2 ms cover small TTLs, and Redis's precision: from
 * 8.0 on, a key may be gone up to 1 ms before its TTL is over.
 */
uint64_t validity_drift(uint64_t ttl, double drift);

/* Returns a TTL that leaves this validity, or a little more. */
uint64_t validity_ttl(uint64_t validity, double drift);

/* Returns the instant at which the validity of a lock ends, if its round began at `start`. */
uint64_t validity_end(uint64_t start, uint64_t ttl, double drift);

#endif
