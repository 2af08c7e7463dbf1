/*
 * One connection of a server that only looks like Redis, over any transport: bytes that arrive are
 * taken apart into commands, a callback answers each, and bytes said wait to be sent. The owner of
 * the seat brings the bytes, and decides on the answers.
 */
#ifndef REDLOCK_TEST_SEAT_H
#define REDLOCK_TEST_SEAT_H

#include "command.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct evbuffer;

struct seat {
    struct evbuffer *inbox;  /* bytes that arrived and are not taken apart yet */
    struct evbuffer *outbox; /* bytes that were said and are not sent yet */
};

/* Returns false when out of memory; seat_finish is due all the same. */
bool seat_init(struct seat *seat);
void seat_finish(struct seat *seat);

/* Drops the bytes that have arrived and the bytes that were said. */
void seat_clear(struct seat *seat);

/* Answers a command. Returns false when the next command is not to be looked at now. */
typedef bool seat_answer(const struct command *command, void *arg);

/*
 * Calls `answer` for at most `most` of the commands that have arrived. Returns their number; -1:
 * the bytes are no command.
 */
ssize_t seat_serve(struct seat *seat, size_t most, seat_answer *answer, void *arg);

void seat_say(struct seat *seat, const void *bytes, size_t length);
void seat_say_text(struct seat *seat, const char *text);
void seat_say_bulk(struct seat *seat, const void *bytes, size_t length);

/* Returns the number of bytes that were said and are not sent yet. */
size_t seat_unsent(const struct seat *seat);

/*
 * Takes arrived bytes from a socket, up to `most` bytes in the inbox. Returns their number; 0: the
 * other side has ended; -1: nothing has arrived.
 */
ssize_t seat_receive(struct seat *seat, int socket, size_t most);

/* Gives at most `most` bytes to a socket; drops all bytes for a side that has gone. */
void seat_send(struct seat *seat, int socket, size_t most);

#endif
