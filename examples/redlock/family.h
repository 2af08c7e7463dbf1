/* All processes that descend from this one, however they tried to get away. */
#ifndef FAMILY_H
#define FAMILY_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * Makes this process the parent of orphans among its descendants, so that daemons stay among them.
 * Returns 0, or -1 with errno set, as when /proc cannot be read.
 */
int family_adopt(void);

/* Records a child, up to two: it and its process group are signalled even if /proc fails. */
void family_record(pid_t child);

/* Sends each descendant a signal, as far as /proc tells them now. */
void family_signal(int signal_number);

/*
 * Kills all descendants, and waits for their end. Blocks. Returns whether all could be killed: a
 * process that has become another user ends when it likes.
 */
bool family_end(void);

#endif
