/*
 * The actions of a run on real masters, as redlock-sim --actions writes them, for the checker of
 * the proof (test/proof/traces.ml). They come from logs: of the masters, each command and what
 * became of its keys; of the clients, what they sent, read and reported. All clocks are those of
 * one machine: each line has the instant at which its log says that it happened.
 */
#ifndef REDLOCK_CHAOS_ACTIONS_H
#define REDLOCK_CHAOS_ACTIONS_H

#include "options.h"

#include <stdio.h>

/*
 * Reads the logs in `folder`, writes the actions to a file, and closes it. Returns 0; nonzero after
 * a message.
 */
int actions_write(const char *folder, const struct options *options, FILE *file);

#endif
