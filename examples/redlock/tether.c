/*
 * PR_SET_PDEATHSIG reaches one process, and its children do not inherit it. A pipe reaches a group:
 * its read end requests a signal, of our choice and to the group, when the pipe changes, and the
 * pipe changes when its write end is closed. Only this process has both ends; when it dies, the
 * kernel closes them. The write end must be closed first. The kernel promises no order, but follows
 * the numbers of descriptors, up or down: so there is one pipe for each order.
 *
 * The signal is sent to all members of the group in one step, which no fork escapes.
 */
#include "tether.h"

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <unistd.h>

/* Moves a descriptor to a number above another. Returns it, or -1 with errno set. */
static int move_above(int descriptor, int other) {
    int moved = fcntl(descriptor, F_DUPFD_CLOEXEC, other + 1);

    close(descriptor);
    return moved;
}

static int tie(pid_t group, bool reads_above) {
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) != 0) {
        return -1;
    }
    int *upper = reads_above ? &ends[0] : &ends[1];
    *upper = move_above(*upper, reads_above ? ends[1] : ends[0]);
    if (*upper < 0 || fcntl(ends[0], F_SETOWN, -group) != 0 ||
        fcntl(ends[0], F_SETSIG, SIGKILL) != 0 || fcntl(ends[0], F_SETFL, O_ASYNC) != 0) {
        return -1;
    }
    return 0;
}

int tether_group(pid_t group) {
    return tie(group, false) == 0 && tie(group, true) == 0 ? 0 : -1;
}
