#define _GNU_SOURCE 1 /* O_PATH */

#include "door.h"

#include "folder.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>

int door_make(int socket) {
    char folder[FOLDER_SIZE];
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int door = -1;

    if (folder_make(folder, "door") != 0) {
        return -1;
    }
    snprintf(address.sun_path, sizeof(address.sun_path), "%s/socket", folder);
    if (bind(socket, (struct sockaddr *)&address, sizeof(address)) == 0) {
        door = open(address.sun_path, O_PATH | O_CLOEXEC);
    }
    folder_remove(folder);
    return door;
}
