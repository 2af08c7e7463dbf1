#include "talk.h"

#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>

int talk_open(int sockets[2]) {
    return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, sockets);
}

talk_deadline *talk_share_deadline(void) {
    void *page = mmap(NULL, sizeof(talk_deadline), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    return page == MAP_FAILED ? NULL : page;
}

void talk_send(int socket, enum talk_kind kind, int number) {
    struct talk talk = {.kind = kind, .number = number};

    (void)!send(socket, &talk, sizeof(talk), MSG_NOSIGNAL);
}

int talk_receive(int socket, struct talk *talk) {
    ssize_t length = recv(socket, talk, sizeof(*talk), 0);

    if (length == (ssize_t)sizeof(*talk)) {
        return 1;
    }
    return length < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
}

static uint64_t read_ms(clockid_t clock) {
    struct timespec now;

    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

uint64_t talk_now_ms(void) {
    return read_ms(CLOCK_BOOTTIME);
}

uint64_t talk_wall_ms(void) {
    return read_ms(CLOCK_REALTIME);
}
