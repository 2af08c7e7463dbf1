/*
 * The address and the login of a node:
 *     redis://[user[:password]@]host[:port][/db]       unix://[user[:password]@]/path[?db=n]
 *     rediss://..., redis:// over TLS
 * with %XX escapes (RFC 3986) and IPv6 addresses in brackets; ?durable=yes (or &durable=yes) states
 * that the server keeps its data over restarts.
 */
#ifndef REDLOCK_CORE_URI_H
#define REDLOCK_CORE_URI_H

#include <redlock.h>
#include <stdbool.h>
#include <stdint.h>

struct uri {
    const char *host; /* a name or an address, without brackets; NULL for a socket */
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
 * Parses `text`. The strings of `uri` are in `storage`, which has room for strlen(text) + 3 bytes
 * and must live as long as `uri`. On failure returns REDLOCK_EINVAL and describes the mistake in
 * `error`, which begins with `where` and repeats no part of the text, because that may hold a
 * password.
 */
redlock_status uri_parse(const char *text, const char *where, char *storage, struct uri *uri,
                         redlock_error *error);

/* Returns whether both name the same database of the same server. */
bool uri_is_same_server(const struct uri *a, const struct uri *b);

/* Returns whether logins, TLS and durability are the same. */
bool uri_is_same_login(const struct uri *a, const struct uri *b);

/* The longest name that uri_name writes, with the NUL. */
#define URI_NAME_MAX 344

/*
 * Writes the node's name for logs, reports and statistics, the URI without scheme, login and
 * durability: "10.0.0.1:6379", "[::1]:6379/2", "/run/redis.sock", "/run/redis.sock?db=2". The names
 * of two servers or databases differ, and consist of printable ASCII without quotes and
 * backslashes.
 */
void uri_name(const struct uri *uri, char name[URI_NAME_MAX]);

#endif
