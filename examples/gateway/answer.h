/* Answers to requests: JSON, problems, and bytes of any type. Each completes its request. */
#ifndef ANSWER_H
#define ANSWER_H

#include "connections.h"
#include "problem.h"

#include <jansson.h>
#include <stddef.h>

struct evbuffer;

/* The routes and statuses by which answers are counted. */
#define ROUTE_MAP(XX)                                                                              \
    XX(NONE, "none")                                                                               \
    XX(ACQUIRE, "acquire")                                                                         \
    XX(RENEW, "renew")                                                                             \
    XX(RELEASE, "release")                                                                         \
    XX(INSPECT, "inspect")                                                                         \
    XX(STATUS, "status")                                                                           \
    XX(EVENTS, "events")                                                                           \
    XX(METRICS, "metrics")                                                                         \
    XX(HEALTH, "health")                                                                           \
    XX(FILES, "files")

enum route {
#define ROUTE_ENUM(name, text) ROUTE_##name,
    ROUTE_MAP(ROUTE_ENUM)
#undef ROUTE_ENUM
        ROUTE_COUNT
};

/* Calls `write` with the number of answers for each route and status that has occurred. */
void answer_counts(void (*write)(const char *route, int status, uint64_t count, void *arg),
                   void *arg);

/* Returns a JSON string of any bytes: those that are not UTF-8 become "?". */
json_t *answer_text(const char *text);

/* Sends a JSON object, whose reference it takes; NULL: answers that memory is out. */
void answer_json(struct connection *connection, int status, json_t *body);

/* Sends 204. */
void answer_empty(struct connection *connection);

/*
 * Sends a problem. `where` names the invalid part, such as "body#/ttl_ms", or is NULL; `format` is
 * a sentence with details.
 */
void answer_problem(struct connection *connection, enum problem problem, const char *where,
                    const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Like answer_problem, with a member `nodes`, whose reference it takes; NULL: none. */
void answer_problem_nodes(struct connection *connection, enum problem problem, const char *detail,
                          json_t *nodes);

/* Sends bytes of a content type. `body` is emptied; NULL is only for HEAD. */
void answer_bytes(struct connection *connection, const char *type, struct evbuffer *body);

/* Begins an endless answer: sends status and headers. */
void answer_begin(struct connection *connection, const char *type);

#endif
