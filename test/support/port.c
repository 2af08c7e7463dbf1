#include "port.h"

#include <arpa/inet.h>
#include <sys/socket.h>

static int may_be_shared(int socket) {
    int on = 1;

    return setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
}

int port_reserve(int socket, struct sockaddr_in *address) {
    socklen_t size = sizeof(*address);

    *address =
        (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    /*
     * SO_REUSEADDR is set after bind: with it, bind might choose a port that another process
     * reserves.
     */
    if (bind(socket, (struct sockaddr *)address, size) != 0 || may_be_shared(socket) != 0) {
        return -1;
    }
    return getsockname(socket, (struct sockaddr *)address, &size);
}

int port_listen(int socket, const struct sockaddr_in *address) {
    if (may_be_shared(socket) != 0 ||
        bind(socket, (const struct sockaddr *)address, sizeof(*address)) != 0) {
        return -1;
    }
    return listen(socket, 128);
}
