/* Feeds any text to the parser of nodes' addresses. */
#include "check.h"
#include "core/uri.h"
#include "target.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The parser's storage, of exactly the size that it needs, and its result. */
struct parsed {
    char *storage;
    struct uri uri;
    redlock_error error;
    redlock_status status;
};

static struct parsed parse(const char *text) {
    struct parsed parsed = {.storage = malloc(strlen(text) + 3)};
    CHECK(parsed.storage != NULL);
    parsed.status = uri_parse(text, "nodes[7]", parsed.storage, &parsed.uri, &parsed.error);
    return parsed;
}

static bool same(const char *a, const char *b) {
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

/* ---- refused texts ---- */

/*
 * Replaces each letter and digit of the login by another one. Escapes and structuring characters
 * stay.
 */
static void disguise_login(char *text) {
    char *start = strstr(text, "://");
    char *end = strrchr(text, '@');
    if (start == NULL || end == NULL) {
        return;
    }
    unsigned in_escape = 0;
    for (char *p = start + 3; p < end; p++) {
        bool is_alone = in_escape == 0;
        in_escape = *p == '%' ? 2 : in_escape - !is_alone;
        if (is_alone && *p >= 'a' && *p <= 'z') {
            *p = (char)('a' + (*p - 'a' + 7) % 26);
        } else if (is_alone && *p >= '0' && *p <= '9') {
            *p = (char)('0' + (*p - '0' + 7) % 10);
        }
    }
}

/*
 * Checks that the error's message does not depend on the characters of the login, and so cannot
 * contain them.
 */
static void check_secrecy(const char *text, const struct parsed *parsed) {
    char *disguised = strdup(text);
    CHECK(disguised != NULL);
    disguise_login(disguised);
    struct parsed other = parse(disguised);
    CHECK(other.status == parsed->status);
    CHECK(parsed->status == REDLOCK_OK || same(other.error.message, parsed->error.message));
    free(other.storage);
    free(disguised);
}

static void check_refusal(const struct parsed *parsed) {
    CHECK(parsed->status == REDLOCK_EINVAL && parsed->error.status == REDLOCK_EINVAL);
    CHECK(strncmp(parsed->error.message, "nodes[7]: ", 10) == 0);
    CHECK(strlen(parsed->error.message) > 12);
}

/* ---- accepted texts ---- */

static void check_string(const char *string, const struct parsed *parsed, size_t size) {
    if (string != NULL) {
        CHECK(string >= parsed->storage && string < parsed->storage + size);
        CHECK(memchr(string, '\0', (size_t)(parsed->storage + size - string)) != NULL);
    }
}

/* Appends a string with every byte escaped. */
static char *append_escaped(char *out, const char *string) {
    for (; *string != '\0'; string++) {
        out += sprintf(out, "%%%02x", (unsigned)(unsigned char)*string);
    }
    return out;
}

static char *append_login(char *out, const struct uri *uri) {
    if (uri->password != NULL) {
        out = append_escaped(out, uri->user != NULL ? uri->user : "");
        *out++ = ':';
        out = append_escaped(out, uri->password);
        *out++ = '@';
    }
    return out;
}

/* Checks that a name is fit for logs and for labels of statistics. */
static void check_name(const char *name) {
    for (; *name != '\0'; name++) {
        CHECK(*name > ' ' && *name <= '~' && *name != '"' && *name != '\\');
    }
}

/* Checks that a text of the login and the name is parsed into the same parts. */
static void check_round_trip(const struct uri *uri) {
    static char text[4 * URI_MAX];
    char name[URI_NAME_MAX];
    char *out = text;
    uri_name(uri, name);
    CHECK(strlen(name) > 0 && strlen(name) < URI_NAME_MAX - 1);
    CHECK(uri->path == NULL || name[0] == '/');
    check_name(name);
    out += sprintf(out, "%s://", uri->path != NULL ? "unix" : uri->is_tls ? "rediss" : "redis");
    out = append_login(out, uri);
    sprintf(out, "%s", name);
    if (strlen(text) > URI_MAX) {
        return; /* the escapes have made it too long */
    }
    struct parsed again = parse(text);
    CHECK(again.status == REDLOCK_OK);
    CHECK(same(again.uri.host, uri->host) && same(again.uri.path, uri->path));
    CHECK(same(again.uri.user, uri->user) && same(again.uri.password, uri->password));
    CHECK(again.uri.port == uri->port && again.uri.db == uri->db &&
          again.uri.is_tls == uri->is_tls);
    free(again.storage);
}

static void check_parts(const struct parsed *parsed, size_t size) {
    const struct uri *uri = &parsed->uri;
    CHECK((uri->host == NULL) != (uri->path == NULL));
    CHECK(uri->host == NULL || (uri->port > 0 && uri->host[0] != '\0'));
    CHECK(uri->user == NULL || uri->password != NULL);
    CHECK(uri->db <= INT32_MAX);
    check_string(uri->host, parsed, size);
    check_string(uri->path, parsed, size);
    check_string(uri->user, parsed, size);
    check_string(uri->password, parsed, size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = malloc(size + 1);
    CHECK(text != NULL);
    memcpy(text, data, size);
    text[size] = '\0';
    struct parsed parsed = parse(text);
    if (parsed.status == REDLOCK_OK) {
        check_parts(&parsed, strlen(text) + 3);
        check_round_trip(&parsed.uri);
    } else {
        check_refusal(&parsed);
    }
    check_secrecy(text, &parsed);
    free(parsed.storage);
    free(text);
    return 0;
}
