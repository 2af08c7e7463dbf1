/*
 * The message by which a server tells a waiter that it has given the key, or several, to it, or
 * that the key is left to anybody for a while, after which the waiter is to ask again
 * (scripts/parts/queue.lua).
 */
#ifndef REDLOCK_WIRE_PUSH_H
#define REDLOCK_WIRE_PUSH_H

#include "wire/command.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct push {
    uint64_t expires_ms; /* the key's expiry, by the server's clock; 0: the key is not given */
    uint64_t time_us;    /* the server's clock when it gave the key */
    uint64_t fence;      /* the key's counter; 0: not fenced */
    bool is_share;       /* whether the key is given to a reader */
    uint64_t open_ms;    /* not given: the time for which it is left to anybody */
    const char *token;   /* TOKEN_LENGTH digits, in the message */
    const char *key;     /* in the message; of several the first */
    size_t key_length;
    const char *more; /* the names of further keys, in the message */
    size_t more_length;
};

/* Reads a message. Returns false when it is of another form. */
bool push_read(const char *text, size_t length, struct push *push);

/* Makes the next of several keys the push's key. Returns false when there is none. */
bool push_next_key(struct push *push);

#endif
