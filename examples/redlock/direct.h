/*
 * A separate, blocking connection to one node, for questions that the library does not ask. No TLS.
 */
#ifndef DIRECT_H
#define DIRECT_H

#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stdint.h>

/* Maximum length of a URI that the library accepts. */
#define URI_MAX 4096

/* The cause of a failure if a server has not answered in time. */
#define DIRECT_SILENCE "no answer in time"

/* The cause of a failure if an answer is of the wrong kind. */
#define DIRECT_NONSENSE "its answer makes no sense"

/* Parts of a node's URI. */
struct direct_uri {
    char user[URI_MAX];
    char password[URI_MAX];
    char host[256]; /* host, or path of a Unix socket */
    int port;       /* 0: a Unix socket */
    int db;
    bool has_password;
    bool has_tls;
    bool is_durable;
};

/* Reads a URI that the library has accepted. */
void direct_read_uri(struct direct_uri *uri, const char *text);

/*
 * Connects, logs in and selects the database. `timeout_ms` is the limit for connecting, and for
 * each whole answer. Returns NULL on failure, with the cause in `why`.
 */
redisContext *direct_connect(const struct direct_uri *uri, uint64_t timeout_ms, char *why,
                             size_t size);

/* Sends a command. Returns its reply; NULL if the connection has failed. */
redisReply *direct_ask(redisContext *context, const char *format, ...);

/* Returns the text of a string, a status or an error; "" for any other reply, and for NULL. */
const char *direct_text(const redisReply *reply);

/* Returns an element of an array; NULL if the reply is not an array, or shorter. */
const redisReply *direct_element(const redisReply *reply, size_t index);

/*
 * Returns why a command failed, as untrusted text: the end of the connection (the reply is NULL),
 * the server's error, or that its answer is malformed.
 */
const char *direct_failure(const redisContext *context, const redisReply *reply);

/* Finds "name:value" in the answer of INFO. Returns whether it was found. */
bool direct_info(const redisReply *info, const char *name, char *value, size_t size);

/* Returns the number after a name in the answer of INFO, or `otherwise`. */
int64_t direct_info_number(const redisReply *info, const char *name, int64_t otherwise);

#endif
