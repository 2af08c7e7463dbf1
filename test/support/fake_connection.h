/*
 * One connection of a server that only looks like Redis, over any transport. Bytes that arrive are
 * split into commands, a callback answers each, and the answers wait to be sent. The owner supplies
 * the bytes and decides on the answers.
 */
#ifndef REDLOCK_TEST_FAKE_CONNECTION_H
#define REDLOCK_TEST_FAKE_CONNECTION_H

#include "command.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct evbuffer;

struct fake_connection {
    struct evbuffer *inbox;  /* bytes received and not parsed yet */
    struct evbuffer *outbox; /* bytes queued and not sent yet */
};

/* Returns false when out of memory; fake_connection_finish must be called even then. */
bool fake_connection_init(struct fake_connection *connection);
void fake_connection_finish(struct fake_connection *connection);

/* Drops the received and the queued bytes. */
void fake_connection_clear(struct fake_connection *connection);

/* Answers a command. Returns false to keep the next command from being read for now. */
typedef bool fake_connection_answer(const struct command *command, void *arg);

/*
 * Calls `answer` for at most `most` of the received commands. Returns their number; -1: the bytes
 * are no command.
 */
ssize_t fake_connection_serve(struct fake_connection *connection, size_t most,
                              fake_connection_answer *answer, void *arg);

void fake_connection_say(struct fake_connection *connection, const void *bytes, size_t length);
void fake_connection_say_text(struct fake_connection *connection, const char *text);
void fake_connection_say_bulk(struct fake_connection *connection, const void *bytes, size_t length);

/* Returns the number of bytes queued and not sent yet. */
size_t fake_connection_unsent(const struct fake_connection *connection);

/*
 * Receives bytes from a socket while the inbox has less than `most`. Returns their number; 0: the
 * other side has closed; -1: nothing has arrived.
 */
ssize_t fake_connection_receive(struct fake_connection *connection, int socket, size_t most);

/* Sends at most `most` bytes to a socket; drops all bytes if the other side has gone. */
void fake_connection_send(struct fake_connection *connection, int socket, size_t most);

#endif
