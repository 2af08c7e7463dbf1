/*
 * Prints the statistics of a client in the text format of Prometheus:
 *
 *     docs-exposition NODE...
 */
#include <event2/event.h>
#include <redlock.h>
#include <stdio.h>
#include <stdlib.h>

static void write_line(const char *text, size_t length, void *file) {
    fwrite(text, 1, length, file);
}

int main(int argc, char **argv) {
    struct event_base *base = event_base_new();
    redlock_client *client;
    redlock_options options = REDLOCK_OPTIONS_INIT;
    redlock_error error;

    options.nodes = (const char *const *)argv + 1;
    options.node_count = (size_t)argc - 1;
    if (base == NULL || redlock_client_create(base, &options, &client, &error) != REDLOCK_OK) {
        fprintf(stderr, "docs-exposition: %s\n", base == NULL ? "no loop" : error.message);
        return EXIT_FAILURE;
    }
    redlock_status status = redlock_stats_write(client, write_line, stdout);
    redlock_client_close(client, NULL, NULL);
    int ended = event_base_dispatch(base);
    event_base_free(base);
    return status == REDLOCK_OK && ended >= 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
