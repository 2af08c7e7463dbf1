/* Replaces tls.c in builds without TLS: refuses. */
#include "base/error.h"
#include "io/tls.h"

/* Returns the option that asks for TLS, as the beginning of a message; "" when only a node asks. */
static const char *option_of(const redlock_options *options) {
    if (options->tls_ca_file != NULL) {
        return "tls_ca_file: ";
    }
    if (options->tls_ca_path != NULL) {
        return "tls_ca_path: ";
    }
    return options->tls_cert_file != NULL ? "tls_cert_file: " : "";
}

redlock_status tls_create(const redlock_options *options, const redlock_allocator *allocator,
                          struct tls **tls, redlock_error *error) {
    (void)allocator;
    *tls = NULL;
    return error_set(error, REDLOCK_EINVAL,
                     "%sthis build of libredlock has no TLS: install OpenSSL and hiredis >= 1.0 "
                     "with its ssl library (hiredis_ssl), and build it again",
                     option_of(options));
}
