/* The bearer tokens that clients may show. */
#ifndef TOKENS_H
#define TOKENS_H

#include <sodium.h>
#include <stdbool.h>
#include <stddef.h>

/* Bounds on the file of tokens: so many, for a change of tokens needs two, and so long. */
#define TOKENS_MAX 16
#define TOKEN_LENGTH_MIN 16
#define TOKEN_LENGTH_MAX 512

/* Digests of the tokens, so that a comparison takes the same time for tokens of all lengths. */
struct tokens {
    unsigned char digests[TOKENS_MAX][crypto_generichash_BYTES];
    size_t count; /* 0: nobody is asked for a token */
};

/*
 * Reads a file with one token a line; empty lines, and those that begin with "#", are left out.
 * Exits, after a message, where the file cannot be used.
 */
void tokens_read(struct tokens *tokens, const char *path);

/* Returns whether the value of a header Authorization, or NULL, has one of the tokens. */
bool tokens_admit(const struct tokens *tokens, const char *authorization);

#endif
