#include "io/sigpipe.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

static void make_set(sigset_t *set) {
    sigemptyset(set);
    sigaddset(set, SIGPIPE);
}

void sigpipe_block(struct sigpipe_guard *guard) {
    sigset_t set;
    make_set(&set);
    guard->was_pending = false;
    pthread_sigmask(SIG_BLOCK, &set, &guard->before);
    if (sigismember(&guard->before, SIGPIPE)) {
        sigset_t pending;
        sigpending(&pending);
        guard->was_pending =
            sigismember(&pending, SIGPIPE); /* if so, not raised by the library: keep it */
    }
}

void sigpipe_restore(const struct sigpipe_guard *guard, bool write_failed) {
    if (write_failed && !guard->was_pending) {
        sigset_t set;
        const struct timespec at_once = {0};
        make_set(&set);
        while (sigtimedwait(&set, NULL, &at_once) < 0 && errno == EINTR) {
        }
    }
    pthread_sigmask(SIG_SETMASK, &guard->before, NULL);
}
