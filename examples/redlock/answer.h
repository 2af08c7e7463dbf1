/*
 * Reads the answers of servers that may be hostile: within the connection's timeout, and never more
 * than a bound.
 */
#ifndef ANSWER_H
#define ANSWER_H

#include <hiredis/hiredis.h>

/* Prepares a new connection for answer_next(). */
void answer_prepare(redisContext *context);

/*
 * Sends what redisAppendCommand has queued, and returns the next answer. Returns NULL if none
 * arrives within the timeout of redisSetTimeout, or it is malformed: the context then has the
 * reason, and is no longer usable.
 */
redisReply *answer_next(redisContext *context);

#endif
