/*
 * The message by which a server tells a waiter that it has given the key to it, or that the key is
 * left to anybody for a while, after which the waiter is to ask again (scripts/parts/queue.lua).
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
    uint64_t open_ms;    /* not given: the time for which it is left to anybody */
    const char *token;   /* TOKEN_LENGTH digits, in the message */
    const char *key;     /* in the message */
    size_t key_length;
};

/* Reads a message. Returns false when it is of another form. */
bool push_read(const char *text, size_t length, struct push *push);

#endif
