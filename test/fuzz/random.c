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

void random_token(char token[41]) {
    uint64_t first = backoff_random(&seed);
    uint64_t second = backoff_random(&seed);
    snprintf(token, 41, "%016" PRIx64 "%016" PRIx64 "%08" PRIx32, first, second,
             (uint32_t)(first ^ second));
}

uint64_t random_seed(void) {
    return backoff_random(&seed);
}
