/*
 * Temporary folders, in $TMPDIR or else in /tmp.
 */
#ifndef REDLOCK_TEST_FOLDER_H
#define REDLOCK_TEST_FOLDER_H

/* The size of a folder's path, so that a Unix socket in the folder is within the kernel's bound. */
#define FOLDER_SIZE 72

/* Makes "redlock-NAME-XXXXXX". Returns 0, or after a message on stderr not 0, with "" as path. */
int folder_make(char path[FOLDER_SIZE], const char *name);

/* Removes the folder and its content, without following links. Returns 0 or errno. */
int folder_remove(const char *path);

#endif
