/*
 * A TCP lock server for scripts: a connection sends the name of a key as one line, waits for the
 * line "held", and has the lock until either side closes the connection.
 *
 *     cc -o bufferevent bufferevent.c $(pkg-config --cflags --libs redlock libevent_core)
 *     ./bufferevent PORT redis://10.0.0.1 redis://10.0.0.2 redis://10.0.0.3
 *
 * A connection and its lock may end in any order, even while SIGTERM drains the client: either
 * calls end(). (Beyond `ulimit -n` libevent keeps the CPU busy: for a bound see the gateway.)
 */
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <netinet/in.h>
#include <redlock.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

struct connection {
    struct bufferevent *stream; /* NULL: ended */
    redlock_lock *lock;         /* being acquired, or held; NULL: no key yet, or ended */
    bool is_held;
};

static struct event_base *base;
static redlock_client *client;

static void end(struct connection *connection) {
    if (connection->stream != NULL) {
        bufferevent_free(connection->stream);
        connection->stream = NULL;
    }
    if (connection->is_held) {
        redlock_release(connection->lock, NULL, NULL);
    } else if (connection->lock != NULL) {
        redlock_cancel(connection->lock);
        return; /* on_result will follow */
    }
    free(connection);
}

static void on_broken(struct bufferevent *stream, short what, void *arg) {
    (void)stream, (void)what;
    end(arg);
}

/* Reports the result of an acquisition, or the loss of its lock. */
static void on_result(redlock_lock *lock, redlock_status status, void *arg) {
    struct connection *connection = arg;
    connection->is_held |= status == REDLOCK_OK;
    connection->lock = connection->is_held ? lock : NULL; /* otherwise it ends with this callback */
    if (status != REDLOCK_OK || connection->stream == NULL ||
        bufferevent_write(connection->stream, "held\n", 5) != 0) {
        end(connection);
    }
}

static void on_input(struct bufferevent *stream, void *arg) {
    struct evbuffer *input = bufferevent_get_input(stream);
    redlock_request request = REDLOCK_REQUEST_INIT;
    struct connection *connection = arg;
    char *key = evbuffer_readln(input, NULL, EVBUFFER_EOL_CRLF);
    if (key != NULL && connection->lock == NULL && evbuffer_get_length(input) == 0) {
        request.key = key; /* copied by redlock_acquire */
        request.wait_ms = REDLOCK_FOREVER, request.watchdog = true;
        request.on_lost = on_result, request.on_lost_arg = connection;
        if (redlock_acquire(client, &request, on_result, connection, &connection->lock) != 0) {
            end(connection); /* not a key, or out of memory */
        }
    } else if (key != NULL || evbuffer_get_length(input) > 1024) {
        end(connection);
    }
    free(key);
}

static void on_connection(struct evconnlistener *listener, evutil_socket_t fd,
                          struct sockaddr *address, int length, void *arg) {
    struct connection *connection = calloc(1, sizeof(*connection));
    (void)listener, (void)address, (void)length, (void)arg;
    if (connection == NULL ||
        (connection->stream = bufferevent_socket_new(base, fd, BEV_OPT_CLOSE_ON_FREE)) == NULL) {
        free(connection), evutil_closesocket(fd);
        return;
    }
    bufferevent_setcb(connection->stream, on_input, NULL, on_broken, connection);
    bufferevent_enable(connection->stream, EV_READ);
}

static void on_drained(uint64_t unreleased, void *arg) {
    (void)arg;
    exit(unreleased > 0 ? EXIT_FAILURE : EXIT_SUCCESS);
}

static void on_signal(evutil_socket_t number, short what, void *arg) {
    (void)number, (void)what;
    redlock_client_drain(client, on_drained, arg);
}

int main(int argc, char **argv) {
    struct event *stop;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    redlock_options options = REDLOCK_OPTIONS_INIT;
    redlock_error error = {.message = "usage: bufferevent PORT NODE..., with a free port"};
    signal(SIGPIPE, SIG_IGN); /* a client that disconnects must not end the server */
    address.sin_port = htons((in_port_t)(argc < 3 ? 0 : atoi(argv[1])));
    options.nodes = (const char *const *)argv + 2, options.node_count = (size_t)argc - 2;
    if (argc < 3 || (base = event_base_new()) == NULL ||
        evconnlistener_new_bind(base, on_connection, NULL, LEV_OPT_REUSEABLE, -1,
                                (struct sockaddr *)&address, sizeof(address)) == NULL ||
        (stop = evsignal_new(base, SIGTERM, on_signal, NULL)) == NULL ||
        evsignal_add(stop, NULL) != 0 ||
        redlock_client_create(base, &options, &client, &error) != REDLOCK_OK) {
        fprintf(stderr, "%s\n", error.message);
        return 2;
    }
    return event_base_dispatch(base);
}
