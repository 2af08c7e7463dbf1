/* Random numbers that repeat in each run. */
#include "io/random.h"

#include "core/backoff.h"
#include "world.h"

#include <inttypes.h>
#include <stdio.h>

static uint64_t seed;
static bool has_source;

void random_begin(void) {
    seed = 1;
}

void world_has_random(bool has) {
    has_source = has;
}

bool random_init(void) {
    return has_source;
}

void random_token(struct random *random, unsigned char token[TOKEN_BYTES]) {
    char digits[TOKEN_LENGTH + 1];
    (void)random;
    uint64_t first = backoff_random(&seed);
    uint64_t second = backoff_random(&seed);
    snprintf(digits, sizeof(digits), "%016" PRIx64 "%016" PRIx64 "%08" PRIx32, first, second,
             (uint32_t)(first ^ second));
    token_pack(token, digits);
}

uint64_t random_seed(void) {
    return backoff_random(&seed);
}
