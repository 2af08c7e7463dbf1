/* Unpredictable random numbers (libsodium). */
#ifndef REDLOCK_IO_RANDOM_H
#define REDLOCK_IO_RANDOM_H

#include "wire/token.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * A client's supply of random bytes: one request to the system serves 204 tokens. A child of fork()
 * or clone() finds the store empty, and so never repeats a token of its parent.
 */
struct random {
    struct random_store *store; /* NULL: each token is requested from the system */
};

/*
 * Initializes the source of randomness; may be called again. Returns false if the system has none.
 */
bool random_init(void);

/* Creates the store; does without it when out of memory, or if the system cannot wipe it on fork.
 */
void random_open(struct random *random);

void random_close(struct random *random);

/* Draws a packed token (wire/token.h). */
void random_token(struct random *random, unsigned char token[TOKEN_BYTES]);

/* Returns a number with 64 unpredictable bits. */
uint64_t random_seed(void);

#endif
