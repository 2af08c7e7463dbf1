/*
 * A TCP lock server on sd-event: a connection sends the name of a key as one line, waits for the
 * line "held", and has the lock until either side closes the connection.
 *
 *     cc -o sdevent sdevent.c $(pkg-config --cflags --libs redlock libsystemd)
 *     ./sdevent PORT redis://10.0.0.1 redis://10.0.0.2 redis://10.0.0.3
 *
 * A connection and its lock may end in any order: either calls end().
 */
#define _GNU_SOURCE 1 /* accept4 */

#include <errno.h>
#include <netinet/in.h>
#include <redlock/sdevent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct connection {
    sd_event_source *input; /* owns the socket; NULL: ended */
    redlock_lock *lock;     /* being acquired, or held; NULL: no key yet, or ended */
    bool is_held;
    size_t length;
    char line[1024];
};

static sd_event *event;
static redlock_sdevent *adapter;
static redlock_client *client;

static void end(struct connection *connection) {
    if (connection->input != NULL) {
        sd_event_source_disable_unref(connection->input);
        connection->input = NULL;
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
    if (status != REDLOCK_OK || connection->input == NULL ||
        send(sd_event_source_get_io_fd(connection->input), "held\n", 5, MSG_NOSIGNAL) != 5) {
        end(connection);
    }
}

static int on_input(sd_event_source *input, int fd, uint32_t events, void *arg) {
    redlock_request request = REDLOCK_REQUEST_INIT;
    struct connection *connection = arg;
    size_t room = sizeof(connection->line) - connection->length;
    ssize_t count = room > 0 ? recv(fd, connection->line + connection->length, room, 0) : 0;
    char *end_of_key = NULL;
    (void)input, (void)events;
    if (count < 0 && errno == EAGAIN) {
        return 0;
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
    return 0;
}

static int on_connection(sd_event_source *listener, int fd, uint32_t events, void *arg) {
    int accepted = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    struct connection *connection = accepted < 0 ? NULL : calloc(1, sizeof(*connection));
    (void)listener, (void)events, (void)arg;
    if (connection == NULL ||
        sd_event_add_io(event, &connection->input, accepted, EPOLLIN, on_input, connection) < 0) {
        free(connection), close(accepted);
        return 0;
    }
    sd_event_source_set_io_fd_own(connection->input, true);
    return 0;
}

static void on_drained(uint64_t unreleased, void *arg) {
    (void)arg;
    redlock_sdevent_detach(adapter);
    exit(unreleased > 0 ? EXIT_FAILURE : EXIT_SUCCESS);
}

static int on_signal(sd_event_source *stop, const struct signalfd_siginfo *info, void *arg) {
    (void)stop, (void)info, (void)arg;
    redlock_client_drain(client, on_drained, NULL);
    return 0;
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
    sigset_t signals;
    int fd;
    redlock_options options = REDLOCK_OPTIONS_INIT;
    redlock_error error = {.message = "usage: sdevent PORT NODE..., with a free port"};
    sigemptyset(&signals), sigaddset(&signals, SIGTERM);
    sigprocmask(SIG_BLOCK, &signals, NULL); /* sd-event reads it from a descriptor */
    options.nodes = (const char *const *)argv + 2, options.node_count = (size_t)argc - 2;
    if (argc < 3 || sd_event_default(&event) < 0 || (fd = listen_on(atoi(argv[1]))) < 0 ||
        sd_event_add_io(event, NULL, fd, EPOLLIN, on_connection, NULL) < 0 ||
        sd_event_add_signal(event, NULL, SIGTERM, on_signal, NULL) < 0 ||
        (adapter = redlock_sdevent_attach(event)) == NULL ||
        redlock_client_create_on(adapter->loop, &options, &client, &error) != REDLOCK_OK) {
        fprintf(stderr, "%s\n", error.message);
        return 2;
    }
    return sd_event_loop(event);
}
