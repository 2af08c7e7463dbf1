/*
 * Builds a connection's replies in one object, instead of hiredis' own functions, and refuses
 * replies that the library never asks for. Included by io/net.c alone.
 */
#ifndef REDLOCK_IO_READER_H
#define REDLOCK_IO_READER_H

#include "wire/reply.h"

#include <hiredis/async.h>

/* Maximum length of a reply's text; the replies to the library's commands are far shorter. */
#define READER_TEXT_MAX 8192

/* Maximum number of bytes buffered of an incomplete reply. */
#define READER_BUFFER_MAX (64 * 1024)

struct reader {
    const redisAsyncContext *context;
    const char *refusal; /* fault of the server, in words; NULL: none so far */
    redisReply reply;    /* reply that is being delivered */
    char text[READER_TEXT_MAX + 1];
};

/* Makes the context build its replies with `reader`, which must live as long as the context. */
void reader_attach(struct reader *reader, redisAsyncContext *context);

/* Converts a reply of hiredis; valid as long as `given`. */
struct reply reader_reply(const redisReply *given);

#endif
