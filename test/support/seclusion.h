/*
 * Has the kernel check that a child of fork() leaves the descriptors that it shares with its parent
 * alone: a filter of system calls (seccomp), which any process may set for itself.
 */
#ifndef REDLOCK_TEST_SECLUSION_H
#define REDLOCK_TEST_SECLUSION_H

#include <stdbool.h>

/* The exit status of a process that has made another system call than those allowed. */
#define SECLUSION_BROKEN 99

/*
 * From now on the process may make system calls for memory, time, latches and its end, and write to
 * stderr; with `may_close` it may also close descriptors. Any other call is reported on stderr, and
 * ends the process. Returns false, with errno, on failure.
 *
 * Has no effect under valgrind, which makes system calls of its own.
 */
bool seclude(bool may_close);

#endif
