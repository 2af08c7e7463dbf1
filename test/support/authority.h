/*
 * Throwaway certificate authorities, and certificates that they sign: files in PEM form in a folder
 * of the test. Exits the process with a message when a file cannot be made.
 */
#ifndef REDLOCK_TEST_AUTHORITY_H
#define REDLOCK_TEST_AUTHORITY_H

#include <stdbool.h>

struct authority;

/*
 * Writes the certificate to FOLDER/NAME.pem, and to the folder FOLDER/NAME under the name by which
 * OpenSSL looks for it.
 */
struct authority *authority_create(const char *folder, const char *name);
void authority_destroy(struct authority *authority);

struct certificate {
    const char *file;       /* FOLDER/file.pem and FOLDER/file.key are written */
    const char *names;      /* "DNS:localhost,IP:127.0.0.1"; NULL: none */
    const char *subject;    /* the common name; NULL: that of the file */
    bool has_expired;       /* expired yesterday; otherwise valid for some days */
    const char *passphrase; /* of the private key; NULL: none */
};

void authority_issue(struct authority *authority, const struct certificate *certificate);

#endif
