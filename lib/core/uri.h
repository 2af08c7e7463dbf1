/*
 * Where a node is and how to log in:
 *     redis://[user[:password]@]host[:port][/db]       unix://[user[:password]@]/path[?db=n]
 *     rediss://..., the same as redis:// over TLS
 * with %XX escapes (RFC 3986) and IPv6 addresses in brackets; ?durable=yes (or &durable=yes) says
 * that the server keeps what it was told over restarts.
 */
#ifndef REDLOCK_CORE_URI_H
#define REDLOCK_CORE_URI_H

#include <redlock.h>
#include <stdbool.h>
#include <stdint.h>

struct uri {
    const char *host; /* a name or a number, without brackets; NULL for a socket */
    uint16_t port;
    const char *path; /* of the socket; NULL for a host */
    const char *user; /* NULL: none given */
    const char *password;
    uint32_t db;
    bool is_durable;
    bool is_tls;
};

/* The longest URI, in bytes. */
#define URI_MAX 4096

/*
 * Parses `text`. The strings of `uri` lie in `storage`, which has room for strlen(text) + 3 bytes
 * and must live as long. On failure returns REDLOCK_EINVAL and `error` says what is wrong, in
 * words that begin with `where` and never repeat any part of the text, which may hold a password.
 */
redlock_status uri_parse(const char *text, const char *where, char *storage, struct uri *uri,
                         redlock_error *error);

/* Whether both name the same database of the same server; and whether one logs in alike there. */
bool uri_is_same_server(const struct uri *a, const struct uri *b);
bool uri_is_same_login(const struct uri *a, const struct uri *b);

/* The longest name that uri_name writes, with the NUL. */
#define URI_NAME_MAX 300

/* What the node is called in logs and reports: "10.0.0.1:6379", "[::1]:6379", "/run/redis.sock". */
void uri_name(const struct uri *uri, char name[URI_NAME_MAX]);

#endif
