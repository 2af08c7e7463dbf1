/*
 * A TCP lock server on libuv: a connection sends the name of a key as one line, waits for the line
 * "held", and has the lock until either side closes the connection.
 *
 *     cc -o uv uv.c $(pkg-config --cflags --libs redlock libuv)
 *     ./uv PORT redis://10.0.0.1 redis://10.0.0.2 redis://10.0.0.3
 *
 * A connection is freed when its stream has closed and its lock has ended, in either order.
 */
#include <redlock/uv.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

struct connection {
    uv_tcp_t stream;
    bool is_closed;
    redlock_lock *lock; /* being acquired, or held; NULL: no key yet, or ended */
    bool is_held;
    size_t length;
    char line[1024];
};

static redlock_uv *adapter;
static redlock_client *client;

static void on_stream_closed(uv_handle_t *stream) {
    struct connection *connection = stream->data;
    connection->is_closed = true;
    if (connection->lock == NULL) {
        free(connection);
    }
}

static void end(struct connection *connection) {
    uv_handle_t *stream = (uv_handle_t *)&connection->stream;
    if (connection->is_held) {
        redlock_release(connection->lock, NULL, NULL);
        connection->lock = NULL;
    } else if (connection->lock != NULL) {
        redlock_cancel(connection->lock); /* on_result will follow */
    }
    if (!uv_is_closing(stream)) {
        uv_close(stream, on_stream_closed);
    } else if (connection->is_closed) {
        free(connection);
    }
}

/* Reports the result of an acquisition, or the loss of its lock. */
static void on_result(redlock_lock *lock, redlock_status status, void *arg) {
    struct connection *connection = arg;
    char text[] = "held\n";
    uv_buf_t held = uv_buf_init(text, 5);
    connection->is_held |= status == REDLOCK_OK;
    connection->lock = connection->is_held ? lock : NULL; /* otherwise it ends with this callback */
    if (status != REDLOCK_OK || uv_is_closing((uv_handle_t *)&connection->stream) ||
        uv_try_write((uv_stream_t *)&connection->stream, &held, 1) != 5) {
        end(connection);
    }
}

static void get_room(uv_handle_t *stream, size_t size, uv_buf_t *room) {
    struct connection *connection = stream->data;
    (void)size;
    room->base = connection->line + connection->length;
    room->len = sizeof(connection->line) - connection->length; /* 0 ends the connection */
}

static void on_input(uv_stream_t *stream, ssize_t count, const uv_buf_t *input) {
    redlock_request request = REDLOCK_REQUEST_INIT;
    struct connection *connection = stream->data;
    size_t end_of_key = 0;
    (void)input;
    connection->length += count > 0 ? (size_t)count : 0;
    while (end_of_key < connection->length && connection->line[end_of_key] != '\n') {
        end_of_key++;
    }
    if (count < 0 || connection->lock != NULL || end_of_key + 1 < connection->length) {
        end(connection); /* also if a client says more than a line */
    } else if (end_of_key < connection->length) {
        request.key = connection->line;
        request.key_length =
            end_of_key - (end_of_key > 0 && connection->line[end_of_key - 1] == '\r');
        request.wait_ms = REDLOCK_FOREVER, request.watchdog = true;
        request.on_lost = on_result, request.on_lost_arg = connection;
        if (request.key_length == 0 || redlock_acquire(client, &request, on_result, connection,
                                                       &connection->lock) != REDLOCK_OK) {
            end(connection); /* not a key, or out of memory */
        }
    }
}

static void on_connection(uv_stream_t *listener, int status) {
    struct connection *connection = calloc(1, sizeof(*connection));
    if (connection == NULL || uv_tcp_init(listener->loop, &connection->stream) != 0) {
        free(connection);
        return;
    }
    connection->stream.data = connection;
    uv_stream_t *stream = (uv_stream_t *)&connection->stream;
    if (status != 0 || uv_accept(listener, stream) != 0 ||
        uv_read_start(stream, get_room, on_input) != 0) {
        end(connection);
    }
}

static void on_drained(uint64_t unreleased, void *arg) {
    (void)arg;
    redlock_uv_detach(adapter);
    exit(unreleased > 0 ? EXIT_FAILURE : EXIT_SUCCESS);
}

static void on_signal(uv_signal_t *stop, int number) {
    (void)number;
    redlock_client_drain(client, on_drained, NULL);
    uv_signal_stop(stop);
}

int main(int argc, char **argv) {
    static uv_tcp_t listener;
    static uv_signal_t stop;
    uv_loop_t *loop = uv_default_loop();
    struct sockaddr_in address;
    redlock_options options = REDLOCK_OPTIONS_INIT;
    redlock_error error = {.message = "usage: uv PORT NODE..., with a free port"};
    signal(SIGPIPE, SIG_IGN); /* a client that disconnects must not end the server */
    options.nodes = (const char *const *)argv + 2, options.node_count = (size_t)argc - 2;
    if (argc < 3 || uv_ip4_addr("127.0.0.1", atoi(argv[1]), &address) != 0 ||
        uv_tcp_init(loop, &listener) != 0 ||
        uv_tcp_bind(&listener, (struct sockaddr *)&address, 0) != 0 ||
        uv_listen((uv_stream_t *)&listener, 128, on_connection) != 0 ||
        uv_signal_init(loop, &stop) != 0 || uv_signal_start(&stop, on_signal, SIGTERM) != 0 ||
        (adapter = redlock_uv_attach(loop)) == NULL ||
        redlock_client_create_on(adapter->loop, &options, &client, &error) != REDLOCK_OK) {
        fprintf(stderr, "%s\n", error.message);
        return 2;
    }
    return uv_run(loop, UV_RUN_DEFAULT);
}
