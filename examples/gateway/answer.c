#include "answer.h"

#include <event2/buffer.h>
#include <event2/http.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct problem_row {
    const char *code;
    int status;
    const char *title;
};

static const struct problem_row problems[] = {
#define PROBLEM_ROW(name, code, status, title) {code, status, title},
    PROBLEM_MAP(PROBLEM_ROW)
#undef PROBLEM_ROW
};

static const char *const routes[] = {
#define ROUTE_ROW(name, text) text,
    ROUTE_MAP(ROUTE_ROW)
#undef ROUTE_ROW
};

static const struct {
    int status;
    const char *phrase;
} statuses[] = {
    {200, "OK"},
    {201, "Created"},
    {204, "No Content"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {409, "Conflict"},
    {413, "Content Too Large"},
    {415, "Unsupported Media Type"},
    {502, "Bad Gateway"},
    {503, "Service Unavailable"},
};

#define STATUS_COUNT (sizeof(statuses) / sizeof(statuses[0]))

static uint64_t counts[ROUTE_COUNT][STATUS_COUNT];

void answer_counts(void (*write)(const char *route, int status, uint64_t count, void *arg),
                   void *arg) {
    for (size_t i = 0; i < ROUTE_COUNT; i++) {
        for (size_t j = 0; j < STATUS_COUNT; j++) {
            if (counts[i][j] > 0) {
                write(routes[i], statuses[j].status, counts[i][j], arg);
            }
        }
    }
}

/* Counts an answer. Returns the reason phrase of its status. */
static const char *count(const struct connection *connection, int status) {
    for (size_t i = 0; i < STATUS_COUNT; i++) {
        if (statuses[i].status == status) {
            counts[connection->route][i]++;
            return statuses[i].phrase;
        }
    }
    return "";
}

static void add_header(struct connection *connection, const char *name, const char *value) {
    evhttp_add_header(evhttp_request_get_output_headers(connection->request), name, value);
}

/* Adds the headers of all answers: no caching, sniffing, framing, or content from other sites. */
static void add_headers(struct connection *connection, const char *type) {
    if (type != NULL) {
        add_header(connection, "Content-Type", type);
    }
    add_header(connection, "Cache-Control", "no-store");
    add_header(connection, "X-Content-Type-Options", "nosniff");
    add_header(connection, "Referrer-Policy", "no-referrer");
    add_header(connection, "Content-Security-Policy",
               "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
               "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'");
    if (connection->connections->is_closed) {
        add_header(connection, "Connection", "close");
    }
}

static void send_reply(struct connection *connection, int status, const char *type,
                       struct evbuffer *body) {
    struct evhttp_request *request = connection->request;
    bool is_head = evhttp_request_get_command(request) == EVHTTP_REQ_HEAD;
    const char *phrase = count(connection, status);
    char length[24];

    add_headers(connection, type);
    if (is_head && body != NULL) { /* evhttp then adds none */
        snprintf(length, sizeof(length), "%zu", evbuffer_get_length(body));
        add_header(connection, "Content-Length", length);
    }
    connection_answer(connection);
    /* evhttp would also send a body to HEAD, which the client would take for the next answer. */
    evhttp_send_reply(request, status, phrase, is_head ? NULL : body);
}

static void send_text(struct connection *connection, int status, const char *type,
                      const char *text) {
    struct evbuffer *body = evbuffer_new();

    if (body == NULL || evbuffer_add_printf(body, "%s\n", text) < 0) {
        connection_drop(connection); /* no memory even to say so */
    } else {
        send_reply(connection, status, type, body);
    }
    if (body != NULL) {
        evbuffer_free(body);
    }
}

json_t *answer_text(const char *text) {
    json_t *value = json_string(text);
    char *copy;

    if (value != NULL || (copy = strdup(text)) == NULL) {
        return value;
    }
    for (char *byte = copy; *byte != '\0'; byte++) {
        if ((unsigned char)*byte >= 0x80) {
            *byte = '?';
        }
    }
    value = json_string(copy);
    free(copy);
    return value;
}

void answer_json(struct connection *connection, int status, json_t *body) {
    char *text = body == NULL ? NULL : json_dumps(body, JSON_COMPACT);

    json_decref(body);
    if (text == NULL) {
        answer_problem(connection, PROBLEM_NO_MEMORY, NULL, "The answer could not be written.");
        return;
    }
    send_text(connection, status, "application/json", text);
    free(text);
}

void answer_empty(struct connection *connection) {
    send_reply(connection, 204, NULL, NULL);
}

/* Sends a problem without JSON, when out of memory. */
static void send_bare(struct connection *connection, const struct problem_row *row) {
    char text[256];

    snprintf(text, sizeof(text),
             "{\"title\":\"%s\",\"status\":%d,\"code\":\"%s\",\"detail\":\"Out of memory.\"}",
             row->title, row->status, row->code);
    send_text(connection, row->status, "application/problem+json", text);
}

/* Sends the problem with further members, whose reference it takes; NULL: out of memory. */
static void send_problem(struct connection *connection, enum problem problem, const char *detail,
                         json_t *members) {
    const struct problem_row *row = &problems[problem];
    json_t *body = json_pack("{s:s, s:i, s:s, s:o}", "title", row->title, "status", row->status,
                             "code", row->code, "detail", answer_text(detail));
    char *text = NULL;

    if (body != NULL && members != NULL && json_object_update(body, members) == 0) {
        text = json_dumps(body, JSON_COMPACT);
    }
    json_decref(members);
    json_decref(body);
    if (row->status == 401) {
        add_header(connection, "WWW-Authenticate", "Bearer");
    } else if (row->status == 503) {
        add_header(connection, "Retry-After", "1");
    }
    if (text == NULL) {
        send_bare(connection, row);
    } else {
        send_text(connection, row->status, "application/problem+json", text);
    }
    free(text);
}

void answer_problem(struct connection *connection, enum problem problem, const char *where,
                    const char *format, ...) {
    json_t *members = where == NULL ? json_object() : json_pack("{s:s}", "where", where);
    char detail[512];
    va_list values;

    va_start(values, format);
    vsnprintf(detail, sizeof(detail), format, values);
    va_end(values);
    send_problem(connection, problem, detail, members);
}

void answer_problem_nodes(struct connection *connection, enum problem problem, const char *detail,
                          json_t *nodes) {
    send_problem(connection, problem, detail,
                 nodes == NULL ? json_object() : json_pack("{s:o}", "nodes", nodes));
}

void answer_bytes(struct connection *connection, const char *type, struct evbuffer *body) {
    send_reply(connection, 200, type, body);
}

void answer_begin(struct connection *connection, const char *type) {
    add_headers(connection, type);
    evhttp_send_reply_start(connection->request, 200, count(connection, 200));
}
