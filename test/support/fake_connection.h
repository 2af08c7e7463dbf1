/*
 * One connection of a server that only looks like Redis, over any transport: bytes that arrive are
 * taken apart into commands, a callback answers each, and bytes said wait to be sent. The owner of
 * the fake connection brings the bytes, and decides on the answers.
 */
#ifndef REDLOCK_TEST_FAKE_CONNECTION_H
#define REDLOCK_TEST_FAKE_CONNECTION_H

#include "command.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct evbuffer;

struct fake_connection {
    struct evbuffer *inbox;  /* bytes that arrived and are not taken apart yet */
    struct evbuffer *outbox; /* bytes that were said and are not sent yet */
};

/* Returns false when out of memory; fake_connection_finish is due all the same. */
bool fake_connection_init(struct fake_connection *connection);
void fake_connection_finish(struct fake_connection *connection);

/* Drops the bytes that have arrived and the bytes that were said. */
void fake_connection_clear(struct fake_connection *connection);

/* Answers a command. Returns false when the next command is not to be looked at now. */
typedef bool fake_connection_answer(const struct command *command, void *arg);

/*
 * Calls `answer` for at most `most` of the commands that have arrived. Returns their number; -1:
 * the bytes are no command.
 */
ssize_t fake_connection_serve(struct fake_connection *connection, size_t most,
                              fake_connection_answer *answer, void *arg);

void fake_connection_say(struct fake_connection *connection, const void *bytes, size_t length);
void fake_connection_say_text(struct fake_connection *connection, const char *text);
void fake_connection_say_bulk(struct fake_connection *connection, const void *bytes, size_t length);

/* Returns the number of bytes that were said and are not sent yet. */
size_t fake_connection_unsent(const struct fake_connection *connection);

/*
 * Takes arrived bytes from a socket, up to `most` bytes in the inbox. Returns their number; 0: the
 * other side has ended; -1: nothing has arrived.
 */
ssize_t fake_connection_receive(struct fake_connection *connection, int socket, size_t most);

/* Gives at most `most` bytes to a socket; drops all bytes for a side that has gone. */
void fake_connection_send(struct fake_connection *connection, int socket, size_t most);

#endif
