/*
 * Memory shared by all processes, out of the nemeses' reach.
 *
 * The protected resource is a set for each key, as in Jepsen's lock-set workload: read it, sleep,
 * write it with one element more. Only the newest element of a set is stored; each element's log
 * record names the element that was read before, so the set is the chain of elements. A write over
 * another write therefore loses the other's element, as a copy of the whole set would.
 */
#ifndef REDLOCK_CHAOS_BOARD_H
#define REDLOCK_CHAOS_BOARD_H

#include "options.h"

#include <stdatomic.h>

struct board {
    atomic_ullong newest[MAX_KEYS];
    atomic_ullong acquired[MAX_CLIENTS]; /* number of locks that each client has acquired */
    atomic_ullong pushed;                /* number of acquisitions by the masters' pushes */
    atomic_ullong handed_over; /* number of locks handed over to the next request of their client */
};

#endif
