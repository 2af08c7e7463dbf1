/*
 * Calls of a script that are collected during a turn of the loop: the releases, or renewals, of
 * many locks go to a node as one command. Each lock's answer is a vote in its own round.
 */
#ifndef REDLOCK_ROUND_BATCH_H
#define REDLOCK_ROUND_BATCH_H

#include "base/pool.h"
#include "node/context.h"
#include "node/members.h"
#include "round/flight.h"
#include "wire/script.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

/* Bits of the filter over the keys of open batches. */
#define BATCHES_KEY_BITS 4096

struct batch;
STAILQ_HEAD(batch_list, batch);

/* The batches of a client. */
struct batches {
    struct context *context;
    const struct members *members;
    struct pool pool;
    struct batch_list open;               /* calls that are being collected in this turn */
    struct batch_list full;               /* calls of this turn that take no further lock */
    uint64_t keys[BATCHES_KEY_BITS / 64]; /* by hash: keys that calls of this turn may name */
};

void batches_init(struct batches *batches, struct context *context, const struct members *members);
void batches_finish(struct batches *batches);

/* Has a script called for a flight at those of `nodes` that are members, in this turn. */
void batches_add(struct batches *batches, enum script script, uint32_t nodes,
                 struct flight *flight);

/* Has a script called for a flight in a call of its own, now. */
void batches_send_alone(struct batches *batches, enum script script, uint32_t nodes,
                        struct flight *flight);

/*
 * Whether a call for one of these keys may be waiting to be sent; true without need, rarely. Then
 * it is to be sent before another command for the key: a key is released before it is acquired
 * again. (A node that lacks the script is sent the call once more, and is the exception.)
 */
bool batches_may_hold(const struct batches *batches, const struct key *keys);

/* Whether a call that looks at so many keys, and has so many bytes, takes no further lock. */
bool batches_are_full(const struct batches *batches, unsigned reads, size_t bytes);

/* Sends the calls that were collected: those that take keys go last. */
void batches_send(struct batches *batches);

#endif
