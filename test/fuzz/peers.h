/*
 * The client's nodes: sockets of this process, whose bytes the input decides. Each peer also reads
 * the client's commands, and asserts that they are well-formed RESP, so it can answer like a
 * server, one command at a time.
 */
#ifndef REDLOCK_FUZZ_PEERS_H
#define REDLOCK_FUZZ_PEERS_H

#include <stdbool.h>
#include <stddef.h>

#define PEERS_MAX 5

/* Returns the URI of a peer's socket, the same in each run; `with_login` adds a login. */
const char *peers_uri(unsigned peer, bool with_login);

/* The password in those URIs. */
#define PEERS_PASSWORD "open-sesame"

/* Begins a run: all peers listen, and none is connected. */
void peers_begin(void);

/* Closes all connections. */
void peers_end(void);

/* Accepts connections from now on, or refuses them. Open connections are not affected. */
void peers_listen(unsigned peer, bool listens);

/* Closes all connections, and drops unsent bytes. */
void peers_cut(unsigned peer);

/* Closes only the connection for messages. */
void peers_cut_messages(unsigned peer);

/*
 * Send these bytes on the connection for commands; for messages. Bytes beyond the room are dropped.
 */
void peers_say(unsigned peer, const char *bytes, size_t length);
void peers_say_to_channel(unsigned peer, const char *bytes, size_t length);

/* Sends a message to the channel that the client has subscribed to, if any. */
void peers_publish(unsigned peer, const char *text, size_t length);

#define PEERS_TOKEN_SIZE 41

/* The newest request that asked a peer for an entry in the queue; "" if there was none. */
struct peers_waiter {
    char token[PEERS_TOKEN_SIZE];
    char names[80]; /* names of its keys, in the form of a message */
};

const struct peers_waiter *peers_waiter(unsigned peer);

/* Returns whether sent bytes contained the password, which others may then repeat. */
bool peers_got_password(void);

/* Sets the maximum of bytes that each peer sends in an iteration; 0: no limit. */
void peers_set_chunk(size_t chunk);

/* The manner in which a peer answers the next command. */
enum manner {
    MANNER_YES,       /* OK, or the script's success */
    MANNER_HELD,      /* another client holds the key */
    MANNER_MISSING,   /* the key is gone; a SET finds it taken */
    MANNER_TYPE,      /* a key of another type, or without expiry */
    MANNER_ERROR,     /* the server is loading */
    MANNER_NO_SCRIPT, /* the server has no scripts */
    MANNER_FORBIDDEN, /* the server requires a password */
    MANNER_ODD,       /* an answer of a wrong form */
    MANNER_UNKNOWN,   /* an error that echoes the command as unknown */
    MANNER_COUNT
};

/* Answers up to `count` commands of a peer in this manner. Returns their number. */
unsigned peers_answer(unsigned peer, enum manner manner, unsigned count);

/* Accepts new connections, and sends the bytes that are due. */
void peers_turn(void);

#endif
