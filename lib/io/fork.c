#include "io/fork.h"

#include <pthread.h>
#include <stdatomic.h>

static unsigned generation;

static void on_child(void) {
    generation++;
}

/*
 * Two threads at once may both register on_child: each fork then counts twice, which does no harm.
 */
bool fork_init(void) {
    static atomic_bool is_registered;
    if (!atomic_load(&is_registered)) {
        if (pthread_atfork(NULL, NULL, on_child) != 0) {
            return false;
        }
        atomic_store(&is_registered, true);
    }
    return true;
}

unsigned fork_generation(void) {
    return generation;
}
