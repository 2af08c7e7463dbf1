#include "authority.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define DAY_S (24L * 60 * 60)
#define PATH_SIZE 256

struct authority {
    char folder[PATH_SIZE];
    EVP_PKEY *key;
    X509 *certificate;
    long issued;
};

static void must(bool good, const char *what) {
    if (!good) {
        fprintf(stderr, "authority: %s\n", what);
        ERR_print_errors_fp(stderr);
        exit(EXIT_FAILURE);
    }
}

/* ---- certificates ---- */

static X509 *new_certificate(EVP_PKEY *key, const char *subject, long serial, bool has_expired) {
    X509 *certificate = X509_new();
    X509_NAME *name = X509_NAME_new();

    must(certificate != NULL && name != NULL &&
             X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)subject,
                                        -1, -1, 0) &&
             X509_set_version(certificate, 2) &&
             ASN1_INTEGER_set(X509_get_serialNumber(certificate), serial) &&
             X509_gmtime_adj(X509_getm_notBefore(certificate), -3 * DAY_S) &&
             X509_gmtime_adj(X509_getm_notAfter(certificate), has_expired ? -DAY_S : 3 * DAY_S) &&
             X509_set_subject_name(certificate, name) && X509_set_pubkey(certificate, key),
         "a certificate cannot be made");
    X509_NAME_free(name);
    return certificate;
}

static void add_extension(X509 *certificate, X509 *issuer, int kind, const char *value) {
    X509V3_CTX context;
    X509_EXTENSION *extension;

    X509V3_set_ctx(&context, issuer, certificate, NULL, NULL, 0);
    extension = X509V3_EXT_conf_nid(NULL, &context, kind, value);
    must(extension != NULL && X509_add_ext(certificate, extension, -1), value);
    X509_EXTENSION_free(extension);
}

static EVP_PKEY *new_key(void) {
    EVP_PKEY *key = EVP_EC_gen("P-256");

    must(key != NULL, "a key cannot be made");
    return key;
}

/* ---- files ---- */

static void open_file(char path[PATH_SIZE], FILE **file, const char *folder, const char *name,
                      const char *ending) {
    must(snprintf(path, PATH_SIZE, "%s/%s%s", folder, name, ending) < PATH_SIZE, "a long path");
    *file = fopen(path, "we");
    must(*file != NULL, path);
}

static void write_certificate(X509 *certificate, const char *folder, const char *name,
                              const char *ending) {
    char path[PATH_SIZE];
    FILE *file;

    open_file(path, &file, folder, name, ending);
    must(PEM_write_X509(file, certificate) && fclose(file) == 0, path);
}

static void write_key(EVP_PKEY *key, const char *folder, const struct certificate *wish) {
    const char *passphrase = wish->passphrase;
    char path[PATH_SIZE];
    FILE *file;

    open_file(path, &file, folder, wish->file, ".key");
    must(PEM_write_PrivateKey(file, key, passphrase != NULL ? EVP_aes_128_cbc() : NULL,
                              (const unsigned char *)passphrase,
                              passphrase != NULL ? (int)strlen(passphrase) : 0, NULL, NULL) &&
             fclose(file) == 0,
         path);
}

/* ---- the authority ---- */

struct authority *authority_create(const char *folder, const char *name) {
    struct authority *authority = calloc(1, sizeof(*authority));
    char hashed[PATH_SIZE], hash[32];

    must(authority != NULL && snprintf(hashed, sizeof(hashed), "%s/%s", folder, name) < PATH_SIZE &&
             mkdir(hashed, 0700) == 0,
         "no folder");
    snprintf(authority->folder, sizeof(authority->folder), "%s", folder);
    authority->key = new_key();
    authority->certificate = new_certificate(authority->key, name, 1, false);
    X509_set_issuer_name(authority->certificate, X509_get_subject_name(authority->certificate));
    add_extension(authority->certificate, authority->certificate, NID_basic_constraints,
                  "critical,CA:TRUE");
    must(X509_sign(authority->certificate, authority->key, EVP_sha256()) > 0, "cannot sign");
    write_certificate(authority->certificate, folder, name, ".pem");
    snprintf(hash, sizeof(hash), "%08lx", X509_subject_name_hash(authority->certificate));
    write_certificate(authority->certificate, hashed, hash, ".0");
    return authority;
}

void authority_destroy(struct authority *authority) {
    X509_free(authority->certificate);
    EVP_PKEY_free(authority->key);
    free(authority);
}

void authority_issue(struct authority *authority, const struct certificate *wish) {
    EVP_PKEY *key = new_key();
    const char *subject = wish->subject != NULL ? wish->subject : wish->file;
    X509 *certificate = new_certificate(key, subject, 2 + authority->issued++, wish->has_expired);

    X509_set_issuer_name(certificate, X509_get_subject_name(authority->certificate));
    if (wish->names != NULL) {
        add_extension(certificate, authority->certificate, NID_subject_alt_name, wish->names);
    }
    must(X509_sign(certificate, authority->key, EVP_sha256()) > 0, "cannot sign");
    write_certificate(certificate, authority->folder, wish->file, ".pem");
    write_key(key, authority->folder, wish);
    X509_free(certificate);
    EVP_PKEY_free(key);
}
