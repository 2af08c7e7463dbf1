/* What is to fail: the n-th call of one kind that the library makes, and perhaps the next ones. */
#ifndef REDLOCK_TORTURE_FAULT_H
#define REDLOCK_TORTURE_FAULT_H

#include <redlock.h>
#include <stdbool.h>
#include <stddef.h>

enum fault_kind {
    FAULT_NONE,
    FAULT_ALLOCATION,  /* of the library: its allocator hook */
    FAULT_EVENT_ADD,   /* of the library */
    FAULT_SODIUM_INIT, /* of the library */
    FAULT_SOCKET,      /* whoever calls it: hiredis, and libevent for name servers */
    FAULT_CONNECT,
    FAULT_HIREDIS, /* allocations of hiredis, from 1.0 on */
    FAULT_COUNT
};

const char *fault_name(enum fault_kind kind);

/* Why this kind cannot be tried with what is installed; NULL: it can. */
const char *fault_why_not(enum fault_kind kind);

/* From now on the calls are counted, and those from number `first` (from 1) to `last` fail. */
void fault_arm(enum fault_kind kind, size_t first, size_t last);

/* Whether a call of this kind has failed since. */
bool fault_has_struck(enum fault_kind kind);

/* Nothing fails any more. True when at least one call has failed. */
bool fault_disarm(void);

/* The allocator hook; `blocks` counts what is out. */
struct fault_heap {
    redlock_allocator hook;
    size_t blocks;
};
void fault_heap_init(struct fault_heap *heap);

#endif
