/*
 * One connection of a server that only looks like Redis, over any transport: bytes that arrive are
 * taken apart into commands, an answer is made up for each, and what is said waits to be sent. Who
 * has the seat brings the bytes, and decides on the answers.
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

/* False: out of memory; seat_finish is due all the same. */
bool seat_init(struct seat *seat);
void seat_finish(struct seat *seat);

/* Forgets what has arrived and what was said. */
void seat_clear(struct seat *seat);

/* Decides what to say to a command. False: the next command is not to be looked at now. */
typedef bool seat_answer(const struct command *command, void *arg);

/*
 * Has at most so many of the commands that arrived answered. Returns how many there were; -1: what
 * arrived is no command.
 */
ssize_t seat_serve(struct seat *seat, size_t most, seat_answer *answer, void *arg);

void seat_say(struct seat *seat, const void *bytes, size_t length);
void seat_say_text(struct seat *seat, const char *text);
void seat_say_bulk(struct seat *seat, const void *bytes, size_t length);

/* How many bytes were said and are not sent yet. */
size_t seat_unsent(const struct seat *seat);

/*
 * For a transport that is a socket. Takes from it what has arrived, up to so many bytes in the
 * inbox: how many there were; 0: the other side has ended; -1: nothing has arrived.
 */
ssize_t seat_receive(struct seat *seat, int socket, size_t most);

/* Gives at most so many bytes to the socket. What a side that has gone was to hear is forgotten. */
void seat_send(struct seat *seat, int socket, size_t most);

#endif
