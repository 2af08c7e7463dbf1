/* Temporary folders, in $TMPDIR, or in /tmp if it is not set. */
#ifndef REDLOCK_TEST_FOLDER_H
#define REDLOCK_TEST_FOLDER_H

/*
 * The size of a folder's path. It leaves room for a Unix socket's name within the kernel's limit.
 */
#define FOLDER_SIZE 72

/*
 * Makes "redlock-NAME-XXXXXX". Returns 0; on failure prints to stderr, sets the path to "", and
 * returns nonzero.
 */
int folder_make(char path[FOLDER_SIZE], const char *name);

/* Removes the folder and its content without following links. Returns 0 or errno. */
int folder_remove(const char *path);

#endif
