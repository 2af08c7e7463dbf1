/*
 * Builds a connection's replies in one object, instead of hiredis' own functions, and refuses
 * replies that the library never asks for. Included by io/net.c alone.
 *
 * Of a subscription only its confirmation is accepted, and then messages of its channel: arrays of
 * three items, of which the last one alone becomes the reply, an INTEGER or a STRING. A message of
 * client tracking becomes a STATUS, the name of the key that has changed, or a NIL: all keys have.
 */
#ifndef REDLOCK_IO_READER_H
#define REDLOCK_IO_READER_H

#include "wire/reply.h"

#include <hiredis/async.h>
#include <stdbool.h>

/*
 * Maximum length of a reply's text, or of a message; the replies to the library's commands are far
 * shorter.
 */
#define READER_TEXT_MAX 8192

/* Maximum number of bytes buffered of an incomplete reply. */
#define READER_BUFFER_MAX (64 * 1024)

struct reader {
    uint32_t awaited;    /* replies that were asked for; set by the owner */
    const char *refusal; /* fault of the server, in words; NULL: none so far */
    const char *channel; /* channel of the subscription; NULL: none */
    bool is_confirmed;   /* whether the server has confirmed the subscription */
    bool is_change;      /* whether the message that is being read is one of client tracking */
    redisReply reply;    /* reply that is being delivered */
    char text[READER_TEXT_MAX + 1];
};

/* Makes the context build its replies with `reader`, which must live as long as the context. */
void reader_attach(struct reader *reader, redisAsyncContext *context);

/*
 * Accepts the confirmation of a subscription as the reply behind all replies that are awaited now,
 * and messages behind the confirmation. `channel` must live as long as the reader.
 */
void reader_subscribe(struct reader *reader, const char *channel);

/* Converts a reply of hiredis; valid as long as `given`. */
struct reply reader_reply(const redisReply *given);

#endif
