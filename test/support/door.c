#define _GNU_SOURCE 1 /* O_PATH, dup3, accept4 */

#include "door.h"

#include "folder.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* Binds a socket to a name that is gone on return. Returns a descriptor of the file, or -1. */
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

bool door_make(struct door *door, int listener, int refuser, int number) {
    *door = (struct door){number, listener, way_to(listener), way_to(refuser)};
    close(refuser);
    if (door->open < 0 || door->closed < 0 || listen(listener, 64) != 0) {
        return false;
    }
    if (number < 0) {
        door->number = fcntl(door->open, F_DUPFD_CLOEXEC, 0);
        return door->number >= 0;
    }
    return door_set(door, true);
}

bool door_set(struct door *door, bool is_open) {
    return dup3(is_open ? door->open : door->closed, door->number, O_CLOEXEC) >= 0;
}

int door_accept(int listener) {
    return accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
}
