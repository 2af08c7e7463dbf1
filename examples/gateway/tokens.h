/* The bearer tokens that give access. */
#ifndef TOKENS_H
#define TOKENS_H

#include <sodium.h>
#include <stdbool.h>
#include <stddef.h>

/* Maximum number of tokens in the file (a rotation needs two), and their maximum length. */
#define TOKENS_MAX 16
#define TOKEN_LENGTH_MIN 16
#define TOKEN_LENGTH_MAX 512

/* Digests of the tokens: a comparison takes the same time for tokens of any length. */
struct tokens {
    unsigned char digests[TOKENS_MAX][crypto_generichash_BYTES];
    size_t count; /* 0: no token is required */
};

/*
 * Reads a file with one token per line; skips empty lines and those that begin with "#". Exits
 * after a message if the file cannot be used.
 */
void tokens_read(struct tokens *tokens, const char *path);

/* Returns whether the value of an Authorization header, or NULL, has one of the tokens. */
bool tokens_admit(const struct tokens *tokens, const char *authorization);

#endif
