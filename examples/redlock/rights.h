/* Checks that the user has the rights at a node that each feature needs. */
#ifndef RIGHTS_H
#define RIGHTS_H

#include "findings.h"

#include <hiredis/hiredis.h>

/*
 * Tries each command on keys that begin with `prefix`. Leaves nothing except the key
 * "<prefix>doctor", for 1 ms.
 */
void rights_check(struct findings *findings, redisContext *context, const char *prefix);

#endif
