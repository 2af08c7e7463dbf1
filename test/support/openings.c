#include "openings.h"

#include <stddef.h>
#include <sys/random.h>

#define TOKEN_BYTES 20

static bool is_often;

/* libsodium's, called for many tokens at once; its seed is as random as what replaces it. */
void randombytes_buf_deterministic(void *bytes, size_t size, const unsigned char *seed);

void randombytes_buf_deterministic(void *bytes, size_t size, const unsigned char *seed) {
    unsigned char *tokens = bytes;
    (void)seed;

    for (size_t done = 0; done < size;) {
        ssize_t got = getrandom(tokens + done, size - done, 0);

        done += got > 0 ? (size_t)got : 0;
    }
    /* A last byte of 0 or 1 opens the queue (lib/wire/scripts/parts/grants.lua). */
    for (size_t last = TOKEN_BYTES - 1; is_often && last < size; last += TOKEN_BYTES) {
        tokens[last] %= 8;
    }
}

static void stop(void *object) {
    (void)object;
    is_often = false;
}

void open_often(struct fixture *f) {
    is_often = true;
    at_finish(f, stop, f);
}
