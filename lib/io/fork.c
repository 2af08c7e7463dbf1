#include "io/fork.h"

#include <pthread.h>
#include <stdatomic.h>

static unsigned generation;

static void on_child(void) {
    generation++;
}

/* If two threads race here, both register on_child: each fork then counts as two, which is fine. */
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
