#define _GNU_SOURCE 1 /* O_PATH, dup3, accept4 */

#include "unix_listener.h"

#include "folder.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/*
 * Binds a socket to a temporary name, which is gone on return. Returns a descriptor of the file, or
 * -1.
 */
static int way_to(int socket) {
    char folder[FOLDER_SIZE];
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int way = -1;

    if (folder_make(folder, "door") != 0) {
        return -1;
    }
    snprintf(address.sun_path, sizeof(address.sun_path), "%s/socket", folder);
    if (bind(socket, (struct sockaddr *)&address, sizeof(address)) == 0) {
        way = open(address.sun_path, O_PATH | O_CLOEXEC);
    }
    folder_remove(folder);
    return way;
}

bool unix_listener_make(struct unix_listener *unix_listener, int listener, int refuser,
                        int number) {
    *unix_listener = (struct unix_listener){number, listener, way_to(listener), way_to(refuser)};
    close(refuser);
    if (unix_listener->open < 0 || unix_listener->closed < 0 || listen(listener, 64) != 0) {
        return false;
    }
    if (number < 0) {
        unix_listener->number = fcntl(unix_listener->open, F_DUPFD_CLOEXEC, 0);
        return unix_listener->number >= 0;
    }
    return unix_listener_set(unix_listener, true);
}

bool unix_listener_set(struct unix_listener *unix_listener, bool is_open) {
    return dup3(is_open ? unix_listener->open : unix_listener->closed, unix_listener->number,
                O_CLOEXEC) >= 0;
}

int unix_listener_accept(int listener) {
    return accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
}
