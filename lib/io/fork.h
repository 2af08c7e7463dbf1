/*
 * Tells a process from its children made by fork(): a child has the process's memory, but must not
 * use its connections.
 */
#ifndef REDLOCK_IO_FORK_H
#define REDLOCK_IO_FORK_H

#include <stdbool.h>

/* Begins to count forks; may be called again, from any thread. Returns false when out of memory. */
bool fork_init(void);

/* Returns the number of forks between the process that called fork_init first and this process. */
unsigned fork_generation(void);

#endif
