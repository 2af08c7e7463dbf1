/* Checks that a node lets its user do what each feature needs. */
#ifndef RIGHTS_H
#define RIGHTS_H

#include "findings.h"

#include <hiredis/hiredis.h>

/*
 * Tries each command on keys that begin with `prefix`; leaves nothing behind but, for one
 * millisecond, the key "<prefix>doctor".
 */
void rights_check(struct findings *findings, redisContext *context, const char *prefix);

#endif
