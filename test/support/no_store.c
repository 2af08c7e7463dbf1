/* Random numbers without a store, for programs that supply their own tokens. */
#include "io/random.h"

#include <stddef.h>

void random_open(struct random *random) {
    random->store = NULL;
}

void random_close(struct random *random) {
    (void)random;
}
