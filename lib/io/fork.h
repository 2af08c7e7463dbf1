/*
 * Distinguishes a process from its fork() children: a child has a copy of the memory, but must not
 * use the connections.
 */
#ifndef REDLOCK_IO_FORK_H
#define REDLOCK_IO_FORK_H

#include <stdbool.h>

/* Starts to count forks; may be called again, from any thread. Returns false when out of memory. */
bool fork_init(void);

/* Returns the number of forks from the first process that called fork_init to this process. */
unsigned fork_generation(void);

#endif
