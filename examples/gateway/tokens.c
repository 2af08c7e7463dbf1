#include "tokens.h"

#include "tool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define SCHEME "Bearer "

static void digest(unsigned char *digest, const char *token, size_t length) {
    crypto_generichash(digest, crypto_generichash_BYTES, (const unsigned char *)token, length, NULL,
                       0);
}

/* Returns whether the bytes are visible ASCII, the only characters allowed in a header. */
static bool is_printable(const char *token, size_t length) {
    for (size_t i = 0; i < length; i++) {
        if (token[i] <= 0x20 || token[i] >= 0x7f) {
            return false;
        }
    }
    return true;
}

static void add(struct tokens *tokens, const char *token, size_t length, unsigned number) {
    if (length < TOKEN_LENGTH_MIN || length > TOKEN_LENGTH_MAX || !is_printable(token, length)) {
        tool_usage("--token-file, line %u: a token is %d to %d visible ASCII characters", number,
                   TOKEN_LENGTH_MIN, TOKEN_LENGTH_MAX);
    }
    if (tokens->count == TOKENS_MAX) {
        tool_usage("--token-file: more than %d tokens", TOKENS_MAX);
    }
    digest(tokens->digests[tokens->count++], token, length);
}

void tokens_read(struct tokens *tokens, const char *path) {
    FILE *file = fopen(path, "re");
    char *line = NULL;
    size_t size = 0;
    unsigned number = 0;
    ssize_t read;

    if (file == NULL) {
        tool_refused(path);
    }
    while ((read = getline(&line, &size, file)) > 0) {
        size_t length = (size_t)read;

        number++;
        while (length > 0 && (line[length - 1] == '\n' || line[length - 1] == '\r')) {
            length--;
        }
        if (length > 0 && line[0] != '#') {
            add(tokens, line, length, number);
        }
    }
    if (ferror(file)) {
        tool_refused(path);
    }
    fclose(file);
    if (line != NULL) {
        sodium_memzero(line, size);
    }
    free(line);
    if (tokens->count == 0) {
        tool_usage("--token-file %s: there is no token in the file", path);
    }
}

bool tokens_admit(const struct tokens *tokens, const char *authorization) {
    unsigned char shown[crypto_generichash_BYTES];
    int is_known = 0;

    if (authorization == NULL || strncasecmp(authorization, SCHEME, strlen(SCHEME)) != 0) {
        return false;
    }
    authorization += strlen(SCHEME);
    digest(shown, authorization, strlen(authorization));
    for (size_t i = 0; i < tokens->count; i++) {
        is_known |= sodium_memcmp(shown, tokens->digests[i], sizeof(shown)) == 0;
    }
    return is_known != 0;
}
