/*
 * A program that takes part in the demo as a process of its own. It reports its actions as lines on
 * stdout, which the demo shows; the demo never waits for an actor by time. An actor ends with
 * actor_finish, or at the latest with the demo, however the demo ends, even if the actor is
 * stopped.
 */
#ifndef DEMO_ACTOR_H
#define DEMO_ACTOR_H

#include "demo_stage.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/queue.h>
#include <sys/types.h>

struct actor {
    LIST_ENTRY(actor) link;
    const char *name;
    pid_t pid;    /* 0: none */
    int channel;  /* its stdin and stdout */
    bool at_end;  /* whether no more lines will come */
    size_t count; /* bytes in `lines` that were not taken yet */
    char lines[4096];
    char line[512]; /* line that was taken last */
};

/*
 * Starts a program; `argv` is its path, its arguments, NULL. Returns false on failure, after a
 * message on stderr.
 */
bool actor_start(struct actor *actor, const char *name, const char *const *argv);

/*
 * Waits for a line that begins with `words`, and shows this line and those before it. Returns the
 * rest of the line, valid until the next call; NULL, after printing why, if no such line came.
 */
const char *actor_hear(struct stage *stage, struct actor *actor, const char *words);

/* Sends SIGSTOP and waits until the actor has stopped. Returns false if the actor has ended. */
bool actor_stop(struct actor *actor);

/*
 * Sends a line, for which the actor may wait, and SIGCONT. Returns false, after printing so, if the
 * actor has ended.
 */
bool actor_continue(struct actor *actor);

/* Waits until the actor ends, and finishes it. Returns whether it ended with 0; prints if not. */
bool actor_ends_well(struct stage *stage, struct actor *actor);

/* Sends SIGTERM, then does the same as actor_ends_well. */
bool actor_dismiss(struct stage *stage, struct actor *actor);

/* Ends the actor if it was started and has not ended. */
void actor_finish(struct actor *actor);

#endif
