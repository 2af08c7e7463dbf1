/*
 * A TCP lock server on GLib: a connection sends the name of a key as one line, waits for the line
 * "held", and has the lock until either side closes the connection.
 *
 *     cc -o glib glib.c $(pkg-config --cflags --libs redlock gio-2.0)
 *     ./glib PORT redis://10.0.0.1 redis://10.0.0.2 redis://10.0.0.3
 *
 * A connection and its lock may end in any order: either calls end().
 */
#include <gio/gio.h>
#include <glib-unix.h>
#include <redlock/glib.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct connection {
    GSocketConnection *stream; /* NULL: ended */
    GSource *input;
    redlock_lock *lock; /* being acquired, or held; NULL: no key yet, or ended */
    bool is_held;
    size_t length;
    char line[1024];
};

static redlock_glib *adapter;
static redlock_client *client;

static void end(struct connection *connection) {
    if (connection->stream != NULL) {
        g_source_destroy(connection->input);
        g_clear_pointer(&connection->input, g_source_unref);
        g_clear_object(&connection->stream);
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
    if (status != REDLOCK_OK || connection->stream == NULL ||
        g_socket_send(g_socket_connection_get_socket(connection->stream), "held\n", 5, NULL,
                      NULL) != 5) {
        end(connection);
    }
}

static gboolean on_input(GSocket *socket, GIOCondition condition, gpointer arg) {
    redlock_request request = REDLOCK_REQUEST_INIT;
    struct connection *connection = arg;
    size_t room = sizeof(connection->line) - connection->length;
    ssize_t count =
        room > 0 ? g_socket_receive(socket, connection->line + connection->length, room, NULL, NULL)
                 : 0;
    char *end_of_key = NULL;
    (void)condition;
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
    return G_SOURCE_CONTINUE; /* unless end() has destroyed it */
}

static gboolean on_connection(GSocketService *service, GSocketConnection *stream, GObject *source,
                              gpointer arg) {
    struct connection *connection = g_malloc0(sizeof(*connection));
    GSocket *socket = g_socket_connection_get_socket(stream);
    (void)service, (void)source, (void)arg;
    g_socket_set_blocking(socket, FALSE);
    connection->stream = g_object_ref(stream);
    connection->input = g_socket_create_source(socket, G_IO_IN, NULL);
    g_source_set_callback(connection->input, G_SOURCE_FUNC(on_input), connection, NULL);
    g_source_attach(connection->input, NULL);
    return TRUE;
}

static void on_drained(uint64_t unreleased, void *arg) {
    (void)arg;
    redlock_glib_detach(adapter);
    exit(unreleased > 0 ? EXIT_FAILURE : EXIT_SUCCESS);
}

static gboolean on_signal(gpointer arg) {
    (void)arg;
    redlock_client_drain(client, on_drained, NULL);
    return G_SOURCE_REMOVE;
}

static bool listen_on(GSocketListener *service, int port) {
    GSocketAddress *address = g_inet_socket_address_new_from_string("127.0.0.1", (guint)port);
    g_socket_listener_set_backlog(service, 128); /* with GLib's 10, bursts wait for a second */
    bool is_good = g_socket_listener_add_address(service, address, G_SOCKET_TYPE_STREAM,
                                                 G_SOCKET_PROTOCOL_TCP, NULL, NULL, NULL);
    g_object_unref(address);
    return is_good;
}

int main(int argc, char **argv) {
    GSocketService *service = g_socket_service_new();
    redlock_options options = REDLOCK_OPTIONS_INIT;
    redlock_error error = {.message = "usage: glib PORT NODE..., with a free port"};
    options.nodes = (const char *const *)argv + 2, options.node_count = (size_t)argc - 2;
    if (argc < 3 || !listen_on(G_SOCKET_LISTENER(service), atoi(argv[1])) ||
        (adapter = redlock_glib_attach(NULL)) == NULL ||
        redlock_client_create_on(adapter->loop, &options, &client, &error) != REDLOCK_OK) {
        fprintf(stderr, "%s\n", error.message);
        return 2;
    }
    g_signal_connect(service, "incoming", G_CALLBACK(on_connection), NULL);
    g_unix_signal_add(SIGTERM, on_signal, NULL);
    g_main_loop_run(g_main_loop_new(NULL, FALSE)); /* on_drained ends the program */
    return EXIT_FAILURE;
}
