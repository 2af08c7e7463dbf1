/*
 * How long a lock is certain to be ours: what is left of its TTL, counted from before the first
 * byte was sent, less the drift ("Distributed Locks with Redis", The Redlock Algorithm, step 3
 * and the footnote on clock drift). All in nanoseconds.
 */
#ifndef REDLOCK_CORE_VALIDITY_H
#define REDLOCK_CORE_VALIDITY_H

#include <stdint.h>

/* ttl * drift + 2 ms, rounded up: 2 ms for Redis' expiry precision and that of small TTLs. */
uint64_t validity_drift(uint64_t ttl, double drift);

/* The TTL that leaves a validity of so long, or a little more. */
uint64_t validity_ttl(uint64_t validity, double drift);

/* The instant at which a lock whose round began at `start` stops being certain. */
uint64_t validity_end(uint64_t start, uint64_t ttl, double drift);

#endif
