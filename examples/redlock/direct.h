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
 * Connects, logs in and selects the database. Returns NULL when that fails, with the cause in
 * `why`.
 */
redisContext *direct_connect(const struct direct_uri *uri, uint64_t timeout_ms, char *why,
                             size_t size);

/* Sends a command; returns its reply, NULL when the connection has failed. */
redisReply *direct_ask(redisContext *context, const char *format, ...);

/* Finds "name:value" in the answer of INFO. Returns whether it is there. */
bool direct_info(const redisReply *info, const char *name, char *value, size_t size);

/* Returns the number behind a name in the answer of INFO, or `otherwise`. */
int64_t direct_info_number(const redisReply *info, const char *name, int64_t otherwise);

#endif
