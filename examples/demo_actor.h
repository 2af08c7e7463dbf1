/*
 * A program that plays in the demo, as a process of its own. Its stdout tells its actions in lines,
 * which the demo shows; the demo never waits for an actor by time. An actor ends with actor_finish,
 * and at the latest with the demo, however that ends, also when the actor is stopped.
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
    size_t count; /* bytes in `lines` that were not heard yet */
    char lines[4096];
    char line[512]; /* line that was heard last */
};

/*
 * Starts a program; `argv` is its path, its arguments, NULL. Returns false, after a message on
 * stderr, on failure.
 */
bool actor_start(struct actor *actor, const char *name, const char *const *argv);

/*
 * Waits for a line that begins with `words`, and shows this line and those before it. Returns the
 * rest of the line, valid until the next call; NULL, after saying why, when no such line came.
 */
const char *actor_hear(struct stage *stage, struct actor *actor, const char *words);

/* Sends SIGSTOP and waits until the actor has stopped. Returns false when the actor had ended. */
bool actor_stop(struct actor *actor);

/*
 * Sends a line, for which the actor may wait, and SIGCONT. Returns false, after saying so, when the
 * actor had ended.
 */
bool actor_continue(struct actor *actor);

/* Waits for the actor's end, and finishes it. Returns whether it ended with 0; says so if not. */
bool actor_ends_well(struct stage *stage, struct actor *actor);

/* Asks the actor to end by SIGTERM; then as actor_ends_well. */
bool actor_dismiss(struct stage *stage, struct actor *actor);

/* Ends the actor, if it was started and has not ended. */
void actor_finish(struct actor *actor);

#endif
