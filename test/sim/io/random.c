/* Tokens that the checker recognises, and seeds, all from the world's seed. */
#include "io/random.h"

#include "check.h"
#include "process.h"

bool random_init(void) {
    return !process_is_refused(running);
}

void random_token(char token[41]) {
    check_new_token(running, token);
}

uint64_t random_seed(void) {
    return rng_next(&running->world->rng);
}
