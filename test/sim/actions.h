/*
 * The actions of a world, one a line, for the checker of the proof (test/proof/traces.ml), which
 * compares them with the proof's model of exclusion. They say what happened: nodes' keys and all
 * clocks are those of the simulated world; of the library, only commands and reports are used.
 */
#ifndef REDLOCK_SIM_ACTIONS_H
#define REDLOCK_SIM_ACTIONS_H

#include "network.h"
#include "plan.h"
#include "process.h"
#include "words.h"

#include <stdint.h>
#include <stdio.h>

struct hold;

/* Starts to write a world's actions to `file`, or leaves them out and says why. */
void actions_begin(struct network *network, const struct plan *plan, const char *profile,
                   FILE *file);

/* Adds a process, in the order of their indexes. */
void actions_process(const struct event_base *process);

/* Ends the world. Does nothing if no actions are written. */
void actions_end(struct world *world);

/* All others do nothing if no actions are written. */

/* Records that a process's lists of nodes are about to change. */
void actions_move(const struct event_base *process);

/* Records a command that a process puts into the buffer of a connection. */
void actions_sent(struct link *link, const struct words *words);

/* Records that a server has run a command, refused or not. */
void actions_ran(struct link *link, const struct words *words);

/*
 * Records that a server, in the middle of a command, has passed a key to a waiter: the same command
 * may change the key again.
 */
void actions_passed(struct master *master, unsigned key);

/* Records what a foreign client has done to a server's keys. */
void actions_changed(struct master *master);

/* Records that a server has lost the keys of a mask. */
void actions_forgotten(const struct master *master, uint32_t keys);

/* Records that a process reads a push: the key of a token, until an instant of the server's. */
void actions_pushed(struct event_base *process, unsigned server, uint32_t token, unsigned key,
                    uint64_t expires_ms);

/* Records that a lock is released inside a client, where the next one has its token. */
void actions_parted(struct event_base *process, uint32_t token);

/*
 * Records a validity that a lock reports. `is_handed`: the lock has it from another lock, and its
 * votes may be of other rounds.
 */
void actions_held(const struct hold *hold, bool is_handed);

#endif
