/*
 * hiredis writes with plain write(2), which raises SIGPIPE when the peer has closed. The guard
 * keeps the signal from this thread while it writes, and takes it off again; the process's
 * disposition is never touched.
 */
#ifndef REDLOCK_IO_SIGPIPE_H
#define REDLOCK_IO_SIGPIPE_H

#include <signal.h>
#include <stdbool.h>

struct sigpipe_guard {
    sigset_t before;
    bool was_pending;
};

void sigpipe_block(struct sigpipe_guard *guard);

/* `write_failed`: a write in between may have raised the signal. */
void sigpipe_restore(const struct sigpipe_guard *guard, bool write_failed);

#endif
