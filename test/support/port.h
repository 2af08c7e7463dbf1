/*
 * A TCP port of 127.0.0.1 for a server that may go away for a while and come back.
 */
#ifndef REDLOCK_TEST_PORT_H
#define REDLOCK_TEST_PORT_H

#include <netinet/in.h>

/*
 * Binds the socket to a port of the kernel's choice, told in `address`. As long as it stays open,
 * and never listens, whoever sets SO_REUSEADDR and names the port can listen there; but nobody else
 * is given it, neither to listen nor as the source of a connection (which, to that very port, would
 * connect to itself). 0, or -1 with errno set.
 */
int port_reserve(int socket, struct sockaddr_in *address);

/* Has the socket listen beside the one that reserves the address. 0, or -1 with errno set. */
int port_listen(int socket, const struct sockaddr_in *address);

#endif
