/*
 * Throwaway certificate authorities and the certificates that they sign, as PEM files in a folder
 * of the test. Exits the process with a message when a file cannot be written.
 */
#ifndef REDLOCK_TEST_AUTHORITY_H
#define REDLOCK_TEST_AUTHORITY_H

#include <stdbool.h>

struct authority;

/*
 * Writes the certificate to FOLDER/NAME.pem, and to FOLDER/NAME/ under the hashed name by which
 * OpenSSL looks it up.
 */
struct authority *authority_create(const char *folder, const char *name);
void authority_destroy(struct authority *authority);

struct certificate {
    const char *file;       /* base name of FOLDER/file.pem and FOLDER/file.key */
    const char *names;      /* "DNS:localhost,IP:127.0.0.1"; NULL: none */
    const char *subject;    /* the common name; NULL: that of the file */
    bool has_expired;       /* the certificate expired yesterday; false: valid for some days */
    const char *passphrase; /* of the private key; NULL: none */
};

void authority_issue(struct authority *authority, const struct certificate *certificate);

#endif
