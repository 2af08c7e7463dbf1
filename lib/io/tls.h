/*
 * TLS for connections, in builds that have it. Two files implement this header, and meson picks
 * one: tls.c (hiredis_ssl and OpenSSL), or tls_missing.c, which refuses with a message. So
 * tls_create is the only function called by name; the struct tls that it creates points to the
 * others.
 *
 * Every connection begins with the handshake, which checks the server's certificate. No byte of a
 * command is sent before that.
 */
#ifndef REDLOCK_IO_TLS_H
#define REDLOCK_IO_TLS_H

#include <redlock.h>
#include <stdbool.h>
#include <stddef.h>

struct redisAsyncContext;
struct tls_methods;

/* The settings of all connections of a client: trusted authorities, and the client's certificate.
 */
struct tls {
    const struct tls_methods *methods;
};

/* The TLS state of one connection. */
struct tls_session {
    const struct tls_methods *methods;
    bool is_ready; /* whether the handshake is complete and the server's identity verified */
};

enum tls_progress {
    TLS_READY,
    TLS_WAITS_TO_READ, /* until the socket is readable */
    TLS_WAITS_TO_WRITE,
    TLS_FAILED /* explain reports the cause */
};

struct tls_methods {
    void (*destroy)(struct tls *tls);

    /*
     * Starts TLS on a new connection that has sent nothing; `name` is the server's name or numeric
     * address. Returns NULL on failure, with the reason in `error`; the status is REDLOCK_EINVAL if
     * a server has answered but cannot be trusted.
     */
    struct tls_session *(*start)(struct tls *tls, struct redisAsyncContext *context,
                                 const char *name, redlock_error *error);

    /* Frees a session. Its hiredis context must be gone. */
    void (*end)(struct tls_session *session);

    /* Prepares for a read or write by hiredis: clears earlier errors, so that none is mistaken for
     * its own. */
    void (*begin)(struct tls_session *session);

    /* Continues the handshake. */
    enum tls_progress (*shake)(struct tls_session *session);

    /* Returns whether bytes can be read that OpenSSL has already taken from the socket. */
    bool (*has_pending)(const struct tls_session *session);

    /* Returns whether the last operation waits until the socket is writable. */
    bool (*waits_to_write)(const struct tls_session *session);

    /*
     * Writes the cause of a failure to `why`. Returns false if the cause is not TLS. Must be called
     * while hiredis reports the failure: later the error queue holds other errors.
     */
    bool (*explain)(const struct tls_session *session, char *why, size_t size);
};

/*
 * Reads the files that the tls_ options name. `options` is not kept; `allocator` is copied. Returns
 * REDLOCK_OK; REDLOCK_EINVAL, with a message that names the option and the file, or says that this
 * build has no TLS; or REDLOCK_ENOMEM.
 */
redlock_status tls_create(const redlock_options *options, const redlock_allocator *allocator,
                          struct tls **tls, redlock_error *error);

#endif
