/*
 * A TCP lock server on libev: a connection sends the name of a key as one line, waits for the line
 * "held", and has the lock until either side closes the connection.
 *
 *     cc -o ev ev.c $(pkg-config --cflags --libs redlock) -lev
 *     ./ev PORT redis://10.0.0.1 redis://10.0.0.2 redis://10.0.0.3
 *
 * A connection and its lock may end in any order: either calls end().
 */
#define _GNU_SOURCE 1 /* accept4 */

#include <errno.h>
#include <netinet/in.h>
#include <redlock/ev.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct connection {
    ev_io input;        /* inactive: ended */
    redlock_lock *lock; /* being acquired, or held; NULL: no key yet, or ended */
    bool is_held;
    size_t length;
    char line[1024];
};

static redlock_ev *adapter;
static redlock_client *client;

static void end(struct connection *connection) {
    if (ev_is_active(&connection->input)) {
        ev_io_stop(EV_DEFAULT, &connection->input);
        close(connection->input.fd);
    }
    if (connection->is_held) {
        redlock_release(connection->lock, NULL, NULL);
    } else if (connection->lock != NULL) {
        redlock_cancel(connection->lock);
        return; /* on_result will follow */
    }
    free(connection);
}

/* Reports the result of an acquisition, or the loss of its lock. */
static void on_result(redlock_lock *lock, redlock_status status, void *arg) {
    struct connection *connection = arg;
    connection->is_held |= status == REDLOCK_OK;
    connection->lock = connection->is_held ? lock : NULL; /* otherwise it ends with this callback */
    if (status != REDLOCK_OK || !ev_is_active(&connection->input) ||
        send(connection->input.fd, "held\n", 5, MSG_NOSIGNAL) != 5) {
        end(connection);
    }
}

static void on_input(struct ev_loop *loop, ev_io *input, int events) {
    redlock_request request = REDLOCK_REQUEST_INIT;
    struct connection *connection = input->data;
    size_t room = sizeof(connection->line) - connection->length;
    ssize_t count = room > 0 ? recv(input->fd, connection->line + connection->length, room, 0) : 0;
    char *end_of_key = NULL;
    (void)loop, (void)events;
    if (count < 0 && errno == EAGAIN) {
        return;
    }
    if (count > 0) {
        connection->length += (size_t)count;
        end_of_key = memchr(connection->line, '\n', connection->length);
    }
    if (count <= 0 || connection->lock != NULL ||
        (end_of_key != NULL && end_of_key + 1 < connection->line + connection->length)) {
        end(connection); /* also if a client says more than a line */
    } else if (end_of_key != NULL) {
        end_of_key -= end_of_key > connection->line && end_of_key[-1] == '\r';
        request.key = connection->line;
        request.key_length = (size_t)(end_of_key - connection->line);
        request.wait_ms = REDLOCK_FOREVER, request.watchdog = true;
        request.on_lost = on_result, request.on_lost_arg = connection;
        if (request.key_length == 0 || redlock_acquire(client, &request, on_result, connection,
                                                       &connection->lock) != REDLOCK_OK) {
            end(connection); /* not a key, or out of memory */
        }
    }
}

static void on_connection(struct ev_loop *loop, ev_io *listener, int events) {
    int fd = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    struct connection *connection = fd < 0 ? NULL : calloc(1, sizeof(*connection));
    (void)events;
    if (connection == NULL) {
        close(fd);
        return;
    }
    ev_io_init(&connection->input, on_input, fd, EV_READ);
    connection->input.data = connection;
    ev_io_start(loop, &connection->input);
}

static void on_drained(uint64_t unreleased, void *arg) {
    (void)arg;
    redlock_ev_detach(adapter);
    exit(unreleased > 0 ? EXIT_FAILURE : EXIT_SUCCESS);
}

static void on_signal(struct ev_loop *loop, ev_signal *stop, int events) {
    (void)loop, (void)stop, (void)events;
    redlock_client_drain(client, on_drained, NULL);
}

/* Listens on a port of this machine. Returns -1 on failure. */
static int listen_on(int port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int on = 1;
    address.sin_port = htons((in_port_t)port);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    return bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0 && listen(fd, 128) == 0 ? fd
                                                                                               : -1;
}

int main(int argc, char **argv) {
    struct ev_loop *loop = EV_DEFAULT;
    ev_io listener;
    ev_signal stop;
    int fd;
    redlock_options options = REDLOCK_OPTIONS_INIT;
    redlock_error error = {.message = "usage: ev PORT NODE..., with a free port"};
    options.nodes = (const char *const *)argv + 2, options.node_count = (size_t)argc - 2;
    if (argc < 3 || loop == NULL || (fd = listen_on(atoi(argv[1]))) < 0 ||
        (adapter = redlock_ev_attach(loop)) == NULL ||
        redlock_client_create_on(adapter->loop, &options, &client, &error) != REDLOCK_OK) {
        fprintf(stderr, "%s\n", error.message);
        return 2;
    }
    ev_io_init(&listener, on_connection, fd, EV_READ);
    ev_io_start(loop, &listener);
    ev_signal_init(&stop, on_signal, SIGTERM);
    ev_signal_start(loop, &stop);
    return ev_run(loop, 0);
}
