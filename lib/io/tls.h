/*
 * TLS under a connection, where the build has it. Two files implement this header, and meson picks
 * one: tls.c (hiredis_ssl and OpenSSL), or tls_missing.c, which refuses with a message. So
 * tls_create is the one function called by name; the struct tls that it makes brings the others.
 *
 * Every connection begins with the handshake, in which the server's certificate is checked; only
 * then the first byte of a command is sent.
 */
#ifndef REDLOCK_IO_TLS_H
#define REDLOCK_IO_TLS_H

#include <redlock.h>
#include <stdbool.h>
#include <stddef.h>

struct redisAsyncContext;
struct tls_methods;

/*
 * The settings shared by all connections of a client: trusted authorities, and the client's
 * certificate.
 */
struct tls {
    const struct tls_methods *methods;
};

/* The TLS state of one connection. */
struct tls_session {
    const struct tls_methods *methods;
    bool is_ready; /* whether the handshake is done and the server's identity verified */
};

enum tls_progress {
    TLS_READY,
    TLS_WAITS_TO_READ, /* until the socket is readable */
    TLS_WAITS_TO_WRITE,
    TLS_FAILED /* cause: see explain */
};

struct tls_methods {
    void (*destroy)(struct tls *tls);

    /*
     * Starts TLS on a connection that was just begun and has sent nothing; `name` is the server's
     * name or numeric address. Returns NULL, with the reason in `error`, on failure; the status is
     * REDLOCK_EINVAL when a server has answered and must not be talked to.
     */
    struct tls_session *(*start)(struct tls *tls, struct redisAsyncContext *context,
                                 const char *name, redlock_error *error);

    /* Frees a session, after its context is gone. */
    void (*end)(struct tls_session *session);

    /*
     * Prepares for a read or a write by hiredis: forgets earlier errors, which must not be blamed
     * on it.
     */
    void (*begin)(struct tls_session *session);

    /* Continues the handshake. */
    enum tls_progress (*shake)(struct tls_session *session);

    /* Returns whether bytes already taken from the socket can be read. */
    bool (*has_pending)(const struct tls_session *session);

    /* Returns whether the last operation waits until the socket takes more bytes. */
    bool (*waits_to_write)(const struct tls_session *session);

    /*
     * Writes the cause of a failure to `why`. Returns false when the cause is not TLS. Called while
     * hiredis reports the failure.
     */
    bool (*explain)(const struct tls_session *session, char *why, size_t size);
};

/*
 * Reads the files that the tls_ options name. `options` are not kept, `allocator` is. Returns
 * REDLOCK_OK; REDLOCK_EINVAL, with a message that names the option and the file, or says that this
 * build has no TLS; or REDLOCK_ENOMEM.
 */
redlock_status tls_create(const redlock_options *options, const redlock_allocator *allocator,
                          struct tls **tls, redlock_error *error);

#endif
