/*
 * Unix sockets without a name, so that nothing stays in the file system however the process ends.
 * Clients reach them by /proc/self/fd/N.
 */
#ifndef REDLOCK_TEST_UNIX_LISTENER_H
#define REDLOCK_TEST_UNIX_LISTENER_H

#include <stdbool.h>

struct unix_listener {
    int number;       /* the N that leads to the listener, or to a socket that does not listen */
    int socket;       /* the listening socket */
    int open, closed; /* descriptors that `number` is a copy of, in turn */
};

/*
 * Makes an open listener from two new Unix sockets: one to listen on, one to refuse connections
 * with. `number` is the descriptor to use, closed on exec; -1: any. Returns false on failure.
 */
bool unix_listener_make(struct unix_listener *unix_listener, int listener, int refuser, int number);

/* Accepts connections from now on, or refuses them. Established connections are not affected. */
bool unix_listener_set(struct unix_listener *unix_listener, bool is_open);

/* Returns the next connection, non-blocking and closed on exec; -1: none is waiting. */
int unix_listener_accept(int listener);

#endif
