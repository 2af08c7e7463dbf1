#include "core/uri.h"

#include "base/error.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define DEFAULT_PORT 6379
#define SOCKET_PATH_MAX 107 /* sun_path of Linux, less the NUL */
#define DB_MAX 2147483647

/* One part of a URI as written, with its escapes. */
struct parts {
    const char *text, *end;
    bool present;
};

struct parser {
    const char *where;
    char *out; /* the next free byte of the storage */
    redlock_error *error;
};

static redlock_status refuse_uri(struct parser *parser, const char *why) {
    return error_set(parser->error, REDLOCK_EINVAL, "%s: %s", parser->where, why);
}

static int hex_digit(char c) {
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    /* To lower case. */
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Decodes one part into the storage; returns NULL if an escape is not valid. */
static const char *decode(struct parser *parser, struct parts part) {
    const char *start = parser->out;
    for (const char *p = part.text; p < part.end; p++) {
        char c = *p;
        if (c == '%') {
            int high = part.end - p > 2 ? hex_digit(p[1]) : -1;
            int low = high >= 0 ? hex_digit(p[2]) : -1;
            /* %00 would end the C string early. */
            if (low < 0 || high * 16 + low == 0) {
                return NULL;
            }
            c = (char)(high * 16 + low);
            p += 2;
        }
        *parser->out++ = c;
    }
    *parser->out++ = '\0';
    return start;
}

/* Reads a decimal number of digits only. Returns false if the part is none, or above `max`. */
static bool number(struct parts part, uint32_t max, uint32_t *value) {
    uint64_t sum = 0;
    if (part.text == part.end) {
        return false;
    }
    for (const char *p = part.text; p < part.end; p++) {
        if (*p < '0' || *p > '9') {
            return false;
        }
        sum = sum * 10 + (uint64_t)(*p - '0');
        /* Checked after each digit, so that the sum cannot overflow. */
        if (sum > max) {
            return false;
        }
    }
    *value = (uint32_t)sum;
    return true;
}

/* Returns the first `c` of a part, or its end. */
static const char *find_char(struct parts part, char c) {
    const char *p = part.text;
    while (p < part.end && *p != c) {
        p++;
    }
    return p;
}

static bool has(struct parts part, char c) {
    return find_char(part, c) < part.end;
}

/* Splits a part at the first `separator`: `part` keeps the text before it, the rest is returned. */
static struct parts split_at(struct parts *part, char separator) {
    const char *found = find_char(*part, separator);
    bool is_found = found < part->end;
    struct parts rest = {is_found ? found + 1 : found, part->end, is_found};
    part->end = found;
    return rest;
}

static redlock_status parse_login(struct parser *parser, struct parts login, struct uri *uri) {
    struct parts password = split_at(&login, ':');
    /* Refused rather than guessed: readers disagree which ':' separates. */
    if (has(password, ':')) {
        return refuse_uri(parser, "a ':' in a user or password must be written %3A");
    }
    /* A lone name would otherwise be sent as a user without a password. */
    if (login.text != login.end && !password.present) {
        return refuse_uri(parser, "a user needs a password: user:password@ (or :password@ for the "
                                  "default user)");
    }
    if (password.text == password.end) {
        return refuse_uri(parser, "the password before '@' is empty");
    }
    if (login.text != login.end) {
        uri->user = decode(parser, login);
    }
    uri->password = decode(parser, password);
    if (uri->password == NULL || (login.text != login.end && uri->user == NULL)) {
        return refuse_uri(parser, "a '%' in the user or password is not followed by two hex digits "
                                  "other than 00");
    }
    return REDLOCK_OK;
}

static bool is_name_char(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' ||
           c == '-' || c == '_';
}

static bool is_ipv6_char(char c) {
    return hex_digit(c) >= 0 || c == ':' || c == '.';
}

static bool consists_of(const char *text, bool (*allowed)(char)) {
    for (; *text != '\0'; text++) {
        if (!allowed(*text)) {
            return false;
        }
    }
    return true;
}

static redlock_status parse_host(struct parser *parser, struct parts host, struct uri *uri) {
    bool bracketed = host.text < host.end && *host.text == '[';
    struct parts port;
    if (bracketed) {
        host.text++;
        struct parts rest = split_at(&host, ']');
        /* After the bracket comes a port or nothing. */
        if (!rest.present || (rest.text < rest.end && *rest.text != ':')) {
            return refuse_uri(parser, "the IPv6 address is not closed by ']'");
        }
        port = (struct parts){rest.text + (rest.text < rest.end), rest.end, rest.text < rest.end};
    } else {
        port = split_at(&host, ':');
    }
    if (host.text == host.end) {
        return refuse_uri(parser, "the host is missing (an IPv6 address belongs in brackets)");
    }
    uint32_t value = DEFAULT_PORT;
    /* Most IPv6 addresses without brackets end up here, split at their first ':'. */
    if (port.present && (!number(port, 65535, &value) || value == 0)) {
        return refuse_uri(parser,
                          "the port is not a number from 1 to 65535 (an IPv6 address belongs "
                          "in brackets)");
    }
    uri->port = (uint16_t)value;
    uri->host = decode(parser, host);
    if (uri->host == NULL || strlen(uri->host) > 255 ||
        !consists_of(uri->host, bracketed ? is_ipv6_char : is_name_char) ||
        (bracketed && strchr(uri->host, ':') == NULL)) {
        return refuse_uri(parser, "the host is not a name or address");
    }
    return REDLOCK_OK;
}

static redlock_status parse_db(struct parser *parser, struct parts db, struct uri *uri) {
    if (!number(db, DB_MAX, &uri->db)) {
        return refuse_uri(parser, "the database is not a number");
    }
    return REDLOCK_OK;
}

static bool is_word(struct parts part, const char *word) {
    size_t length = strlen(word);
    return (size_t)(part.end - part.text) == length && memcmp(part.text, word, length) == 0;
}

static redlock_status parse_durable(struct parser *parser, struct parts value, struct uri *uri) {
    if (!is_word(value, "yes") && !is_word(value, "no")) {
        return refuse_uri(parser, "durable is neither yes nor no");
    }
    uri->is_durable = is_word(value, "yes");
    return REDLOCK_OK;
}

/* Parses name=value pairs separated by '&'. Only a socket takes its database here. */
static redlock_status parse_options(struct parser *parser, struct parts options, struct uri *uri) {
    while (options.present) {
        struct parts rest = split_at(&options, '&');
        struct parts value = split_at(&options, '=');
        redlock_status status;
        if (is_word(options, "durable")) {
            status = parse_durable(parser, value, uri);
        } else if (is_word(options, "db") && uri->path != NULL) {
            status = parse_db(parser, value, uri);
        } else {
            return refuse_uri(parser, uri->path != NULL
                                          ? "the options after '?' are db=NUMBER and durable=yes"
                                          : "the only option after '?' is durable=yes");
        }
        if (status != REDLOCK_OK) {
            return status;
        }
        options = rest;
    }
    return REDLOCK_OK;
}

static redlock_status parse_tcp(struct parser *parser, struct parts authority, struct parts path,
                                struct uri *uri) {
    struct parts *last = path.present ? &path : &authority;
    struct parts options = split_at(last, '?');
    redlock_status status = parse_host(parser, authority, uri);
    if (status == REDLOCK_OK && path.text != path.end) {
        status = parse_db(parser, path, uri);
    }
    return status == REDLOCK_OK ? parse_options(parser, options, uri) : status;
}

static redlock_status parse_unix(struct parser *parser, struct parts authority, struct parts path,
                                 struct uri *uri) {
    /* A host would be ignored: unix://run/redis.sock would become /redis.sock. */
    if (authority.text != authority.end || !path.present) {
        return refuse_uri(parser, "a socket is written unix:///path");
    }
    struct parts options = split_at(&path, '?');
    path.text--; /* the '/' is part of the path */
    uri->path = decode(parser, path);
    if (uri->path == NULL) {
        return refuse_uri(parser,
                          "a '%' in the path is not followed by two hex digits other than 00");
    }
    if (uri->path[1] == '\0' || strlen(uri->path) > SOCKET_PATH_MAX) {
        return refuse_uri(parser, "the path of the socket is empty or longer than 107 bytes");
    }
    return parse_options(parser, options, uri);
}

static bool is_plain(const char *text) {
    for (; *text != '\0'; text++) {
        if (*text <= ' ' || *text > '~' || *text == '#') {
            return false;
        }
    }
    return true;
}

static bool begins_with(const char *text, const char *scheme) {
    return strncmp(text, scheme, strlen(scheme)) == 0;
}

redlock_status uri_parse(const char *text, const char *where, char *storage, struct uri *uri,
                         redlock_error *error) {
    struct parser parser = {.where = where, .out = storage, .error = error};
    *uri = (struct uri){0};
    if (strlen(text) > URI_MAX) {
        return refuse_uri(&parser, "longer than 4096 bytes");
    }
    if (!is_plain(text)) {
        return refuse_uri(&parser,
                          "has a space, a '#' or a byte that is not printable ASCII: write it "
                          "as %XX");
    }
    uri->is_tls = begins_with(text, "rediss://");
    bool is_tcp = uri->is_tls || begins_with(text, "redis://");
    if (!is_tcp && !begins_with(text, "unix://")) {
        return refuse_uri(&parser, "does not begin with redis://, rediss:// or unix://");
    }
    struct parts authority = {strstr(text, "://") + 3, text + strlen(text), true};
    struct parts path = split_at(&authority, '/');
    struct parts login = authority;
    struct parts host = split_at(&login, '@');
    /* A '/' or '@' of a password would send a part of it to another host. */
    if (has(host, '@') || has(path, '@')) {
        return refuse_uri(&parser,
                          "an '@' or '/' in a user, password or path must be written %40, %2F");
    }
    if (host.present) {
        redlock_status status = parse_login(&parser, login, uri);
        if (status != REDLOCK_OK) {
            return status;
        }
        authority = host;
    }
    return is_tcp ? parse_tcp(&parser, authority, path, uri)
                  : parse_unix(&parser, authority, path, uri);
}

/* Writes a path as in a URI: bytes that a name or a URI must not contain become %XX. */
static size_t write_path(const char *path, char *name) {
    static const char digits[] = "0123456789ABCDEF";
    size_t length = 0;
    for (; *path != '\0'; path++) {
        unsigned char byte = (unsigned char)*path;
        /* The name must be safe in logs and labels, and distinct for distinct paths. */
        if (byte > ' ' && byte <= '~' && strchr("\"#%?@\\", byte) == NULL) {
            name[length++] = *path;
        } else {
            name[length++] = '%';
            name[length++] = digits[byte >> 4];
            name[length++] = digits[byte & 15];
        }
    }
    name[length] = '\0';
    return length;
}

void uri_name(const struct uri *uri, char name[URI_NAME_MAX]) {
    size_t length;
    if (uri->path != NULL) {
        length = write_path(uri->path, name);
    } else if (strchr(uri->host, ':') != NULL) {
        length = (size_t)snprintf(name, URI_NAME_MAX, "[%s]:%u", uri->host, uri->port);
    } else {
        length = (size_t)snprintf(name, URI_NAME_MAX, "%s:%u", uri->host, uri->port);
    }
    if (uri->db != 0) {
        snprintf(name + length, URI_NAME_MAX - length, "%s%" PRIu32,
                 uri->path != NULL ? "?db=" : "/", uri->db);
    }
}

/* ---- comparing ---- */

static bool is_same(const char *a, const char *b) {
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

static bool is_same_host(const char *a, const char *b) {
    return a == NULL || b == NULL ? a == b : strcasecmp(a, b) == 0;
}

bool uri_is_same_server(const struct uri *a, const struct uri *b) {
    /* By spelling only: two names of one server are found by its run_id (core/trust.h). */
    return is_same_host(a->host, b->host) && is_same(a->path, b->path) && a->port == b->port &&
           a->db == b->db;
}

bool uri_is_same_login(const struct uri *a, const struct uri *b) {
    return is_same(a->user, b->user) && is_same(a->password, b->password) &&
           a->is_tls == b->is_tls && a->is_durable == b->is_durable;
}
