/*
 * Builds a connection's replies in one object, in place of hiredis' own functions, and refuses
 * replies of kinds that the library never requests. Included only by io/net.c.
 *
 * For a subscription it accepts the confirmation, and then messages of the channel: arrays of three
 * items, of which only the last becomes the reply, an INTEGER or a STRING. A message of client
 * tracking becomes a STATUS, the name of the changed key, or a NIL: any key may have changed.
 */
#ifndef REDLOCK_IO_READER_H
#define REDLOCK_IO_READER_H

#include "wire/reply.h"

#include <hiredis/async.h>
#include <stdbool.h>

/*
 * Maximum length of a reply's text or a message. Replies to the library's commands are far shorter.
 */
#define READER_TEXT_MAX 8192

/* Maximum number of bytes buffered for an incomplete reply. */
#define READER_BUFFER_MAX (64 * 1024)

struct reader {
    uint32_t awaited;    /* number of requests without a reply; set by the owner */
    const char *refusal; /* why a reply was refused, for messages; NULL: none so far */
    const char *channel; /* channel of the subscription; NULL: none */
    bool is_confirmed;   /* whether the server has confirmed the subscription */
    bool is_change;      /* whether the message being read is one of client tracking */
    redisReply reply;    /* reply being delivered */
    char text[READER_TEXT_MAX + 1];
};

/* Makes the context build its replies with `reader`, which must live as long as the context. */
void reader_attach(struct reader *reader, redisAsyncContext *context);

/*
 * Accepts the confirmation of a subscription as the last of the replies that are now awaited, and
 * messages after it. `channel` must live as long as the reader.
 */
void reader_subscribe(struct reader *reader, const char *channel);

/* Converts a reply of hiredis. The result is valid as long as `given`. */
struct reply reader_reply(const redisReply *given);

#endif
