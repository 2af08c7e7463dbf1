/* Unpredictable random numbers (libsodium). */
#ifndef REDLOCK_IO_RANDOM_H
#define REDLOCK_IO_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Prepares the source of randomness; may be called again. Returns false when the system has none.
 */
bool random_init(void);

/* Writes the hexadecimal digits of 20 random bytes, and a NUL, to `token`. */
void random_token(char token[41]);

/* Returns a number of which all bits are unpredictable. */
uint64_t random_seed(void);

#endif
