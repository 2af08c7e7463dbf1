#include "router.h"

#include "access.h"
#include "answer.h"
#include "escape.h"
#include "files.h"
#include "gateway.h"
#include "locks.h"
#include "metrics.h"
#include "status.h"

#include <event2/http.h>
#include <stdio.h>
#include <string.h>

#define LOCKS "/v1/locks/"
#define RENEW "renew"

/* The paths, except those of files. */
enum resource {
    RESOURCE_NONE,
    RESOURCE_KEY,     /* /v1/locks/{key} */
    RESOURCE_LOCK,    /* /v1/locks/{key}/{id} */
    RESOURCE_RENEW,   /* /v1/locks/{key}/{id}/renew */
    RESOURCE_STATUS,  /* /v1/status */
    RESOURCE_EVENTS,  /* /v1/events */
    RESOURCE_METRICS, /* /metrics */
    RESOURCE_HEALTH   /* /healthz */
};

struct way {
    enum resource resource;
    enum evhttp_cmd_type method;
    enum route route;
    void (*serve)(const struct exchange *exchange);
};

static const struct way ways[] = {
    {RESOURCE_KEY, EVHTTP_REQ_POST, ROUTE_ACQUIRE, acquire_serve},
    {RESOURCE_KEY, EVHTTP_REQ_GET, ROUTE_INSPECT, inspect_serve},
    {RESOURCE_LOCK, EVHTTP_REQ_DELETE, ROUTE_RELEASE, release_serve},
    {RESOURCE_RENEW, EVHTTP_REQ_POST, ROUTE_RENEW, renew_serve},
    {RESOURCE_STATUS, EVHTTP_REQ_GET, ROUTE_STATUS, status_serve},
    {RESOURCE_EVENTS, EVHTTP_REQ_GET, ROUTE_EVENTS, events_serve},
    {RESOURCE_METRICS, EVHTTP_REQ_GET, ROUTE_METRICS, metrics_serve},
    {RESOURCE_HEALTH, EVHTTP_REQ_GET, ROUTE_HEALTH, health_serve},
};

/* The parts of a path after LOCKS: a key, perhaps an id, perhaps a word. */
struct parts {
    const char *texts[3];
    size_t lengths[3];
    size_t count; /* 4: too many */
};

static void split(const char *path, struct parts *parts) {
    parts->count = 0;
    for (const char *end = path; *end != '\0'; path = end + 1) {
        end = path + strcspn(path, "/");
        if (parts->count < 3) {
            parts->texts[parts->count] = path;
            parts->lengths[parts->count] = (size_t)(end - path);
        }
        parts->count++;
        if (*end == '\0') {
            break;
        }
    }
}

static enum resource resource_of_lock(const struct parts *parts) {
    switch (parts->count) {
    case 0:
    case 1:
        return RESOURCE_KEY;
    case 2:
        return RESOURCE_LOCK;
    case 3:
        return strcmp(parts->texts[2], RENEW) == 0 ? RESOURCE_RENEW : RESOURCE_NONE;
    default:
        return RESOURCE_NONE;
    }
}

static enum resource resource_of(const char *path, struct parts *parts) {
    parts->count = 0;
    if (strncmp(path, LOCKS, strlen(LOCKS)) == 0) {
        split(path + strlen(LOCKS), parts);
        return resource_of_lock(parts);
    }
    if (strcmp(path, "/v1/status") == 0) {
        return RESOURCE_STATUS;
    }
    if (strcmp(path, "/v1/events") == 0) {
        return RESOURCE_EVENTS;
    }
    if (strcmp(path, "/healthz") == 0) {
        return RESOURCE_HEALTH;
    }
    return strcmp(path, "/metrics") == 0 ? RESOURCE_METRICS : RESOURCE_NONE;
}

static void answer_closing(const struct exchange *exchange) {
    answer_problem(exchange->connection, PROBLEM_CLOSING, NULL, "Try another gateway.");
}

/* Refuses a method that the path does not have, and lists those that it has. */
static void refuse_method(const struct exchange *exchange, enum resource resource) {
    char allowed[64] = "";

    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        if (ways[i].resource == resource) {
            size_t length = strlen(allowed);

            snprintf(allowed + length, sizeof(allowed) - length, "%s%s", length > 0 ? ", " : "",
                     ways[i].method == EVHTTP_REQ_POST  ? "POST"
                     : ways[i].method == EVHTTP_REQ_GET ? "GET, HEAD"
                                                        : "DELETE");
        }
    }
    evhttp_add_header(evhttp_request_get_output_headers(exchange->connection->request), "Allow",
                      allowed[0] == '\0' ? "GET, HEAD" : allowed);
    answer_problem(exchange->connection, PROBLEM_BAD_METHOD, NULL, "The path has %s.",
                   allowed[0] == '\0' ? "GET, HEAD" : allowed);
}

static bool read_key(struct exchange *exchange, const struct parts *parts) {
    const char *problem = NULL;

    if (parts->count == 0 || parts->lengths[0] == 0) {
        problem = "A key has one byte at least.";
    } else if (!escape_decode(parts->texts[0], parts->lengths[0], exchange->key,
                              sizeof(exchange->key), &exchange->key_length)) {
        problem = "A byte of the key has to be percent-encoded, or \"%\" is not followed by two "
                  "hexadecimal digits.";
    } else if (exchange->key_length > sizeof(exchange->key)) {
        problem = "A key has 1024 bytes at most.";
    }
    if (problem != NULL) {
        answer_problem(exchange->connection, PROBLEM_BAD_KEY, "path:key", "%s", problem);
    }
    return problem == NULL;
}

/* Returns whether a closing gateway still serves it: all but new locks, pages, and its health. */
static bool is_served_to_the_end(const struct way *way) {
    return way->route != ROUTE_ACQUIRE && way->route != ROUTE_EVENTS && way->route != ROUTE_HEALTH;
}

/* Returns the method that serves the request: HEAD is served as GET; answer.c omits the body. */
static enum evhttp_cmd_type method_of(const struct exchange *exchange) {
    enum evhttp_cmd_type method = evhttp_request_get_command(exchange->connection->request);

    return method == EVHTTP_REQ_HEAD ? EVHTTP_REQ_GET : method;
}

static const struct way *find_way(enum resource resource, enum evhttp_cmd_type method) {
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        if (ways[i].resource == resource && ways[i].method == method) {
            return &ways[i];
        }
    }
    return NULL;
}

static void serve_resource(struct exchange *exchange, enum resource resource,
                           const struct parts *parts) {
    struct connection *connection = exchange->connection;
    const struct way *way = find_way(resource, method_of(exchange));
    char id[HOLD_ID_SIZE];

    if (way == NULL) {
        refuse_method(exchange, resource);
        return;
    }
    connection->route = way->route;
    if (exchange->gateway->is_closing && !is_served_to_the_end(way)) {
        answer_closing(exchange);
        return;
    }
    if (resource <= RESOURCE_RENEW && !read_key(exchange, parts)) {
        return;
    }
    if (resource == RESOURCE_LOCK || resource == RESOURCE_RENEW) {
        snprintf(id, sizeof(id), "%.*s",
                 (int)(parts->lengths[1] < sizeof(id) ? parts->lengths[1] : 0), parts->texts[1]);
        exchange->id = id;
    }
    way->serve(exchange);
}

static void serve_path(struct exchange *exchange, const char *path) {
    struct connection *connection = exchange->connection;
    const struct file *file = files_find(path, strlen(path));
    struct parts parts;
    enum resource resource = resource_of(path, &parts);

    connection->route = file != NULL ? ROUTE_FILES : ROUTE_NONE;
    if (!access_is_granted(exchange, file != NULL || resource == RESOURCE_HEALTH)) {
        return;
    }
    if (file != NULL && method_of(exchange) == EVHTTP_REQ_GET) {
        files_serve(exchange, file);
    } else if (file == NULL && resource == RESOURCE_NONE) {
        answer_problem(connection, PROBLEM_NOT_FOUND, "path", "/openapi.json lists the paths.");
    } else {
        serve_resource(exchange, resource, &parts);
    }
}

void router_serve(struct evhttp_request *request, void *gateway) {
    struct exchange exchange = {.gateway = gateway};
    const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri(request);

    exchange.connection = connections_serve(&exchange.gateway->connections, request);
    if (exchange.connection == NULL) { /* cannot happen: all connections are known */
        evhttp_send_error(request, 500, NULL);
        return;
    }
    exchange.connection->route = ROUTE_NONE;
    if (!access_is_plain(&exchange)) {
        return;
    }
    if (exchange.gateway->is_ending) {
        answer_closing(&exchange);
    } else if (evhttp_uri_get_host(uri) != NULL || evhttp_uri_get_path(uri) == NULL) {
        answer_problem(exchange.connection, PROBLEM_BAD_REQUEST, "path",
                       "A path is expected, not a whole URI.");
    } else if (evhttp_uri_get_query(uri) != NULL) {
        answer_problem(exchange.connection, PROBLEM_BAD_REQUEST, "query",
                       "No path has a query here: fields stand in the body.");
    } else if (evhttp_uri_get_fragment(uri) != NULL) {
        answer_problem(exchange.connection, PROBLEM_BAD_REQUEST, "path",
                       "A \"#\" of a key is written %%23.");
    } else {
        serve_path(&exchange, evhttp_uri_get_path(uri));
    }
}
