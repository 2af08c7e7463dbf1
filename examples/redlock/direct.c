#include "direct.h"

#include "answer.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PORT 6379

/* Maximum for numbers from outside, so that 1,000 times a number still fits. */
#define NUMBER_MOST (INT64_MAX / 1000)

/* Copies up to `end`, and decodes %XX. */
static void decode(char *out, size_t size, const char *from, const char *end) {
    size_t length = 0;

    for (const char *at = from; at < end && length + 1 < size; at++) {
        char hex[3] = {0};

        if (*at == '%' && end - at > 2) {
            memcpy(hex, at + 1, 2);
            out[length++] = (char)strtol(hex, NULL, 16);
            at += 2;
        } else {
            out[length++] = *at;
        }
    }
    out[length] = '\0';
}

/* Reads "user:password@". Returns what follows. */
static const char *read_login(struct direct_uri *uri, const char *text, const char *end) {
    const char *at = memchr(text, '@', (size_t)(end - text));
    const char *colon = at == NULL ? NULL : memchr(text, ':', (size_t)(at - text));

    if (at == NULL) {
        return text;
    }
    decode(uri->user, sizeof(uri->user), text, colon != NULL ? colon : at);
    if (colon != NULL) {
        decode(uri->password, sizeof(uri->password), colon + 1, at);
        uri->has_password = true;
    }
    return at + 1;
}

/* Reads "host:port" or "[address]:port". */
static void read_host(struct direct_uri *uri, const char *text, const char *end) {
    const char *close = *text == '[' ? memchr(text, ']', (size_t)(end - text)) : NULL;
    const char *from = close != NULL ? close : text;
    const char *colon = memchr(from, ':', (size_t)(end - from));

    uri->port = colon != NULL ? atoi(colon + 1) : PORT;
    if (close != NULL) {
        decode(uri->host, sizeof(uri->host), text + 1, close);
    } else {
        decode(uri->host, sizeof(uri->host), text, colon != NULL ? colon : end);
    }
}

void direct_read_uri(struct direct_uri *uri, const char *text) {
    const char *scheme_end = strstr(text, "://");
    const char *authority = scheme_end != NULL ? scheme_end + 3 : text;
    const char *slash = strchr(authority, '/');
    const char *authority_end = slash != NULL ? slash : text + strlen(text);
    const char *host;
    const char *query;
    const char *end;

    *uri = (struct direct_uri){.has_tls = strncmp(text, "rediss:", 7) == 0};
    host = read_login(uri, authority, authority_end);
    query = strchr(host, '?'); /* a login may contain a '?' */
    end = query != NULL ? query : text + strlen(text);
    authority_end = slash != NULL ? slash : end;
    uri->is_durable = query != NULL && strstr(query, "durable=yes") != NULL;
    if (strncmp(text, "unix:", 5) == 0) {
        const char *db = query != NULL ? strstr(query, "db=") : NULL;

        decode(uri->host, sizeof(uri->host), authority_end, end);
        uri->db = db != NULL ? atoi(db + 3) : 0;
    } else {
        read_host(uri, host, authority_end);
        uri->db = slash != NULL ? atoi(slash + 1) : 0;
    }
}

redisReply *direct_ask(redisContext *context, const char *format, ...) {
    va_list values;

    va_start(values, format);
    (void)!redisvAppendCommand(context, format, values);
    va_end(values);
    return answer_next(context);
}

const char *direct_text(const redisReply *reply) {
    bool is_text =
        reply != NULL && (reply->type == REDIS_REPLY_STRING || reply->type == REDIS_REPLY_STATUS ||
                          reply->type == REDIS_REPLY_ERROR);

    return is_text ? reply->str : "";
}

const redisReply *direct_element(const redisReply *reply, size_t index) {
    return reply != NULL && reply->type == REDIS_REPLY_ARRAY && index < reply->elements
               ? reply->element[index]
               : NULL;
}

const char *direct_failure(const redisContext *context, const redisReply *reply) {
    if (reply == NULL) {
        /* hiredis reports a timeout only by its error number. */
        return strcmp(context->errstr, strerror(EAGAIN)) == 0 ? DIRECT_SILENCE : context->errstr;
    }
    return reply->type == REDIS_REPLY_ERROR ? reply->str : DIRECT_NONSENSE;
}

/* Returns whether a command was answered by OK; if not, writes why. */
static bool accepts(redisContext *context, redisReply *reply, char *why, size_t size) {
    bool is_good = strcmp(direct_text(reply), "OK") == 0;

    if (!is_good) {
        snprintf(why, size, "%s", direct_failure(context, reply));
    }
    freeReplyObject(reply);
    return is_good;
}

static bool log_in(redisContext *context, const struct direct_uri *uri, char *why, size_t size) {
    if (uri->has_password) {
        redisReply *reply = uri->user[0] != '\0'
                                ? direct_ask(context, "AUTH %s %s", uri->user, uri->password)
                                : direct_ask(context, "AUTH %s", uri->password);

        if (!accepts(context, reply, why, size)) {
            return false;
        }
    }
    return uri->db == 0 || accepts(context, direct_ask(context, "SELECT %d", uri->db), why, size);
}

redisContext *direct_connect(const struct direct_uri *uri, uint64_t timeout_ms, char *why,
                             size_t size) {
    struct timeval timeout = {.tv_sec = (time_t)(timeout_ms / 1000),
                              .tv_usec = (suseconds_t)(timeout_ms % 1000 * 1000)};
    redisContext *context;

    if (uri->has_tls) {
        snprintf(why, size, "questions over TLS are left to the library");
        return NULL;
    }
    context = uri->port == 0 ? redisConnectUnixWithTimeout(uri->host, timeout)
                             : redisConnectWithTimeout(uri->host, uri->port, timeout);
    if (context == NULL || context->err != 0) {
        snprintf(why, size, "%s", context != NULL ? context->errstr : "out of memory");
    } else if (redisSetTimeout(context, timeout) == REDIS_OK) {
        answer_prepare(context);
        if (log_in(context, uri, why, size)) {
            return context;
        }
    } else {
        snprintf(why, size, "%s", context->errstr);
    }
    if (context != NULL) {
        redisFree(context);
    }
    return NULL;
}

bool direct_info(const redisReply *info, const char *name, char *value, size_t size) {
    size_t length = strlen(name);

    if (info == NULL || info->type != REDIS_REPLY_STRING) {
        return false;
    }
    for (const char *line = info->str; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, name, length) == 0 && line[length] == ':') {
            const char *from = line + length + 1;

            snprintf(value, size, "%.*s", (int)strcspn(from, "\r\n"), from);
            return true;
        }
    }
    return false;
}

int64_t direct_info_number(const redisReply *info, const char *name, int64_t otherwise) {
    char value[32];
    int64_t number =
        direct_info(info, name, value, sizeof(value)) ? strtoll(value, NULL, 10) : otherwise;

    return number < -NUMBER_MOST ? -NUMBER_MOST : number > NUMBER_MOST ? NUMBER_MOST : number;
}
