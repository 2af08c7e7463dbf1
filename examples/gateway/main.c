/*
 * `redlock-gateway`: locks over HTTP. See gateway.h for how it works, README.md for how to use it.
 *
 * SIGTERM and SIGINT close it: waiting requests are answered, and no more locks are granted. Held
 * locks stay, because their holders are at work and cannot be notified: they can still be renewed
 * and released, or expire. When none is left, or the --drain time is over, the gateway ends.
 * Closing the client would release its locks; so a gateway that ends before its locks simply exits,
 * and leaves them to their TTL. A second signal ends it at once.
 */
#include "answer.h"
#include "gateway.h"
#include "naming.h"
#include "router.h"
#include "tool.h"

#include <arpa/inet.h>
#include <event2/event.h>
#include <event2/http.h>
#include <netinet/in.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

/* Time limit for masters to confirm releases when the gateway ends. */
#define CLOSE_TIMEOUT_MS 5000
/* Interval and maximum number of checks whether the last answers have been written. */
#define LOOK_US 10000
#define LOOKS_MAX 500

struct program {
    struct gateway gateway;
    struct event *interrupt;
    struct event *terminate;
    struct event *drain; /* due when the time for releases is over */
    struct event *look;
    unsigned looks;
    int code;
};

/* ------------------------------------------------------------------------------------- the end */

static void on_look(evutil_socket_t fd, short what, void *arg) {
    struct program *program = arg;
    struct gateway *gateway = &program->gateway;

    (void)fd;
    (void)what;
    program->looks++;
    if (connections_are_busy(&gateway->connections) && program->looks < LOOKS_MAX) {
        return;
    }
    if (gateway->client == NULL) {
        event_base_loopbreak(gateway->base);
    } else if (!gateway->is_ending) {
        tool_say("locks left to their TTL: %zu", gateway->holds.count);
        exit(TOOL_OK);
    }
}

/* Starts to check whether the last answers have been written. */
static void look(struct program *program) {
    const struct timeval interval = {.tv_usec = LOOK_US};

    program->looks = 0;
    if (event_add(program->look, &interval) != 0) {
        event_base_loopbreak(program->gateway.base);
    }
}

static void on_drained(uint64_t unreleased, void *arg) {
    struct program *program = arg;

    program->gateway.client = NULL;
    if (unreleased > 0) {
        tool_say("%llu releases were not confirmed; those keys stay for their TTL at the most",
                 (unsigned long long)unreleased);
        program->code = TOOL_NO_QUORUM;
    }
    look(program);
}

/* Closes the client, which no longer holds a lock. */
static void on_end(evutil_socket_t fd, short what, void *arg) {
    struct program *program = arg;

    (void)fd;
    (void)what;
    if (!program->gateway.is_ending) {
        program->gateway.is_ending = true;
        event_del(program->drain);
        connections_close(&program->gateway.connections);
        redlock_client_drain(program->gateway.client, on_drained, program);
    }
}

/* Ends in spite of held locks. Requests that are being answered get a moment to complete. */
static void on_drain_over(evutil_socket_t fd, short what, void *arg) {
    struct program *program = arg;

    (void)fd;
    (void)what;
    connections_close(&program->gateway.connections);
    look(program);
}

static void on_signal(evutil_socket_t signal_number, short what, void *arg) {
    struct program *program = arg;
    struct gateway *gateway = &program->gateway;
    uint64_t drain_ms = gateway->settings->drain_ms;
    struct timeval time = {.tv_sec = (time_t)(drain_ms / 1000),
                           .tv_usec = (suseconds_t)(drain_ms % 1000 * 1000)};

    (void)what;
    if (gateway->is_closing) {
        _Exit(128 + signal_number);
    }
    gateway->is_closing = true;
    streams_close(&gateway->streams);
    waiters_close(&gateway->waiters);
    if (gateway->holds.count == 0) {
        event_active(gateway->end, 0, 0);
    } else if (event_add(program->drain, &time) != 0) {
        event_active(program->drain, 0, 0);
    }
}

/* ----------------------------------------------------------------------------------- the start */

static void on_log(redlock_log_level level, const char *line, void *arg) {
    (void)level;
    (void)arg;
    tool_say("%s", line);
}

/* Creates the client; exits if the masters' URIs or another option are invalid. */
static void connect_client(struct gateway *gateway) {
    const struct settings *settings = gateway->settings;
    redlock_options options = REDLOCK_OPTIONS_INIT;
    redlock_error error;

    options.nodes = settings->nodes.uris;
    options.node_count = settings->nodes.count;
    options.max_ttl_ms = settings->nodes.max_ttl_ms;
    options.node_timeout_ms = settings->nodes.node_timeout_ms;
    options.close_timeout_ms = CLOSE_TIMEOUT_MS;
    options.name = "redlock-gateway";
    options.owner = settings->owner;
    options.log = on_log;
    options.tls_ca_file = getenv("REDLOCK_TLS_CA_FILE");
    options.tls_cert_file = getenv("REDLOCK_TLS_CERT_FILE");
    options.tls_key_file = getenv("REDLOCK_TLS_KEY_FILE");
    if (redlock_client_create(gateway->base, &options, &gateway->client, &error) != REDLOCK_OK) {
        tool_usage("%s", naming_by_options(error.message));
    }
}

static bool make_server(struct gateway *gateway) {
    gateway->http = evhttp_new(gateway->base);
    if (gateway->http == NULL) {
        return false;
    }
    evhttp_set_gencb(gateway->http, router_serve, gateway);
    evhttp_set_max_headers_size(gateway->http, GATEWAY_HEADERS_MAX);
    evhttp_set_max_body_size(gateway->http, GATEWAY_BODY_LIMIT);
    evhttp_set_allowed_methods(gateway->http, 0xffff); /* the router refuses methods, in JSON */
    return connections_init(&gateway->connections, gateway->base, gateway->http, gateway->settings);
}

/* Prints the address on which the gateway listens, for people and for programs that start it. */
static bool print_address(const struct gateway *gateway) {
    struct sockaddr_storage address;
    socklen_t size = sizeof(address);
    bool is_four;
    unsigned port;

    if (getsockname(evhttp_bound_socket_get_fd(gateway->connections.socket),
                    (struct sockaddr *)&address, &size) != 0) {
        return false;
    }
    is_four = address.ss_family == AF_INET;
    port = is_four ? ntohs(((struct sockaddr_in *)&address)->sin_port)
                   : ntohs(((struct sockaddr_in6 *)&address)->sin6_port);
    printf("listening on http://%s%s%s:%u\n", is_four ? "" : "[", gateway->settings->address,
           is_four ? "" : "]", port);
    return tool_flush(TOOL_OK) == TOOL_OK;
}

static bool watch_signals(struct program *program) {
    struct event_base *base = program->gateway.base;

    signal(SIGPIPE, SIG_IGN);
    program->interrupt = evsignal_new(base, SIGINT, on_signal, program);
    program->terminate = evsignal_new(base, SIGTERM, on_signal, program);
    program->drain = event_new(base, -1, 0, on_drain_over, program);
    program->look = event_new(base, -1, EV_PERSIST, on_look, program);
    program->gateway.end = event_new(base, -1, 0, on_end, program);
    return program->interrupt != NULL && program->terminate != NULL && program->drain != NULL &&
           program->look != NULL && program->gateway.end != NULL &&
           event_add(program->interrupt, NULL) == 0 && event_add(program->terminate, NULL) == 0;
}

static bool begin(struct program *program) {
    struct gateway *gateway = &program->gateway;

    TAILQ_INIT(&gateway->waiters.list);
    gateway->began_ms = connections_now_ms();
    window_init(&gateway->window, gateway->began_ms);
    gateway->base = nodes_loop();
    connect_client(gateway);
    return watch_signals(program) && holds_init(&gateway->holds, gateway->settings->max_locks) &&
           streams_init(&gateway->streams, gateway) && make_server(gateway) &&
           print_address(gateway);
}

static void finish(struct program *program) {
    struct gateway *gateway = &program->gateway;

    evhttp_free(gateway->http);
    connections_finish(&gateway->connections);
    streams_finish(&gateway->streams);
    holds_finish(&gateway->holds);
    event_free(program->interrupt);
    event_free(program->terminate);
    event_free(program->drain);
    event_free(program->look);
    event_free(gateway->end);
    event_base_free(gateway->base);
}

int main(int argc, char **argv) {
    struct settings settings;
    struct program program = {.gateway = {.settings = &settings}};

    if (sodium_init() < 0) {
        tool_say("libsodium cannot begin");
        return TOOL_SYSTEM;
    }
    settings_read(&settings, argc, argv);
    if (!begin(&program)) {
        tool_say("cannot begin");
        return TOOL_SYSTEM;
    }
    if (event_base_dispatch(program.gateway.base) < 0) {
        return TOOL_SYSTEM;
    }
    finish(&program);
    return program.code;
}
