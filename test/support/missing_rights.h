/* Users without some rights, and the log's warnings that name the missing right. */
#ifndef REDLOCK_TEST_MISSING_RIGHTS_H
#define REDLOCK_TEST_MISSING_RIGHTS_H

#include "harness.h"

/* The user of connect_without(). */
#define POOR "app"

/* Makes a client for a user who has all rights except those that the ACL rules revoke. */
redlock_client *connect_without(struct fixture *f, const char *rules);

/* Changes that user's rights at all masters. */
void change_rights(struct fixture *f, const char *rules);

/*
 * Returns the number of warnings about a node that begin with `subject`, such as "no messages", and
 * contain `text` after it.
 */
size_t warnings(struct fixture *f, size_t node, const char *subject, const char *text);

/* Runs the loop until each master's node has at least one such warning. */
void wait_warnings(struct fixture *f, const char *subject, const char *text);

#endif
