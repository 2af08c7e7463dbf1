/*
 * Reading the answers of servers that may be hostile: each within the connection's time, and none
 * that is too large, however it comes.
 */
#ifndef ANSWER_H
#define ANSWER_H

#include <hiredis/hiredis.h>

/* Prepares a new connection, of which answer_next() is to read the answers. */
void answer_prepare(redisContext *context);

/*
 * Sends what redisAppendCommand has kept, and returns the next answer. Returns NULL when none comes
 * within the time of redisSetTimeout, or one that makes no sense: the context says why, and is of
 * no use any more.
 */
redisReply *answer_next(redisContext *context);

#endif
