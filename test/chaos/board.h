/*
 * Memory that all processes share, outside of what the nemeses can reach.
 *
 * The protected resource is a set for each key, as in Jepsen's lock-set workload: read it, sleep,
 * write it with one element more. What is stored is its newest element alone; each element's log
 * record names the one that was read before, so the set is the chain of them. A write that
 * overwrites another one therefore loses that one's element, as a copy of the whole set would.
 */
#ifndef REDLOCK_CHAOS_BOARD_H
#define REDLOCK_CHAOS_BOARD_H

#include "options.h"

#include <stdatomic.h>

struct board {
    atomic_ullong newest[MAX_KEYS];
    atomic_ullong acquired[MAX_CLIENTS]; /* how often each client got a lock */
};

#endif
