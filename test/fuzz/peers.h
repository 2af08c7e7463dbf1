/*
 * What the client takes for its nodes: sockets of this process, on which the input decides what is
 * said. Each also reads what it is sent, and asserts that it is well-formed RESP; so it can answer
 * as a server would, one command at a time.
 */
#ifndef REDLOCK_FUZZ_PEERS_H
#define REDLOCK_FUZZ_PEERS_H

#include <stdbool.h>
#include <stddef.h>

#define PEERS_MAX 5

/* The URI of a peer's socket, the same in each run; with a login where asked for. */
const char *peers_uri(unsigned peer, bool with_login);

/* The password in those URIs. */
#define PEERS_PASSWORD "open-sesame"

/* As at the beginning of each run: all of them listen, nobody is connected. */
void peers_begin(void);

/* Closes all connections. */
void peers_end(void);

/* Refuses connections from now on, or takes them again. Those that stand are not touched. */
void peers_listen(unsigned peer, bool listens);

/* Closes the connection, with what it still had to say. */
void peers_cut(unsigned peer);

/* Has it say these bytes. What is too much is dropped. */
void peers_say(unsigned peer, const char *bytes, size_t length);

/* Whether such bytes held the password: then it is no wonder who else repeats it. */
bool peers_told_password(void);

/* How many bytes each peer sends in an iteration at the most; 0: all it has to say. */
void peers_set_chunk(size_t chunk);

/* How a peer answers the command whose turn it is. */
enum manner {
    MANNER_YES,       /* OK, or the script did it */
    MANNER_HELD,      /* another holds the key */
    MANNER_MISSING,   /* the key is gone; a SET finds it taken */
    MANNER_TYPE,      /* a key of another type, or without expiry */
    MANNER_ERROR,     /* it is loading */
    MANNER_NO_SCRIPT, /* it has no scripts */
    MANNER_FORBIDDEN, /* it wants a password */
    MANNER_ODD,       /* an answer of a form that was not asked for */
    MANNER_UNKNOWN,   /* it does not know the command, and repeats what it was told */
    MANNER_COUNT
};

/* Has it answer up to `count` commands in this manner. Returns how many there were. */
unsigned peers_answer(unsigned peer, enum manner manner, unsigned count);

/* One iteration: each connection that came is taken, and what is due is sent. */
void peers_turn(void);

#endif
