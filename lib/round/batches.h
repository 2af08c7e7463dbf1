/*
 * The calls that are collected during a turn of the loop, so that many locks share a command, and
 * the order in which they are sent.
 */
#ifndef REDLOCK_ROUND_BATCHES_H
#define REDLOCK_ROUND_BATCHES_H

#include "node/context.h"
#include "node/members.h"
#include "round/batch.h"
#include "round/flight.h"
#include "wire/script.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

/* Bits of the filter over the keys of open batches. */
#define BATCHES_KEY_BITS 4096

STAILQ_HEAD(batch_list, batch);

/* The batches of a client. */
struct batches {
    struct batch_shared shared;
    struct batch_list open;               /* calls of this turn that take more locks */
    struct batch_list full;               /* calls of this turn that are full */
    uint64_t keys[BATCHES_KEY_BITS / 64]; /* filter, by hash, of the keys of these calls */
};

void batches_init(struct batches *batches, struct context *context, const struct members *members);
void batches_finish(struct batches *batches);

/*
 * Adds a flight to a call of `script`, which is sent at the end of this turn to those of `nodes`
 * that are members. When out of memory, those nodes vote UNREACHABLE inside this call.
 */
void batches_add(struct batches *batches, enum script script, uint32_t nodes,
                 struct flight *flight);

/*
 * Sends a call of `script` for this flight alone, now, to those of `nodes` that are members. Votes
 * may be cast inside this call.
 */
void batches_send_alone(struct batches *batches, enum script script, uint32_t nodes,
                        struct flight *flight);

/*
 * Returns whether a collected call may name one of these keys; a filter, with rare false positives.
 * Collected calls are sent before another command for the key: a key is released before it is
 * acquired again. (The exception is a node that lacks the script, and is sent the call again.)
 */
bool batches_may_hold(const struct batches *batches, const struct key *keys);

/* Returns whether a call that reads `reads` keys and has `bytes` bytes is full. */
bool batches_are_full(const struct batches *batches, unsigned reads, size_t bytes);

/* Sends the collected calls; those that take keys go last. */
void batches_send(struct batches *batches);

#endif
