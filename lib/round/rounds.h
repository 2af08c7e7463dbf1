/*
 * The rounds of a client. An operation goes in, votes come out: this module chooses between a SET,
 * which is sent now, and a script's call, which is collected during a turn of the loop, so that
 * many locks share a command. It decides the order in which the calls of a turn are sent.
 */
#ifndef REDLOCK_ROUND_ROUNDS_H
#define REDLOCK_ROUND_ROUNDS_H

#include "round/call.h"
#include "round/operation.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

/* Bits of the filter over the keys of collected calls. */
#define ROUNDS_KEY_BITS 4096

STAILQ_HEAD(call_list, call);

struct rounds {
    struct operations operations;
    struct calls calls;
    struct call_list open;               /* calls of this turn that take more locks */
    struct call_list full;               /* calls of this turn that are full */
    uint64_t keys[ROUNDS_KEY_BITS / 64]; /* filter, by hash, of the keys of these calls */
};

void rounds_init(struct rounds *rounds, struct context *context, const struct members *members);
void rounds_finish(struct rounds *rounds);

/*
 * Sends the command of an operation to its nodes. Votes may be cast inside this function: a SET and
 * a top-up are sent now, all other commands at the end of the turn. When out of memory, the nodes
 * vote UNREACHABLE.
 *
 * Collected calls are sent before another command for the same key: a key is released before it is
 * acquired again. (The exception is a node that lacks the script, and is sent the call again.)
 */
void rounds_add(struct rounds *rounds, struct operation *operation);

/* Returns whether a call that reads `reads` keys and has `bytes` bytes is full. */
bool rounds_call_is_full(const struct rounds *rounds, unsigned reads, size_t bytes);

/* Sends the collected calls; those that take keys go last. */
void rounds_send(struct rounds *rounds);

#endif
