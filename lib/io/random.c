#include "io/random.h"

#include <sodium.h>

bool random_init(void) {
    return sodium_init() >= 0;
}

void random_token(char token[41]) {
    unsigned char bytes[20];
    randombytes_buf(bytes, sizeof(bytes));
    sodium_bin2hex(token, 41, bytes, sizeof(bytes));
}

uint64_t random_seed(void) {
    uint64_t seed;
    randombytes_buf(&seed, sizeof(seed));
    return seed;
}
