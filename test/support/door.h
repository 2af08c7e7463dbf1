/*
 * A way to a Unix socket that has no name: nothing is left in the file system however the process
 * ends.
 */
#ifndef REDLOCK_TEST_DOOR_H
#define REDLOCK_TEST_DOOR_H

/*
 * Binds the socket to a name that is gone when this returns. Returns a descriptor N, closed on
 * exec, by which /proc/self/fd/N leads to the socket; -1: it could not be made.
 */
int door_make(int socket);

#endif
