/*
 * Unix sockets that have no name, so that nothing is left in the file system however the process
 * ends: they are reached by /proc/self/fd/N.
 */
#ifndef REDLOCK_TEST_DOOR_H
#define REDLOCK_TEST_DOOR_H

#include <stdbool.h>

struct door {
    int number;       /* the N that leads to the listener, or to a socket without one */
    int listener;     /* the socket at which connections arrive */
    int open, closed; /* the descriptors of which `number` is a copy in turn */
};

/*
 * Makes a door that is open, of two new Unix sockets: one to listen at, one to refuse connections
 * by. `number` is the descriptor to take, closed on exec; -1: any. Returns false on failure.
 */
bool door_make(struct door *door, int listener, int refuser, int number);

/* Takes connections from now on, or refuses them. Connections that stand are not touched. */
bool door_set(struct door *door, bool is_open);

/* Returns the next connection, which does not block and is closed on exec; -1: none has come. */
int door_accept(int listener);

#endif
