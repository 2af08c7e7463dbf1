/* Unpredictable random numbers (libsodium). */
#ifndef REDLOCK_IO_RANDOM_H
#define REDLOCK_IO_RANDOM_H

#include "wire/token.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * Random bytes in advance, of one client: the system is asked once for two hundred tokens. A child
 * of fork(), and of clone(), finds the store empty, and so never makes a token of its parent's.
 */
struct random {
    struct random_store *store; /* NULL: the system is asked for each token */
};

/*
 * Prepares the source of randomness; may be called again. Returns false when the system has none.
 */
bool random_init(void);

/* Begins a store; without memory, or where the system cannot empty it in children, without one. */
void random_open(struct random *random);

void random_close(struct random *random);

/* Draws a token, packed. */
void random_token(struct random *random, unsigned char token[TOKEN_BYTES]);

/* Returns a number of which all bits are unpredictable. */
uint64_t random_seed(void);

#endif
