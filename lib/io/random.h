/* Randomness that cannot be guessed (libsodium). */
#ifndef REDLOCK_IO_RANDOM_H
#define REDLOCK_IO_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

/* False when the system has no source of randomness. May be called again. */
bool random_init(void);

/* The hexadecimal digits of 20 random bytes, and a NUL. */
void random_token(char token[41]);

uint64_t random_seed(void);

#endif
