/* A server of another kind: gives each command the same answer, in a process of its own. */
#ifndef REDLOCK_TEST_COMMAND_ODDITY_H
#define REDLOCK_TEST_COMMAND_ODDITY_H

#include <sys/types.h>

struct oddity {
    pid_t pid;
    int port;
};

/* Starts the server; it ends with this process at the latest. `answer` is RESP. */
struct oddity oddity_start(const char *answer);

/* Starts a server that begins to answer, and goes on with a byte now and then, without end. */
struct oddity oddity_start_slow(void);
void oddity_end(const struct oddity *oddity);

#endif
