/*
 * A server that only looks like Redis, on the test's own loop: a callback decides on the answer to
 * each command, which may be right, late, wrong or endless.
 */
#ifndef REDLOCK_TEST_PEER_H
#define REDLOCK_TEST_PEER_H

#include "command.h"
#include "harness.h"

struct peer;
struct peer_link; /* one accepted connection */

/* Answers a command. The link is valid until the callback hangs up. */
typedef void peer_answer(struct peer_link *link, const struct command *command, void *arg);

/* Listens on a free port of 127.0.0.1. Ends with the fixture, after the clients. */
struct peer *peer_create(struct fixture *f, peer_answer *answer, void *arg);

/* Does what peer_create does, on a Unix socket in a folder of its own. */
struct peer *peer_create_unix(struct fixture *f, peer_answer *answer, void *arg);

const char *peer_uri(const struct peer *peer);

/* Sets the callback that runs for each new connection, before anything is read from it. */
void peer_greet(struct peer *peer, void (*greet)(struct peer_link *link, void *arg));

/* Sends at most `bytes` bytes at once from now on, each piece in its own turn of the loop. */
void peer_set_chunk(struct peer *peer, size_t bytes);

size_t peer_links(const struct peer *peer);      /* connections accepted so far */
size_t peer_open_links(const struct peer *peer); /* connections open now */
size_t peer_poured(const struct peer *peer);     /* bytes of peer_pour sent so far */
size_t peer_commands(const struct peer *peer);   /* commands read so far */

/* Runs the loop until `count` connections have been accepted in all. */
void wait_peer_links(struct fixture *f, struct peer *peer, size_t count);
/* Runs the loop until `count` commands have been read in all. */
void wait_peer_commands(struct fixture *f, struct peer *peer, size_t count);

/* Answers (a peer_answer) like a Redis that grants, renews and releases every lock. */
void peer_answer_well(struct peer_link *link, const struct command *command, void *arg);
/* Answers nothing (a peer_answer). */
void peer_answer_nothing(struct peer_link *link, const struct command *command, void *arg);

void peer_say(struct peer_link *link, const char *text);
void peer_send(struct peer_link *link, const void *bytes, size_t length);

/* Sends the bytes over and over as long as the other side reads them. The bytes must stay valid. */
void peer_pour(struct peer_link *link, const void *bytes, size_t length);

/* Stops reading from this connection. */
void peer_turn_away(struct peer_link *link);

/* Closes the connection once all bytes are sent. */
void peer_hang_up(struct peer_link *link);

/* Returns whether the link is one of the peer's open connections. */
bool peer_has(const struct peer *peer, const struct peer_link *link);

/* Closes all connections at once. */
void peer_drop_links(struct peer *peer);

#endif
