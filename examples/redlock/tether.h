/* Makes the kernel end the command with this process, whatever ends this process. */
#ifndef TETHER_H
#define TETHER_H

#include <sys/types.h>

/*
 * Makes the kernel send SIGKILL to all processes of the group when this process ends, even by
 * SIGKILL. Uses four descriptors until then. Returns 0, or -1 with errno set.
 */
int tether_group(pid_t group);

#endif
