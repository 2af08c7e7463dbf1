#define _GNU_SOURCE 1 /* nftw */

#include "folder.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int folder_make(char path[FOLDER_SIZE], const char *name) {
    const char *parent = getenv("TMPDIR");

    if (parent == NULL || parent[0] == '\0') {
        parent = "/tmp";
    }
    if (snprintf(path, FOLDER_SIZE, "%s/redlock-%s-XXXXXX", parent, name) >= FOLDER_SIZE) {
        fprintf(stderr, "redlock-%s: the path of the temporary folder is too long: %s\n", name,
                parent);
    } else if (mkdtemp(path) == NULL) {
        fprintf(stderr, "redlock-%s: cannot make a folder in %s: %s\n", name, parent,
                strerror(errno));
    } else {
        return 0;
    }
    path[0] = '\0';
    return -1;
}

static int remove_entry(const char *path, const struct stat *status, int type,
                        struct FTW *position) {
    (void)status;
    (void)type;
    (void)position;
    return remove(path);
}

int folder_remove(const char *path) {
    return nftw(path, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}
