/*
 * A key-value store over HTTP that refuses writers that have lost their lock without knowing it:
 * the gate of each object admits no fence smaller than one it has seen.
 *
 *     fenced_store [--without-gate] [PORT]        listens on 127.0.0.1; without PORT on a free one
 *
 *     PUT /accounts/7 HTTP/1.1       200 OK, and the object has the body as its value
 *     Fence: 1763722113000000        412: a holder with a larger fence was here before
 *                                    428: no fence; 400: not a fence
 *     GET /accounts/7 HTTP/1.1       200 OK and the value; 404: no value
 *     Fence: 1763722113000000        checked as above; optional for clients that only read
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <redlock.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#define ADDRESS "127.0.0.1"
#define MAX_OBJECTS 1000
#define MAX_VALUE 65536
/*
 * Upper limit of fences, which no lock reaches. A request with such a fence would lock out all
 * others for ever.
 */
#define FENCE_LIMIT (UINT64_C(1) << 53)

/* The gate belongs to the object. If there were a DELETE, it would have to keep the gate. */
struct object {
    LIST_ENTRY(object) link;
    char *name;
    redlock_gate gate;
    struct evbuffer *value; /* NULL: not written yet */
};

struct store {
    LIST_HEAD(, object) objects;
    size_t count;
    bool has_gates;
};

/* ---------------------------------------------------------------------------------- the objects */

static struct object *find_object(struct store *store, const char *name) {
    struct object *object;

    LIST_FOREACH(object, &store->objects, link) {
        if (strcmp(object->name, name) == 0) {
            return object;
        }
    }
    return NULL;
}

static struct object *add_object(struct store *store, const char *name) {
    struct object *object;

    if (store->count == MAX_OBJECTS || (object = calloc(1, sizeof(*object))) == NULL) {
        return NULL;
    }
    object->gate = (redlock_gate)REDLOCK_GATE_INIT;
    if ((object->name = strdup(name)) == NULL) {
        free(object);
        return NULL;
    }
    LIST_INSERT_HEAD(&store->objects, object, link);
    store->count++;
    return object;
}

static void free_objects(struct store *store) {
    struct object *object;

    while ((object = LIST_FIRST(&store->objects)) != NULL) {
        LIST_REMOVE(object, link);
        if (object->value != NULL) {
            evbuffer_free(object->value);
        }
        free(object->name);
        free(object);
    }
}

/* --------------------------------------------------------------------------------- the requests */

static void refuse(struct evhttp_request *request, int code, const char *reason, const char *why) {
    struct evbuffer *body = evbuffer_new();

    if (body != NULL) {
        evbuffer_add_printf(body, "%s\n", why);
    }
    evhttp_send_reply(request, code, reason, body);
    if (body != NULL) {
        evbuffer_free(body);
    }
}

static bool parse_fence(const char *text, uint64_t *fence) {
    char *end;

    if (!isdigit((unsigned char)text[0])) { /* strtoull would accept a sign, or spaces */
        return false;
    }
    errno = 0;
    *fence = strtoull(text, &end, 10);
    return errno == 0 && *end == '\0' && *fence > 0 && *fence < FENCE_LIMIT;
}

static void refuse_stale(struct evhttp_request *request, uint64_t fence, uint64_t newest) {
    char why[128];

    snprintf(why, sizeof(why), "fence %" PRIu64 " is stale: %" PRIu64 " was here before", fence,
             newest);
    refuse(request, 412, "Precondition Failed", why);
}

/*
 * Writes the value. Gate and value must change together: here nothing happens between the two;
 * elsewhere, use one transaction.
 */
static void put(struct object *object, struct evhttp_request *request) {
    struct evbuffer *value = evbuffer_new();

    if (value == NULL ||
        evbuffer_add_buffer(value, evhttp_request_get_input_buffer(request)) != 0) {
        if (value != NULL) {
            evbuffer_free(value);
        }
        refuse(request, 507, "Insufficient Storage", "out of memory");
        return;
    }
    if (object->value != NULL) {
        evbuffer_free(object->value);
    }
    object->value = value;
    evhttp_send_reply(request, 200, "OK", NULL);
}

static void get(const struct object *object, struct evhttp_request *request) {
    struct evbuffer *body;

    if (object == NULL || object->value == NULL) {
        refuse(request, 404, "Not Found", "it has no value");
        return;
    }
    body = evbuffer_new();
    if (body == NULL || evbuffer_add_buffer_reference(body, object->value) != 0) {
        refuse(request, 500, "Internal Server Error", "out of memory");
    } else {
        evhttp_send_reply(request, 200, "OK", body);
    }
    if (body != NULL) {
        evbuffer_free(body);
    }
}

static void serve_holder(struct store *store, const char *name, struct evhttp_request *request,
                         uint64_t fence) {
    struct object *object = find_object(store, name);

    if (object == NULL && (object = add_object(store, name)) == NULL) {
        refuse(request, 507, "Insufficient Storage", "too many objects");
    } else if (store->has_gates && !redlock_gate_admit(&object->gate, fence)) {
        refuse_stale(request, fence, object->gate.fence);
    } else if (evhttp_request_get_command(request) == EVHTTP_REQ_PUT) {
        put(object, request);
    } else {
        get(object, request);
    }
}

/*
 * Serves a request. A read before a write must also carry the fence: otherwise an older holder
 * could still write between the two, and the newer holder would overwrite a value that it has never
 * seen.
 */
static void on_request(struct evhttp_request *request, void *arg) {
    const char *name = evhttp_uri_get_path(evhttp_request_get_evhttp_uri(request));
    const char *text = evhttp_find_header(evhttp_request_get_input_headers(request), "Fence");
    struct store *store = arg;
    uint64_t fence;

    if (text == NULL && evhttp_request_get_command(request) == EVHTTP_REQ_PUT) {
        refuse(request, 428, "Precondition Required", "a write needs the fence of a lock");
    } else if (text == NULL) {
        get(find_object(store, name), request);
    } else if (!parse_fence(text, &fence)) {
        refuse(request, 400, "Bad Request", "that is no fence");
    } else {
        serve_holder(store, name, request, fence);
    }
}

/* ----------------------------------------------------------------------------------- the server */

static int listen_on(struct evhttp *http, uint16_t port) {
    struct evhttp_bound_socket *bound = evhttp_bind_socket_with_handle(http, ADDRESS, port);
    struct sockaddr_in address;
    socklen_t size = sizeof(address);

    if (bound == NULL ||
        getsockname(evhttp_bound_socket_get_fd(bound), (struct sockaddr *)&address, &size) != 0) {
        fprintf(stderr, "cannot listen on %s: %s\n", ADDRESS, strerror(errno));
        return -1;
    }
    printf("listening on %s:%d\n", ADDRESS, ntohs(address.sin_port));
    return fflush(stdout);
}

static void on_signal(evutil_socket_t signal_number, short what, void *arg) {
    (void)signal_number;
    (void)what;
    event_base_loopbreak(arg);
}

static int serve(struct event_base *base, struct evhttp *http, struct store *store, uint16_t port) {
    struct event *interrupt = evsignal_new(base, SIGINT, on_signal, base);
    struct event *termination = evsignal_new(base, SIGTERM, on_signal, base);
    int outcome = -1;

    evhttp_set_gencb(http, on_request, store);
    evhttp_set_allowed_methods(http, EVHTTP_REQ_GET | EVHTTP_REQ_PUT);
    evhttp_set_max_headers_size(http, MAX_VALUE);
    evhttp_set_max_body_size(http, MAX_VALUE);
    if (interrupt != NULL && termination != NULL && event_add(interrupt, NULL) == 0 &&
        event_add(termination, NULL) == 0 && listen_on(http, port) == 0) {
        outcome = event_base_dispatch(base);
    }
    if (interrupt != NULL) {
        event_free(interrupt);
    }
    if (termination != NULL) {
        event_free(termination);
    }
    return outcome;
}

static bool parse_arguments(char **arguments, struct store *store, uint16_t *port) {
    unsigned long number;
    char *end;

    if (*arguments != NULL && strcmp(*arguments, "--without-gate") == 0) {
        store->has_gates = false;
        arguments++;
    }
    if (*arguments == NULL) {
        return true;
    }
    number = strtoul(*arguments, &end, 10);
    *port = (uint16_t)number;
    return **arguments != '\0' && *end == '\0' && number <= UINT16_MAX && arguments[1] == NULL;
}

int main(int argc, char **argv) {
    struct store store = {.has_gates = true};
    struct event_base *base;
    struct evhttp *http;
    uint16_t port = 0;
    int outcome = -1;

    if (!parse_arguments(argv + (argc > 0), &store, &port)) {
        fprintf(stderr, "usage: %s [--without-gate] [PORT]\n", argv[0]);
        return 2;
    }
    base = event_base_new();
    http = base != NULL ? evhttp_new(base) : NULL;
    if (http != NULL) {
        outcome = serve(base, http, &store, port);
        evhttp_free(http);
    } else {
        fputs("cannot make an event loop\n", stderr);
    }
    free_objects(&store);
    if (base != NULL) {
        event_base_free(base);
    }
    return outcome == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
