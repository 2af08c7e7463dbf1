/* A name server on an event base, over UDP and TCP. The test decides about each answer. */
#ifndef REDLOCK_TEST_NAME_SERVER_H
#define REDLOCK_TEST_NAME_SERVER_H

#include <event2/event.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bufferevent;
struct name_server;

/* A question, which may be copied and answered later. Over TCP: while the connection is open. */
struct name_question {
    struct name_server *server;
    struct sockaddr_in client;
    struct bufferevent *connection; /* NULL: over UDP */
    bool is_ipv6;                   /* whether it asks for IPv6 addresses; false: for IPv4 */
    size_t size;
    unsigned char packet[512]; /* header and question */
};

typedef void name_question_cb(const struct name_question *question, void *arg);

/* Starts a server. Ends the test when the machine refuses it. */
struct name_server *name_server_start(struct event_base *base, name_question_cb *on_question,
                                      void *arg);

/* Returns "127.0.0.1:port". */
const char *name_server_where(const struct name_server *server);

/* Answers with those of the addresses, a list that ends with NULL, that are of the right family. */
void name_server_answer(const struct name_question *question, const char *const *addresses);

/* Answers that the name does not exist. */
void name_server_deny(const struct name_question *question);

/* Answers that the answer is too long for UDP. */
void name_server_truncate(const struct name_question *question);

void name_server_stop(struct name_server *server);

#endif
