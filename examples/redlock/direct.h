/*
 * A connection of its own to one node, for questions that the library does not ask: blocking, and
 * without TLS.
 */
#ifndef DIRECT_H
#define DIRECT_H

#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stdint.h>

/* The longest URI that the library accepts. */
#define URI_MAX 4096

/* Cause of a failure where a server has not answered in time. */
#define DIRECT_SILENCE "no answer in time"

/* Cause where an answer is of the wrong kind. */
#define DIRECT_NONSENSE "its answer makes no sense"

/* Parts of a node's URI. */
struct direct_uri {
    char user[URI_MAX];
    char password[URI_MAX];
    char host[256]; /* or the path of a socket */
    int port;       /* 0: a socket */
    int db;
    bool has_password;
    bool has_tls;
    bool is_durable;
};

/* Reads a URI that the library has accepted. */
void direct_read_uri(struct direct_uri *uri, const char *text);

/*
 * Connects, logs in and selects the database; connecting may take `timeout_ms`, and so may each
 * answer, as a whole. Returns NULL when that fails, with the cause in
 * `why`.
 */
redisContext *direct_connect(const struct direct_uri *uri, uint64_t timeout_ms, char *why,
                             size_t size);

/* Sends a command; returns its reply, NULL when the connection has failed. */
redisReply *direct_ask(redisContext *context, const char *format, ...);

/* Returns the text of a string, a status or an error; "" for any other reply, and for NULL. */
const char *direct_text(const redisReply *reply);

/* Returns an element of an array; NULL where the reply is none, or has fewer. */
const redisReply *direct_element(const redisReply *reply, size_t index);

/*
 * Returns why a command has failed, as text from outside: the end of the connection (the reply is
 * NULL), the error that the server answered, or that its answer makes no sense.
 */
const char *direct_failure(const redisContext *context, const redisReply *reply);

/* Finds "name:value" in the answer of INFO. Returns whether it is there. */
bool direct_info(const redisReply *info, const char *name, char *value, size_t size);

/* Returns the number behind a name in the answer of INFO, or `otherwise`. */
int64_t direct_info_number(const redisReply *info, const char *name, int64_t otherwise);

#endif
