/*
 * A TCP lock server on plain epoll: a connection sends the name of a key as one line, waits for the
 * line "held", and has the lock until either side closes the connection.
 *
 *     cc -o epoll epoll.c $(pkg-config --cflags --libs redlock)
 *     ./epoll PORT redis://10.0.0.1 redis://10.0.0.2 redis://10.0.0.3
 *
 * A connection and its lock may end in any order: either calls end().
 */
#define _GNU_SOURCE 1 /* accept4 */

#include <errno.h>
#include <netinet/in.h>
#include <redlock/loop.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/queue.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

struct connection {
    LIST_ENTRY(connection) link;
    int fd;             /* -1: ended */
    redlock_lock *lock; /* being acquired, or held; NULL: no key yet, or ended */
    bool is_held;
    size_t length;
    char line[1024];
};

static int epoll, listener, stop;
static LIST_HEAD(, connection) connections; /* those that have not ended */
static redlock_loop *loop;
static redlock_client *client;

static void end(struct connection *connection) {
    if (connection->fd >= 0) {
        close(connection->fd); /* which also ends its watch */
        connection->fd = -1;
        LIST_REMOVE(connection, link);
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
    if (status != REDLOCK_OK || connection->fd < 0 ||
        send(connection->fd, "held\n", 5, MSG_NOSIGNAL) != 5) {
        end(connection);
    }
}

static void on_input(struct connection *connection) {
    redlock_request request = REDLOCK_REQUEST_INIT;
    size_t room = sizeof(connection->line) - connection->length;
    ssize_t count =
        room > 0 ? recv(connection->fd, connection->line + connection->length, room, 0) : 0;
    char *end_of_key = NULL;
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

/* Watches a descriptor; `mark` says whose it is. */
static bool watch(int fd, void *mark) {
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = mark};
    return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

static void on_connection(void) {
    int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    struct connection *connection = fd < 0 ? NULL : calloc(1, sizeof(*connection));
    if (connection == NULL || !watch(fd, connection)) {
        free(connection), close(fd);
        return;
    }
    connection->fd = fd;
    LIST_INSERT_HEAD(&connections, connection, link);
}

static void on_drained(uint64_t unreleased, void *arg) {
    (void)arg;
    while (!LIST_EMPTY(&connections)) { /* those without a lock */
        end(LIST_FIRST(&connections));
    }
    redlock_loop_free(loop);
    exit(unreleased > 0 ? EXIT_FAILURE : EXIT_SUCCESS);
}

static void on_signal(void) {
    struct signalfd_siginfo info;
    if (read(stop, &info, sizeof(info)) == sizeof(info)) {
        redlock_client_drain(client, on_drained, NULL);
    }
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

/* One event at a time, so that none is of a connection that another has ended. */
static void serve(void) {
    struct epoll_event event;
    if (epoll_wait(epoll, &event, 1, -1) != 1) {
        return;
    }
    if (event.data.ptr == loop) {
        redlock_loop_run(loop, 0);
    } else if (event.data.ptr == &listener) {
        on_connection();
    } else if (event.data.ptr == &stop) {
        on_signal();
    } else {
        on_input(event.data.ptr);
    }
}

int main(int argc, char **argv) {
    sigset_t signals;
    redlock_options options = REDLOCK_OPTIONS_INIT;
    redlock_error error = {.message = "usage: epoll PORT NODE..., with a free port"};
    sigemptyset(&signals), sigaddset(&signals, SIGTERM);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    options.nodes = (const char *const *)argv + 2, options.node_count = (size_t)argc - 2;
    if (argc < 3 || (epoll = epoll_create1(EPOLL_CLOEXEC)) < 0 ||
        (listener = listen_on(atoi(argv[1]))) < 0 || !watch(listener, &listener) ||
        (stop = signalfd(-1, &signals, SFD_CLOEXEC)) < 0 || !watch(stop, &stop) ||
        (loop = redlock_loop_pollable()) == NULL || !watch(redlock_loop_fd(loop), loop) ||
        redlock_client_create_on(loop, &options, &client, &error) != REDLOCK_OK) {
        fprintf(stderr, "%s\n", error.message);
        return 2;
    }
    for (;;) {
        serve();
    }
}
