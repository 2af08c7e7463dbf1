/* A TCP port of 127.0.0.1 for a server that may stop for a while and come back. */
#ifndef REDLOCK_TEST_PORT_H
#define REDLOCK_TEST_PORT_H

#include <netinet/in.h>

/*
 * Binds the socket to a port of the kernel's choice, and stores the port in `address`. While the
 * socket stays open and never listens, a process that sets SO_REUSEADDR and names the port can
 * listen there. No other process is given the port, neither to listen on nor as the source of a
 * connection (which, to that very port, would connect to itself). Returns 0, or -1 with errno set.
 */
int port_reserve(int socket, struct sockaddr_in *address);

/* Listens at a reserved address, on another socket. Returns 0, or -1 with errno set. */
int port_listen(int socket, const struct sockaddr_in *address);

#endif
