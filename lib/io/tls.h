/*
 * TLS under a connection, where the build has it. Two files implement this header, and meson picks
 * one: tls.c (hiredis_ssl and OpenSSL), or tls_missing.c, which can only say what is missing. So
 * tls_create is the one function that is called by its name; what it makes brings the others.
 *
 * The order of things is the same for every connection: the handshake, in which the server shows a
 * certificate, which is checked; only then the first byte of a command.
 */
#ifndef REDLOCK_IO_TLS_H
#define REDLOCK_IO_TLS_H

#include <redlock.h>
#include <stdbool.h>
#include <stddef.h>

struct redisAsyncContext;
struct tls_methods;

/* What all connections of a client share: whom to trust, and what to show. */
struct tls {
    const struct tls_methods *methods;
};

/* One connection's share. */
struct tls_session {
    const struct tls_methods *methods;
    bool is_ready; /* the handshake is done, the server is the right one */
};

enum tls_progress {
    TLS_READY,
    TLS_WAITS_TO_READ, /* until the socket is readable */
    TLS_WAITS_TO_WRITE,
    TLS_FAILED /* see explain */
};

struct tls_methods {
    void (*destroy)(struct tls *tls);

    /*
     * Has a connection that was just begun, and has sent nothing, talk TLS from its first byte on,
     * with the server that is `name`: a name or a number. NULL, with the reason in `error`; its
     * status is REDLOCK_EINVAL when there is a server already, which is not to be talked to.
     */
    struct tls_session *(*start)(struct tls *tls, struct redisAsyncContext *context,
                                 const char *name, redlock_error *error);

    /* When the context is gone. */
    void (*end)(struct tls_session *session);

    /* Before hiredis reads or writes: what went wrong earlier, elsewhere, is not to blame now. */
    void (*begin)(struct tls_session *session);

    /* Goes on with the handshake. */
    enum tls_progress (*shake)(struct tls_session *session);

    /* Whether bytes were taken from the socket already that can be read. */
    bool (*has_pending)(const struct tls_session *session);

    /* Whether what was tried last has to wait until the socket takes more. */
    bool (*waits_to_write)(const struct tls_session *session);

    /* Why it failed, when hiredis is being told; false when TLS is not to blame. */
    bool (*explain)(const struct tls_session *session, char *why, size_t size);
};

/*
 * Reads the files that the tls_ options name: REDLOCK_OK, or REDLOCK_EINVAL and a message that
 * names the option and the file, or says that this build has no TLS; or REDLOCK_ENOMEM. The
 * options are not kept, the allocator is.
 */
redlock_status tls_create(const redlock_options *options, const redlock_allocator *allocator,
                          struct tls **tls, redlock_error *error);

#endif
