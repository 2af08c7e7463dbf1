/* A server of another kind: a fake server (peer.h) in a process of its own, with few answers. */
#ifndef REDLOCK_TEST_COMMAND_ODDITY_H
#define REDLOCK_TEST_COMMAND_ODDITY_H

#include <sys/types.h>

struct oddity {
    pid_t pid;
    int port;
};

/* An answer, in RESP, to the commands with a given first word; NULL: to all others. */
struct oddity_answer {
    const char *command;
    const char *answer;
};

/* Starts a server that gives each command the same answer. It ends with this process. */
struct oddity oddity_start(const char *answer);

/* Starts a server with several answers, the last of which is for all other commands. */
struct oddity oddity_start_with(const struct oddity_answer *answers);

/* Starts a server that begins to answer, and goes on byte by byte, without end. */
struct oddity oddity_start_slow(void);

void oddity_end(const struct oddity *oddity);

#endif
