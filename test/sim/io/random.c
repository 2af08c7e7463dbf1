/* Tokens that the checker recognises, and seeds, all derived from the world's seed. */
#include "io/random.h"

#include "check.h"
#include "process.h"

bool random_init(void) {
    return !process_is_refused(running);
}

void random_token(struct random *random, unsigned char token[TOKEN_BYTES]) {
    char digits[TOKEN_LENGTH + 1];
    (void)random;
    token_unpack(digits, token); /* the token of the previous try, if the request had one */
    check_new_token(running, digits);
    token_pack(token, digits);
}

uint64_t random_seed(void) {
    return rng_next(&running->world->rng);
}
