/* Processes of the simulator never fork. */
#include "io/fork.h"

bool fork_init(void) {
    return true;
}

unsigned fork_generation(void) {
    return 0;
}
