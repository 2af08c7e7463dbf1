/* All descendants of this process, however they try to escape. */
#ifndef FAMILY_H
#define FAMILY_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * Makes this process the parent of its orphaned descendants, so that daemons remain descendants.
 * Returns 0, or -1 with errno set, for instance if /proc cannot be read.
 */
int family_adopt(void);

/* Records a child, up to two: it and its process group are signalled even if /proc fails. */
void family_record(pid_t child);

/* Sends a signal to each descendant that /proc now lists. */
void family_signal(int signal_number);

/*
 * Kills all descendants and waits for their end. Blocks. Returns whether all could be killed: a
 * process that has changed its user cannot be.
 */
bool family_end(void);

#endif
