#include "io/random.h"

#include <sodium.h>
#include <stddef.h>

bool random_init(void) {
    return sodium_init() >= 0;
}

/* A token is no secret from those who may read keys: its digits need no constant time. */
void random_token(char token[41]) {
    static const char digits[] = "0123456789abcdef";
    unsigned char bytes[20];
    randombytes_buf(bytes, sizeof(bytes));
    for (size_t i = 0; i < sizeof(bytes); i++) {
        token[2 * i] = digits[bytes[i] >> 4];
        token[2 * i + 1] = digits[bytes[i] & 15];
    }
    token[40] = '\0';
}

uint64_t random_seed(void) {
    uint64_t seed;
    randombytes_buf(&seed, sizeof(seed));
    return seed;
}
