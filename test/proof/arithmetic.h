/*
 * What the arithmetic of the library promises, in ACSL, for Frama-C (arithmetic.sh). Each contract
 * stands at a declaration; the function is the library's own, from the file that arithmetic.c
 * includes. A contract without `requires` holds for all arguments.
 */
#ifndef REDLOCK_TEST_PROOF_ARITHMETIC_H
#define REDLOCK_TEST_PROOF_ARITHMETIC_H

#include <stdbool.h>
#include <stdint.h>

/*@
  logic integer never = 18446744073709551615;
  logic integer saturated(integer n) = n > never ? never : n < 0 ? 0 : n;
  logic integer two_ms = 2000000;
*/

/* ---- base/nanos.h ---- */

/*@ assigns \nothing;
    ensures \result == saturated(a + b); */
static inline uint64_t nanos_add(uint64_t a, uint64_t b);

/*@ assigns \nothing;
    ensures \result == saturated(a - b); */
static inline uint64_t nanos_sub(uint64_t a, uint64_t b);

/*@ assigns \nothing;
    ensures \result == \min(a, b); */
static inline uint64_t nanos_min(uint64_t a, uint64_t b);

/*@ assigns \nothing;
    ensures \result == \max(a, b); */
static inline uint64_t nanos_max(uint64_t a, uint64_t b);

/*@ assigns \nothing;
    ensures \result == saturated(ms * 1000000); */
static inline uint64_t nanos_from_ms(uint64_t ms);

/* Rounded down: never more than it is, and less by under 1 ms. */
/*@ assigns \nothing;
    ensures \result * 1000000 <= nanos < (\result + 1) * 1000000; */
static inline uint64_t nanos_to_ms(uint64_t nanos);

/* ---- core/quorum.h ---- */

/*@ axiomatic bits {
      logic integer bits(integer mask);
      axiom bits_range: \forall integer mask; 0 <= bits(mask) <= 32;
      axiom bits_of_none: bits(0) == 0;
    } */

/*@ assigns \nothing;
    ensures \result == bits(mask); */
int __builtin_popcount(unsigned mask);

/* The smallest number that is more than half: two quorums of one list share a node. */
/*@ assigns \nothing;
    ensures 2 * \result > nodes && 2 * (\result - 1) <= nodes;
    ensures \forall integer a, b; a >= \result && b >= \result ==> a + b > nodes; */
static inline uint32_t quorum_of(uint32_t nodes);

/*@ assigns \nothing;
    ensures \result <==> 2 * votes > size; */
static inline bool quorum_is_reached(uint32_t size, uint32_t votes);

/* Blocked is what no further votes can change. */
/*@ requires against <= size;
    assigns \nothing;
    ensures \result <==> !(\exists integer votes; votes <= size - against && 2 * votes > size); */
static inline bool quorum_is_blocked(uint32_t size, uint32_t against);

/*@ assigns \nothing;
    ensures \result <==> list == 0 || 2 * bits(list & nodes) > bits(list); */
static inline bool quorum_is_met(uint32_t list, uint32_t nodes);

/* ---- wire/fence.h ---- */

/* A range of 64 ends at the counter; no fence is 0, unless there is no counter. */
/*@ assigns \nothing;
    ensures counter >= 64 ==> \result + 63 == counter;
    ensures counter > 0 ==> 0 < \result <= counter;
    ensures counter == 0 ==> \result == 0; */
static inline uint64_t fence_first(uint64_t counter);

/* A range that a clock begins lies below 2^53, as do 2^34 - 1 ranges after it. */
/*@ assigns \nothing;
    ensures 1 <= \result && \result + (0x400000000 - 1) * 64 < 0x20000000000000;
    ensures \result <= \max(wall_us, 1); */
static inline uint64_t fence_from_clock(uint64_t wall_us);

/* ---- core/validity.c ---- */

/* By real numbers: the difference to floating point is the business of floats.smt2. */
/*@ requires 0 <= drift <= 0.5;
    assigns \nothing;
    ensures \result >= ttl * drift + two_ms;
    ensures ttl * drift < 0x7fffffffffffffff ==> \result < ttl * drift + two_ms + 1; */
uint64_t validity_drift(uint64_t ttl, double drift);

/* Never more than the TTL less the drift, and never before the start. */
/*@ requires 0 <= drift <= 0.5;
    assigns \nothing;
    ensures start <= \result;
    ensures \result <= start + ttl;
    ensures ttl >= ttl * drift + two_ms ==> \result <= start + ttl - ttl * drift - two_ms;
    ensures ttl < ttl * drift + two_ms ==> \result == start;
    ensures start + ttl <= never && ttl * drift < 0x7fffffffffffffff ==>
            \result > start + ttl - ttl * drift - two_ms - 1; */
uint64_t validity_end(uint64_t start, uint64_t ttl, double drift);

/* Converts nothing that is too large for its type. */
/*@ requires 0 <= drift <= 0.5;
    assigns \nothing; */
uint64_t validity_ttl(uint64_t validity, double drift);

#endif
