/*
 * Temporary folders, in $TMPDIR or else in /tmp.
 */
#ifndef REDLOCK_TEST_FOLDER_H
#define REDLOCK_TEST_FOLDER_H

/* Of a folder's path: it leaves room for the name of a Unix socket, whose path the kernel bounds.
 */
#define FOLDER_SIZE 72

/* Makes "redlock-NAME-XXXXXX" there. Other than 0: it said why on stderr, and the path is "". */
int folder_make(char path[FOLDER_SIZE], const char *name);

/* Removes the folder and all that is in it, but not what links in it lead to. Other than 0: errno.
 */
int folder_remove(const char *path);

#endif
