/* Users that lack rights, and the warnings in which the log names what is missing. */
#ifndef REDLOCK_TEST_MISSING_RIGHTS_H
#define REDLOCK_TEST_MISSING_RIGHTS_H

#include "harness.h"

/* The user of connect_without(). */
#define POOR "app"

/* Makes a client of a user who has all rights but those that the ACL rules take away. */
redlock_client *connect_without(struct fixture *f, const char *rules);

/* Gives and takes rights of that user at all masters. */
void change_rights(struct fixture *f, const char *rules);

/*
 * Returns the number of warnings about a node that begin with a text, such as "no messages", and
 * contain another one behind it.
 */
size_t warnings(struct fixture *f, size_t node, const char *subject, const char *text);

/* Runs the loop until each master's node has such a warning, or more. */
void wait_warnings(struct fixture *f, const char *subject, const char *text);

#endif
