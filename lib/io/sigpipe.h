/*
 * Guards writes against SIGPIPE. hiredis writes with plain write(2), which raises the signal when
 * the peer has closed the connection. The guard blocks the signal for this thread during the write,
 * and then removes it if it is pending. It never touches the process's signal disposition.
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

/*
 * Ends the guard. `write_failed` is whether a write since sigpipe_block may have raised the signal.
 */
void sigpipe_restore(const struct sigpipe_guard *guard, bool write_failed);

#endif
