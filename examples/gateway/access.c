#include "access.h"

#include "answer.h"
#include "gateway.h"

#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/queue.h>

static struct evkeyvalq *headers_of(const struct exchange *exchange) {
    return evhttp_request_get_input_headers(exchange->connection->request);
}

static const char *header(const struct exchange *exchange, const char *name) {
    return evhttp_find_header(headers_of(exchange), name);
}

static unsigned count_headers(const struct exchange *exchange, const char *name) {
    const struct evkeyval *pair;
    unsigned count = 0;

    TAILQ_FOREACH(pair, headers_of(exchange), next) {
        count += strcasecmp(pair->key, name) == 0;
    }
    return count;
}

static bool is_number(const char *text) {
    return text[0] != '\0' && text[strspn(text, "0123456789")] == '\0';
}

static bool is_zero(const char *text) {
    return text[0] != '\0' && text[strspn(text, "0")] == '\0';
}

/* Returns whether all header names conform to RFC 9110. evhttp accepts any, even "Host ". */
static bool are_named(const struct exchange *exchange) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789!#$%&'*+-.^_`|~";
    const struct evkeyval *pair;

    TAILQ_FOREACH(pair, headers_of(exchange), next) {
        if (pair->key[0] == '\0' || pair->key[strspn(pair->key, letters)] != '\0') {
            return false;
        }
    }
    return true;
}

/* Returns whether evhttp reads a body after such a request. Otherwise it parses one as a request.
 */
static bool reads_bodies(const struct exchange *exchange) {
    const unsigned with_body = EVHTTP_REQ_GET | EVHTTP_REQ_POST | EVHTTP_REQ_PUT |
                               EVHTTP_REQ_PATCH | EVHTTP_REQ_DELETE | EVHTTP_REQ_OPTIONS;

    return (evhttp_request_get_command(exchange->connection->request) & with_body) != 0;
}

/* Returns the header that makes the framing ambiguous, or NULL. */
static const char *find_doubt(const struct exchange *exchange) {
    static const char *const single[] = {"Host", "Content-Length", "Origin", "Authorization",
                                         "Content-Type"};
    const char *length = header(exchange, "Content-Length");

    for (size_t i = 0; i < sizeof(single) / sizeof(single[0]); i++) {
        if (count_headers(exchange, single[i]) > 1) {
            return single[i];
        }
    }
    if (header(exchange, "Host") == NULL) {
        return "Host";
    }
    if (header(exchange, "Transfer-Encoding") !=
        NULL) { /* evhttp accepts " f" and "+f" as a size */
        return "Transfer-Encoding";
    }
    if (length != NULL && !(reads_bodies(exchange) ? is_number(length) : is_zero(length))) {
        return "Content-Length";
    }
    return NULL;
}

bool access_is_plain(const struct exchange *exchange) {
    const char *doubt = find_doubt(exchange);
    char where[64];

    /* evhttp would send an answer without a length, and then continue on the connection. */
    if (evhttp_request_get_command(exchange->connection->request) == EVHTTP_REQ_CONNECT) {
        connection_drop(exchange->connection);
        return false;
    }
    if (doubt == NULL && are_named(exchange)) {
        return true;
    }
    evhttp_add_header(evhttp_request_get_output_headers(exchange->connection->request),
                      "Connection", "close");
    if (doubt == NULL) {
        answer_problem(exchange->connection, PROBLEM_BAD_REQUEST, "header",
                       "The name of a header is empty, or is followed by a blank, or has a byte "
                       "that names do not have.");
        return false;
    }
    snprintf(where, sizeof(where), "header:%s", doubt);
    answer_problem(exchange->connection, PROBLEM_BAD_REQUEST, where,
                   "The header is missing, or stands there twice, or makes it doubtful where the "
                   "request ends: the length of a body stands in Content-Length.");
    return false;
}

/* Returns whether `host`, without its port, is the name. */
static bool is_host(const char *host, size_t length, const char *name) {
    return strlen(name) == length && strncasecmp(host, name, length) == 0;
}

static bool is_address_of(const struct settings *settings, const char *host, size_t length) {
    char bracketed[sizeof(settings->address) + 2];

    snprintf(bracketed, sizeof(bracketed), "[%s]", settings->address);
    return is_host(host, length, strchr(settings->address, ':') ? bracketed : settings->address);
}

/* Returns whether a value of the Host header is a name of this server, with any port or none. */
static bool is_own(const struct settings *settings, const char *host) {
    static const char *const names[] = {"localhost", "127.0.0.1", "[::1]"};
    size_t length = host[0] == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":");

    if (length > strlen(host) ||
        (host[length] != '\0' && (host[length] != ':' || !is_number(host + length + 1)))) {
        return false;
    }
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (is_host(host, length, names[i])) {
            return true;
        }
    }
    for (size_t i = 0; i < settings->host_count; i++) {
        if (is_host(host, length, settings->hosts[i])) {
            return true;
        }
    }
    return is_address_of(settings, host, length);
}

/* Returns whether the request comes from a page of this server, or from no page. */
static bool is_same_origin(const struct exchange *exchange, const char *host) {
    const char *origin = header(exchange, "Origin");
    const char *site = header(exchange, "Sec-Fetch-Site");

    if (site != NULL && strcmp(site, "same-origin") != 0 && strcmp(site, "none") != 0) {
        return false;
    }
    if (origin == NULL) {
        return true;
    }
    if (strncasecmp(origin, "http://", 7) == 0) {
        return strcasecmp(origin + 7, host) == 0;
    }
    return strncasecmp(origin, "https://", 8) == 0 && strcasecmp(origin + 8, host) == 0;
}

bool access_is_granted(const struct exchange *exchange, bool is_public) {
    const struct settings *settings = exchange->gateway->settings;
    const char *host = header(exchange, "Host");

    if (settings->tokens.count > 0) {
        if (is_public || tokens_admit(&settings->tokens, header(exchange, "Authorization"))) {
            return true;
        }
        answer_problem(exchange->connection, PROBLEM_UNAUTHORIZED, "header:Authorization",
                       "Show a token: \"Authorization: Bearer ...\".");
        return false;
    }
    if (host == NULL || !is_own(settings, host)) {
        answer_problem(exchange->connection, PROBLEM_FORBIDDEN_HOST, "header:Host",
                       "Without a token the gateway answers to localhost, its own address, and the "
                       "names of --host.");
        return false;
    }
    if (!is_public && !is_same_origin(exchange, host)) {
        answer_problem(exchange->connection, PROBLEM_FORBIDDEN_ORIGIN, "header:Origin",
                       "Without a token the gateway answers to none but its own page, and to "
                       "programs.");
        return false;
    }
    return true;
}
