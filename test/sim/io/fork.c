/* Processes of the simulator do not fork. */
#include "io/fork.h"

bool fork_init(void) {
    return true;
}

unsigned fork_generation(void) {
    return 0;
}
