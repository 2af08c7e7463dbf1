/*
 * The process that holds the lock, and is the parent of the command. It is apart from the process
 * that the shell waits for, so that the lock is renewed also while the shell has stopped its job.
 */
#ifndef KEEPER_H
#define KEEPER_H

#include "job.h"
#include "talk.h"

/*
 * Acquires the lock, runs the command, and releases the lock. `front` is the socket to the front,
 * which looks at `deadline`.
 */
_Noreturn void keeper_main(const struct job *job, int front, talk_deadline *deadline);

#endif
