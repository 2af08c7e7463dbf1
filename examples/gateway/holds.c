/*
 * An id begins with the number of the gateway's run, which distinguishes an unknown lock from one
 * that has ended. The index of the hold follows, and random bits, which are compared in constant
 * time: nobody can find an id by guessing, or by measuring how long the answer takes.
 */
#include "holds.h"

#include "connections.h"
#include "gateway.h"

#include <event2/event.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Digits of the run and of the index. */
#define NUMBER_DIGITS 8

bool holds_init(struct holds *holds, size_t limit) {
    holds->limit = limit;
    holds->run = randombytes_random();
    holds->slots = calloc(limit, sizeof(*holds->slots));
    holds->empty = calloc(limit, sizeof(*holds->empty));
    if (holds->slots == NULL || holds->empty == NULL) {
        return false;
    }
    for (size_t i = 0; i < limit; i++) {
        holds->empty[i] = limit - 1 - i;
    }
    return true;
}

void holds_finish(struct holds *holds) {
    for (size_t i = 0; holds->slots != NULL && i < holds->limit; i++) {
        if (holds->slots[i] != NULL) {
            hold_drop(holds->slots[i]);
        }
    }
    free(holds->slots);
    free(holds->empty);
}

struct hold *holds_add(struct gateway *gateway, const char *key) {
    struct holds *holds = &gateway->holds;
    struct hold *hold = holds->count < holds->limit ? calloc(1, sizeof(*hold)) : NULL;

    if (hold == NULL) {
        return NULL;
    }
    if ((hold->key = strdup(key)) == NULL) {
        free(hold);
        return NULL;
    }
    hold->gateway = gateway;
    hold->slot = holds->empty[holds->limit - holds->count - 1];
    randombytes_buf(hold->secret, sizeof(hold->secret));
    holds->slots[hold->slot] = hold;
    holds->count++;
    return hold;
}

char *hold_id(const struct hold *hold, char text[HOLD_ID_SIZE]) {
    snprintf(text, HOLD_ID_SIZE, "%0*" PRIx32 "%0*zx", NUMBER_DIGITS, hold->gateway->holds.run,
             NUMBER_DIGITS, hold->slot);
    sodium_bin2hex(text + 2 * NUMBER_DIGITS, HOLD_ID_SIZE - 2 * NUMBER_DIGITS, hold->secret,
                   sizeof(hold->secret));
    return text;
}

static uint32_t read_number(const unsigned char *bytes) {
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

struct hold *holds_find(struct holds *holds, const char *id, const char *key, bool *is_foreign) {
    unsigned char bytes[(HOLD_ID_SIZE - 1) / 2];
    size_t length;
    size_t slot;
    struct hold *hold;

    *is_foreign = false;
    if (sodium_hex2bin(bytes, sizeof(bytes), id, strlen(id), NULL, &length, NULL) != 0 ||
        length != sizeof(bytes)) {
        return NULL;
    }
    if (read_number(bytes) != holds->run) {
        *is_foreign = true;
        return NULL;
    }
    slot = read_number(bytes + NUMBER_DIGITS / 2);
    if (slot >= holds->limit || (hold = holds->slots[slot]) == NULL || !hold->is_held ||
        sodium_memcmp(bytes + NUMBER_DIGITS, hold->secret, sizeof(hold->secret)) != 0 ||
        strcmp(hold->key, key) != 0) {
        return NULL;
    }
    return hold;
}

void hold_drop(struct hold *hold) {
    struct gateway *gateway = hold->gateway;
    struct holds *holds = &gateway->holds;

    if (hold->connection != NULL) {
        connection_forget(hold->connection);
    }
    holds->slots[hold->slot] = NULL;
    holds->count--;
    holds->empty[holds->limit - holds->count - 1] = hold->slot;
    sodium_memzero(hold->secret, sizeof(hold->secret));
    free(hold->key);
    free(hold);
    if (holds->count == 0 && gateway->is_closing) {
        event_active(gateway->end, 0, 0);
    }
}

/* Adds 2 ms, because validity and clock are each rounded down. */
void hold_promise(struct hold *hold) {
    hold->until_ms = connections_now_ms() + redlock_validity_ms(hold->lock) + 2;
}

void hold_give_back(struct hold *hold) {
    redlock_release(hold->lock, NULL, NULL);
    hold_drop(hold);
}

static void on_over(evutil_socket_t fd, short what, void *arg) {
    (void)fd;
    (void)what;
    hold_give_back(arg);
}

void hold_give_back_in_time(struct hold *hold) {
    uint64_t now_ms = connections_now_ms();
    uint64_t left_ms = hold->until_ms > now_ms ? hold->until_ms - now_ms : 0;
    struct timeval time = {.tv_sec = (time_t)(left_ms / 1000),
                           .tv_usec = (suseconds_t)(left_ms % 1000 * 1000)};

    hold->is_held = false;
    if (event_base_once(hold->gateway->base, -1, EV_TIMEOUT, on_over, hold, &time) != 0) {
        hold_drop(
            hold); /* without memory the key ends with its TTL, and the handle with the client */
    }
}
