/*
 * Unix sockets that have no name, so that nothing is left in the file system however the process
 * ends: they are reached by /proc/self/fd/N.
 */
#ifndef REDLOCK_TEST_UNIX_LISTENER_H
#define REDLOCK_TEST_UNIX_LISTENER_H

#include <stdbool.h>

struct unix_listener {
    int number;       /* the N that leads to the listener, or to a socket without one */
    int socket;       /* the socket at which connections arrive */
    int open, closed; /* the descriptors of which `number` is a copy in turn */
};

/*
 * Makes a listener that is open, of two new Unix sockets: one to listen at, one to refuse
 * connections by. `number` is the descriptor to take, closed on exec; -1: any. Returns false on
 * failure.
 */
bool unix_listener_make(struct unix_listener *unix_listener, int listener, int refuser, int number);

/* Takes connections from now on, or refuses them. Connections that stand are not touched. */
bool unix_listener_set(struct unix_listener *unix_listener, bool is_open);

/* Returns the next connection, which does not block and is closed on exec; -1: none has come. */
int unix_listener_accept(int listener);

#endif
