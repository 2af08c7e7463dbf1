/*
 * The store is a page of its own, which the system zeroes in a child (MADV_WIPEONFORK): then no
 * tokens are left. A stream cipher (ChaCha20) fills it from a seed of the system.
 */
#define _DEFAULT_SOURCE

#include "io/random.h"

#include <sodium.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#define STORE_SIZE 4096
#define STORED_TOKENS ((STORE_SIZE - sizeof(uint32_t)) / TOKEN_BYTES)

struct random_store {
    uint32_t left; /* number of unused tokens: the first ones */
    unsigned char tokens[STORED_TOKENS][TOKEN_BYTES];
};

bool random_init(void) {
    return sodium_init() >= 0;
}

void random_open(struct random *random) {
    void *page = mmap(NULL, STORE_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    random->store = page != MAP_FAILED ? page : NULL;
    if (random->store != NULL && madvise(page, STORE_SIZE, MADV_WIPEONFORK) != 0) {
        random_close(random);
    }
}

void random_close(struct random *random) {
    if (random->store != NULL) {
        munmap(random->store, STORE_SIZE);
        random->store = NULL;
    }
}

static void fill(struct random_store *store) {
    unsigned char seed[randombytes_SEEDBYTES];
    randombytes_buf(seed, sizeof(seed));
    randombytes_buf_deterministic(store->tokens, sizeof(store->tokens), seed);
    sodium_memzero(seed, sizeof(seed));
    store->left = STORED_TOKENS;
}

void random_token(struct random *random, unsigned char token[TOKEN_BYTES]) {
    struct random_store *store = random->store;
    if (store == NULL) {
        randombytes_buf(token, TOKEN_BYTES);
        return;
    }
    if (store->left == 0) {
        fill(store);
    }
    memcpy(token, store->tokens[--store->left], TOKEN_BYTES);
}

uint64_t random_seed(void) {
    uint64_t seed;
    randombytes_buf(&seed, sizeof(seed));
    return seed;
}
