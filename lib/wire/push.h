/*
 * The message by which a server notifies a waiter (scripts/parts/queue.lua): either the server has
 * granted it one or several keys, or the key stays open to all clients for a while, after which the
 * waiter should ask again.
 */
#ifndef REDLOCK_WIRE_PUSH_H
#define REDLOCK_WIRE_PUSH_H

#include "wire/command.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct push {
    uint64_t expires_ms; /* expiry of the key by the server's clock; 0: not granted */
    uint64_t time_us;    /* the server's clock when it sent the message */
    uint64_t fence;      /* counter of the key; 0: not fenced */
    bool is_share;       /* whether the key is granted to a reader */
    uint64_t open_ms;    /* not granted: time after which to ask again */
    const char *token;   /* TOKEN_LENGTH digits, in the message */
    const char *key;     /* the key, or the first of several, in the message */
    size_t key_length;
    const char *more; /* names of further keys, in the message */
    size_t more_length;
};

/*
 * Parses a message; `push` points into it. Returns false when the message is malformed.
 */
bool push_read(const char *text, size_t length, struct push *push);

/* Advances push->key to the next of several keys. Returns false when there is none. */
bool push_next_key(struct push *push);

#endif
