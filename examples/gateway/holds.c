/*
 * An id begins with the number of the hold's place, and goes on with random bits, which are
 * compared in constant time: nobody can find an id by asking, nor by measuring how long the answer
 * takes.
 */
#include "holds.h"

#include "connections.h"
#include "gateway.h"

#include <event2/event.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PLACE_DIGITS 8

bool holds_init(struct holds *holds, size_t limit) {
    holds->limit = limit;
    holds->places = calloc(limit, sizeof(*holds->places));
    holds->empty = calloc(limit, sizeof(*holds->empty));
    if (holds->places == NULL || holds->empty == NULL) {
        return false;
    }
    for (size_t i = 0; i < limit; i++) {
        holds->empty[i] = limit - 1 - i;
    }
    return true;
}

void holds_finish(struct holds *holds) {
    for (size_t i = 0; holds->places != NULL && i < holds->limit; i++) {
        if (holds->places[i] != NULL) {
            hold_drop(holds->places[i]);
        }
    }
    free(holds->places);
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
    hold->place = holds->empty[holds->limit - holds->count - 1];
    randombytes_buf(hold->secret, sizeof(hold->secret));
    holds->places[hold->place] = hold;
    holds->count++;
    return hold;
}

char *hold_id(const struct hold *hold, char text[HOLD_ID_SIZE]) {
    snprintf(text, HOLD_ID_SIZE, "%0*zx", PLACE_DIGITS, hold->place);
    sodium_bin2hex(text + PLACE_DIGITS, HOLD_ID_SIZE - PLACE_DIGITS, hold->secret,
                   sizeof(hold->secret));
    return text;
}

/* Reads an id. Returns false where the text is none. */
static bool read_id(const char *id, size_t *place, unsigned char secret[HOLD_SECRET_SIZE]) {
    unsigned char bytes[PLACE_DIGITS / 2];
    size_t length;

    if (strlen(id) != HOLD_ID_SIZE - 1 ||
        sodium_hex2bin(bytes, sizeof(bytes), id, PLACE_DIGITS, NULL, &length, NULL) != 0 ||
        length != sizeof(bytes) ||
        sodium_hex2bin(secret, HOLD_SECRET_SIZE, id + PLACE_DIGITS, 2 * HOLD_SECRET_SIZE, NULL,
                       &length, NULL) != 0 ||
        length != HOLD_SECRET_SIZE) {
        return false;
    }
    *place = 0;
    for (size_t i = 0; i < sizeof(bytes); i++) {
        *place = *place << 8 | bytes[i];
    }
    return true;
}

struct hold *holds_find(struct holds *holds, const char *id, const char *key) {
    unsigned char secret[HOLD_SECRET_SIZE];
    size_t place;
    struct hold *hold;

    if (!read_id(id, &place, secret) || place >= holds->limit ||
        (hold = holds->places[place]) == NULL || !hold->is_held ||
        sodium_memcmp(secret, hold->secret, sizeof(secret)) != 0 || strcmp(hold->key, key) != 0) {
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
    holds->places[hold->place] = NULL;
    holds->count--;
    holds->empty[holds->limit - holds->count - 1] = hold->place;
    sodium_memzero(hold->secret, sizeof(hold->secret));
    free(hold->key);
    free(hold);
    if (holds->count == 0 && gateway->is_closing) {
        event_active(gateway->end, 0, 0);
    }
}

/* Validity and clock are each rounded down. */
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
