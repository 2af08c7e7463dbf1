/* A server of another kind, in a process of its own: it has few answers. */
#ifndef REDLOCK_TEST_COMMAND_ODDITY_H
#define REDLOCK_TEST_COMMAND_ODDITY_H

#include <sys/types.h>

struct oddity {
    pid_t pid;
    int port;
};

/* What it answers to a command, in RESP; by the first word of that, or NULL: to all others. */
struct oddity_answer {
    const char *command;
    const char *answer;
};

/* Starts a server that gives each command the same answer; it ends with this process. */
struct oddity oddity_start(const char *answer);

/* Starts one with some answers, which end with that to all other commands. */
struct oddity oddity_start_with(const struct oddity_answer *answers);

/* Starts a server that begins to answer, and goes on with a byte now and then, without end. */
struct oddity oddity_start_slow(void);
void oddity_end(const struct oddity *oddity);

#endif
