/*
 * A program that plays in the demo, as a process of its own. It tells what it does in lines on its
 * stdout, which are shown; it is never waited for by time. It ends with actor_finish, and at the
 * latest with the demo, however that ends, also when it is stopped.
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
    bool at_end;  /* there will be no more lines */
    size_t count; /* bytes of the lines that were not heard yet */
    char lines[4096];
    char line[512]; /* the one that was heard last */
};

/* `argv` is the program's path, its arguments, NULL. False, after a message on stderr. */
bool actor_start(struct actor *actor, const char *name, const char *const *argv);

/*
 * Waits for a line that begins with `words`, and returns what follows them, which is valid until
 * the next call; shows this line and those before it. NULL, after saying why, when there was none.
 */
const char *actor_hear(struct stage *stage, struct actor *actor, const char *words);

/* SIGSTOP, and waits for it to stop. False: it had ended. */
bool actor_stop(struct actor *actor);

/* Sends it a line, which it may wait for, and SIGCONT. False, after saying so: it has ended. */
bool actor_continue(struct actor *actor);

/* Waits for its end, and finishes it. Whether it ended with 0; says so if not. */
bool actor_ends_well(struct stage *stage, struct actor *actor);

/* The same, after asking it to end by SIGTERM. */
bool actor_dismiss(struct stage *stage, struct actor *actor);

/* Ends it, if it has not ended. For one that was not started, or was finished, does nothing. */
void actor_finish(struct actor *actor);

#endif
