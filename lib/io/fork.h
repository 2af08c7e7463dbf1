/*
 * Tells a process from the children that fork() makes of it: they have its memory, but must not
 * speak over its connections.
 */
#ifndef REDLOCK_IO_FORK_H
#define REDLOCK_IO_FORK_H

#include <stdbool.h>

/* False when out of memory. May be called again, from any thread. */
bool fork_init(void);

/* Counts the forks between the process that called fork_init first and this one. */
unsigned fork_generation(void);

#endif
