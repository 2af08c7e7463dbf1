/* Copies a request with the keys that it points to, for a call that outlives its arguments. */
#ifndef REDLOCK_THREADS_COPY_H
#define REDLOCK_THREADS_COPY_H

#include <redlock.h>
#include <stddef.h>

/* Returns the bytes that the arrays and keys of a checked request need (core/options.h). */
size_t copy_size(const redlock_request *request);

/*
 * Copies the arrays and keys of a checked request to `room`, aligned as for malloc, and has the
 * request point there.
 */
void copy_keys(redlock_request *request, void *room);

#endif
