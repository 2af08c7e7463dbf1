/*
 * hiredis_ssl moves the bytes between hiredis and OpenSSL. Before version 1.4 it does not check the
 * name in a certificate, so the SSL object is created here, with the name or address that the
 * certificate must match, and passed to hiredis_ssl.
 *
 * hiredis_ssl starts TLS on a socket that is still connecting, and writes later what it cannot
 * write yet. From then on it never falls back to plain writes, whatever fails.
 */
#include "io/tls.h"

#include "base/error.h"
#include "base/memory.h"

#include <dirent.h>
#include <errno.h>
#include <hiredis/async.h>
#include <hiredis/hiredis_ssl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>

/* Maximum length of a server's name. */
#define NAME_MAX_LENGTH 255

struct openssl_tls {
    struct tls tls;
    redlock_allocator allocator;
    SSL_CTX *context;
};

struct openssl_session {
    struct tls_session session;
    struct openssl_tls *tls;
    SSL *ssl;
};

static SSL *ssl_of(const struct tls_session *session) {
    return ((const struct openssl_session *)session)->ssl;
}

/* ---- causes of failures ---- */

/* Returns OpenSSL's text for the first error since the last ERR_clear_error. */
static const char *reason(void) {
    unsigned long code = ERR_peek_error();
    const char *words = code != 0 ? ERR_reason_error_string(code) : NULL;
    return words != NULL ? words : "for an unknown reason";
}

/* Returns a hint for errors that a server without TLS causes. */
static const char *advice_for(unsigned long code) {
    switch (ERR_GET_REASON(code)) {
    case SSL_R_WRONG_VERSION_NUMBER:
    case SSL_R_PACKET_LENGTH_TOO_LONG:
    case SSL_R_RECORD_LAYER_FAILURE:
        return " (does the server speak TLS at this port?)";
    default:
        return "";
    }
}

/*
 * Reads the alert of a server that has hung up, for instance because it wants another certificate.
 * A write may notice the end of the connection before the alert is read.
 */
static void hear_last_words(SSL *ssl) {
    char byte;
    ERR_clear_error();
    SSL_peek(ssl, &byte, 1);
}

static bool explain(const struct tls_session *session, char *why, size_t size) {
    long verdict = SSL_get_verify_result(ssl_of(session));
    if (session->is_ready && ERR_GET_LIB(ERR_peek_error()) != ERR_LIB_SSL) {
        hear_last_words(ssl_of(session));
    }
    unsigned long code = ERR_peek_error();
    if (!session->is_ready && verdict != X509_V_OK) {
        snprintf(why, size, "TLS: certificate verify failed: %s",
                 X509_verify_cert_error_string(verdict));
        return true;
    }
    if (ERR_GET_LIB(code) != ERR_LIB_SSL) {
        return false;
    }
    snprintf(why, size, "TLS: %s%s", reason(), session->is_ready ? "" : advice_for(code));
    return true;
}

/* ---- one connection ---- */

static void on_info(const SSL *ssl, int where, int result) {
    (void)result;
    if (where & SSL_CB_HANDSHAKE_DONE) {
        struct tls_session *session = SSL_get_app_data(ssl);
        session->is_ready = true;
    }
}

/*
 * Requires a certificate for `name`, without the trailing dot that a DNS name may have. Only
 * subjectAltName counts, not the common name to which OpenSSL would fall back (RFC 9525).
 */
static bool expect_name(SSL *ssl, const char *name) {
    char text[NAME_MAX_LENGTH + 1];
    size_t length = strnlen(name, NAME_MAX_LENGTH);
    memcpy(text, name, length);
    length -= length > 1 && text[length - 1] == '.';
    text[length] = '\0';
    SSL_set_hostflags(ssl,
                      X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
    return SSL_set1_host(ssl, text) == 1 && SSL_set_tlsext_host_name(ssl, text) == 1;
}

/*
 * Requires a certificate for `name`. A numeric address must be among the certificate's addresses,
 * and is not sent as a server name (RFC 6066).
 */
static bool expect(SSL *ssl, const char *name) {
    return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name) == 1 || expect_name(ssl, name);
}

static void end_session(struct tls_session *session) {
    struct openssl_session *openssl = (struct openssl_session *)session;
    SSL_free(openssl->ssl);
    memory_free(&openssl->tls->allocator, openssl);
}

/* Returns hiredis' message without its TLS prefix, because the cause is the network. */
static const char *network_reason(const redisAsyncContext *context) {
    static const char prefix[] = "SSL_connect failed: ";
    const char *why = context->c.errstr;
    return strncmp(why, prefix, strlen(prefix)) == 0 ? why + strlen(prefix) : why;
}

static redlock_status begin_session(struct openssl_session *openssl, redisAsyncContext *context,
                                    const char *name, redlock_error *error) {
    openssl->ssl = SSL_new(openssl->tls->context);
    if (openssl->ssl == NULL || !expect(openssl->ssl, name)) {
        return error_set(error, REDLOCK_ENOMEM, "out of memory");
    }
    SSL_set_app_data(openssl->ssl, openssl);
    SSL_up_ref(openssl->ssl); /* hiredis frees its own reference */
    if (redisInitiateSSL(&context->c, openssl->ssl) == REDIS_OK) {
        return REDLOCK_OK;
    }
    SSL_free(openssl->ssl); /* hiredis did not take its reference */
    /* Connecting to a near server may fail at once, so the server may have answered. */
    char why[128];
    if (explain(&openssl->session, why, sizeof(why))) {
        return error_set(error, REDLOCK_EINVAL, "%s", why);
    }
    return error_set(error, REDLOCK_ESYSTEM, "%s", network_reason(context));
}

static struct tls_session *start_session(struct tls *tls, redisAsyncContext *context,
                                         const char *name, redlock_error *error) {
    struct openssl_tls *openssl_tls = (struct openssl_tls *)tls;
    struct openssl_session *openssl =
        memory_zalloc(&openssl_tls->allocator, sizeof(struct openssl_session));
    if (openssl == NULL) {
        error_set(error, REDLOCK_ENOMEM, "out of memory");
        return NULL;
    }
    openssl->session.methods = tls->methods;
    openssl->tls = openssl_tls;
    ERR_clear_error();
    if (begin_session(openssl, context, name, error) != REDLOCK_OK) {
        end_session(&openssl->session);
        return NULL;
    }
    return &openssl->session;
}

static void begin(struct tls_session *session) {
    (void)session; /* OpenSSL's error queue is per thread */
    ERR_clear_error();
}

static enum tls_progress continue_session(struct tls_session *session) {
    SSL *ssl = ssl_of(session);
    if (session->is_ready) {
        return TLS_READY;
    }
    int result = SSL_do_handshake(ssl);
    if (result == 1) {
        return TLS_READY;
    }
    switch (SSL_get_error(ssl, result)) {
    case SSL_ERROR_WANT_READ:
        return TLS_WAITS_TO_READ;
    case SSL_ERROR_WANT_WRITE:
        return TLS_WAITS_TO_WRITE;
    default:
        return TLS_FAILED;
    }
}

static bool has_pending(const struct tls_session *session) {
    return SSL_pending(ssl_of(session)) > 0;
}

static bool waits_to_write(const struct tls_session *session) {
    return SSL_want_write(ssl_of(session));
}

/* ---- settings of all connections ---- */

static void destroy_tls(struct tls *tls) {
    struct openssl_tls *openssl = (struct openssl_tls *)tls;
    redlock_allocator allocator = openssl->allocator;
    SSL_CTX_free(openssl->context);
    memory_free(&allocator, openssl);
}

/* Refuses to decrypt a key: without this callback OpenSSL would prompt on the terminal. */
static int refuse_passphrase(char *text, int size, int is_writing, void *was_asked) {
    (void)text;
    (void)size;
    (void)is_writing;
    *(bool *)was_asked = true;
    return -1;
}

static redlock_status refuse_file(const char *option, const char *path, const char *why,
                                  redlock_error *error) {
    return error_set(error, REDLOCK_EINVAL, "%s: %s: %s", option, path, why);
}

/* Checks that a file is readable: OpenSSL's messages for a missing file are hard to understand. */
static redlock_status check_file(const char *option, const char *path, redlock_error *error) {
    char byte;
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return refuse_file(option, path, strerror(errno), error);
    }
    errno = 0;
    size_t got = fread(&byte, 1, 1, file);
    int cause = errno; /* set for a folder, which can be opened but not read */
    fclose(file);
    return got == 1 ? REDLOCK_OK
                    : refuse_file(option, path, cause != 0 ? strerror(cause) : "is empty", error);
}

static redlock_status check_folder(const char *option, const char *path, redlock_error *error) {
    DIR *folder = opendir(path);
    if (folder == NULL) {
        return refuse_file(option, path, strerror(errno), error);
    }
    closedir(folder);
    return REDLOCK_OK;
}

static redlock_status load_authorities(SSL_CTX *context, const redlock_options *options,
                                       redlock_error *error) {
    const char *file = options->tls_ca_file;
    const char *path = options->tls_ca_path;
    redlock_status status = REDLOCK_OK;
    if (file == NULL && path == NULL) {
        SSL_CTX_set_default_verify_paths(context);
    }
    if (file != NULL && (status = check_file("tls_ca_file", file, error)) == REDLOCK_OK &&
        SSL_CTX_load_verify_locations(context, file, NULL) != 1) {
        return refuse_file("tls_ca_file", file, "holds no certificate in PEM form", error);
    }
    if (status == REDLOCK_OK && path != NULL &&
        (status = check_folder("tls_ca_path", path, error)) == REDLOCK_OK &&
        SSL_CTX_load_verify_locations(context, NULL, path) != 1) {
        return refuse_file("tls_ca_path", path, reason(), error);
    }
    return status;
}

static redlock_status load_key(SSL_CTX *context, const char *option, const char *path,
                               redlock_error *error) {
    bool has_passphrase = false;
    SSL_CTX_set_default_passwd_cb(context, refuse_passphrase);
    SSL_CTX_set_default_passwd_cb_userdata(context, &has_passphrase);
    ERR_clear_error();
    if (SSL_CTX_use_PrivateKey_file(context, path, SSL_FILETYPE_PEM) == 1) {
        return REDLOCK_OK;
    }
    if (has_passphrase) {
        return refuse_file(option, path, "the key is encrypted with a passphrase", error);
    }
    if (ERR_GET_REASON(ERR_peek_error()) == X509_R_KEY_VALUES_MISMATCH) {
        return refuse_file(option, path, "is not the key of the certificate in tls_cert_file",
                           error);
    }
    return refuse_file(option, path, "holds no private key in PEM form", error);
}

static redlock_status load_identity(SSL_CTX *context, const redlock_options *options,
                                    redlock_error *error) {
    const char *cert = options->tls_cert_file;
    const char *key = options->tls_key_file;
    redlock_status status;
    if (cert == NULL) {
        return REDLOCK_OK;
    }
    if ((status = check_file("tls_cert_file", cert, error)) != REDLOCK_OK) {
        return status;
    }
    if (SSL_CTX_use_certificate_chain_file(context, cert) != 1) {
        return refuse_file("tls_cert_file", cert, "holds no certificate in PEM form", error);
    }
    if (key == NULL) {
        return load_key(context, "tls_cert_file", cert, error);
    }
    if ((status = check_file("tls_key_file", key, error)) != REDLOCK_OK) {
        return status;
    }
    return load_key(context, "tls_key_file", key, error);
}

static SSL_CTX *make_context(void) {
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    if (context == NULL) {
        return NULL;
    }
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_info_callback(context, on_info);
    /* A renegotiation would make writes wait for reads. Servers may end a connection without
       close_notify: the end of a reply is known from the reply itself. */
    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION);
#ifdef SSL_OP_IGNORE_UNEXPECTED_EOF
    SSL_CTX_set_options(context, SSL_OP_IGNORE_UNEXPECTED_EOF);
#endif
    if (SSL_CTX_get_min_proto_version(context) <
        TLS1_2_VERSION) { /* the system may require a later version */
        SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
    }
    return context;
}

static const struct tls_methods methods = {
    .destroy = destroy_tls,
    .start = start_session,
    .end = end_session,
    .begin = begin,
    .shake = continue_session,
    .has_pending = has_pending,
    .waits_to_write = waits_to_write,
    .explain = explain,
};

redlock_status tls_create(const redlock_options *options, const redlock_allocator *allocator,
                          struct tls **tls, redlock_error *error) {
    struct openssl_tls *openssl = memory_zalloc(allocator, sizeof(*openssl));
    *tls = NULL;
    ERR_clear_error();
    if (openssl != NULL) {
        openssl->context = make_context();
    }
    if (openssl == NULL || openssl->context == NULL) {
        memory_free(allocator, openssl);
        return error_set(error, REDLOCK_ENOMEM, "out of memory");
    }
    openssl->tls.methods = &methods;
    openssl->allocator = *allocator;
    redlock_status status = load_authorities(openssl->context, options, error);
    if (status == REDLOCK_OK) {
        status = load_identity(openssl->context, options, error);
    }
    if (status != REDLOCK_OK) {
        destroy_tls(&openssl->tls);
        return status;
    }
    *tls = &openssl->tls;
    return REDLOCK_OK;
}
