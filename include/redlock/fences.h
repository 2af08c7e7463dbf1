/*
 * How a resource refuses the holders of lost locks. Part of redlock.h, which includes it. See
 * examples/fences.md.
 */
#ifndef REDLOCK_FENCES_H
#define REDLOCK_FENCES_H

#include "../redlock.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Reports the result of redlock_check_fence. Statuses:
 *   REDLOCK_OK         no later range of fences had been given when the nodes answered
 *   REDLOCK_ELOST      a later range was given, or is about to be
 *   REDLOCK_ENOQUORUM  not known: too few nodes answered
 *   REDLOCK_ECLOSED
 */
typedef void redlock_fence_cb(redlock_status status, void *arg);

/*
 * Asks the nodes whether `fence` is still the newest fence of a key, and calls `on_fence`
 * (required) within node_timeout_ms; a new client connects first, as for redlock_inspect. For a
 * resource that cannot store a number; otherwise use redlock_gate. `key_length` 0: `key` is a C
 * string.
 *
 * The fences of a range are newest together (redlock_fence): a late message of an earlier holder of
 * the same client passes, unless max_local_handoffs is 0.
 *
 * A counter that is no number below 2^53 is no answer. A deleted or expired one counts as 0: an old
 * fence may then pass as the newest until the next fenced lock.
 */
REDLOCK_EXPORT redlock_status redlock_check_fence(redlock_client *client, const char *key,
                                                  size_t key_length, uint64_t fence,
                                                  redlock_fence_cb *on_fence, void *arg);

/*
 * The record that a resource keeps with each of its objects, in the same transaction, to refuse
 * holders of lost locks. Initialise with REDLOCK_GATE_INIT.
 */
typedef struct redlock_gate {
    uint64_t fence; /* largest fence seen so far */
} redlock_gate;

/* A gate that has seen no fence. */
#define REDLOCK_GATE_INIT                                                                          \
    { 0 }

/* Returns true, and remembers `fence`, unless a larger one was accepted before. */
static inline bool redlock_gate_admit(redlock_gate *gate, uint64_t fence) {
    if (fence < gate->fence) {
        return false;
    }
    gate->fence = fence;
    return true;
}

#ifdef __cplusplus
}
#endif

#endif
