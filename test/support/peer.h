/*
 * A server that only looks like Redis, on a libevent loop: a callback decides on the answer to each
 * command, which may be right, late, wrong or endless. On the loop of a test: peer_create
 * (harness_peer.h). In a process of its own: test/command/oddity.h.
 */
#ifndef REDLOCK_TEST_PEER_H
#define REDLOCK_TEST_PEER_H

#include "command.h"

#include <stdbool.h>
#include <stddef.h>

struct event_base;
struct peer;
struct peer_link; /* one accepted connection */

/* Answers a command. The link is valid until the callback hangs up. */
typedef void peer_answer(struct peer_link *link, const struct command *command, void *arg);

/* Listens on a free port of 127.0.0.1. */
struct peer *peer_listen(struct event_base *base, peer_answer *answer, void *arg);

/* Listens on a Unix socket in the folder. */
struct peer *peer_listen_unix(struct event_base *base, const char *folder, peer_answer *answer,
                              void *arg);

/* Closes the listener and all connections. */
void peer_destroy(struct peer *peer);

int peer_port(const struct peer *peer); /* 0: on a Unix socket */
const char *peer_uri(const struct peer *peer);

/* Sets the callback that runs for each new connection, before anything is read from it. */
void peer_greet(struct peer *peer, void (*greet)(struct peer_link *link, void *arg));

/* Sends at most `bytes` bytes at once from now on, each piece in its own turn of the loop. */
void peer_set_chunk(struct peer *peer, size_t bytes);

size_t peer_links(const struct peer *peer);      /* connections accepted so far */
size_t peer_open_links(const struct peer *peer); /* connections open now */
size_t peer_poured(const struct peer *peer);     /* bytes of peer_pour sent so far */
size_t peer_commands(const struct peer *peer);   /* commands read so far */

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
