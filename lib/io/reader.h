/*
 * What a connection's replies are built with, instead of hiredis' own functions: one object for all
 * of them, and a refusal of whatever we never ask for. Included by io/net.c alone.
 */
#ifndef REDLOCK_IO_READER_H
#define REDLOCK_IO_READER_H

#include "wire/reply.h"

#include <hiredis/async.h>

/* The longest text of a reply that is accepted; ours are far shorter. */
#define READER_TEXT_MAX 8192

/* The most that is buffered of a reply that is not complete yet. */
#define READER_BUFFER_MAX (64 * 1024)

struct reader {
    const redisAsyncContext *context;
    const char *refusal; /* what the server did wrong; NULL: nothing so far */
    redisReply reply;    /* the one that is being delivered */
    char text[READER_TEXT_MAX + 1];
};

/* Has the context build its replies with `reader`, which must live as long. */
void reader_attach(struct reader *reader, redisAsyncContext *context);

/* What hiredis delivers, in our own words; valid as long as the object. */
struct reply reader_reply(const redisReply *given);

#endif
