/*
 * The process that holds the lock and is the parent of the command. It is not the process for which
 * the shell waits, so that the lock is renewed even while the shell has stopped its job.
 */
#ifndef KEEPER_H
#define KEEPER_H

#include "job.h"
#include "talk.h"

/*
 * Acquires the lock, runs the command and releases the lock. `front` is the socket to the front,
 * which watches `deadline`.
 */
_Noreturn void keeper_main(const struct job *job, int front, talk_deadline *deadline);

#endif
