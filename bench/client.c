#include "client.h"

#include "naming.h"

#include <string.h>

/* Maximum size of a URI with its NUL; longer ones are refused. */
#define URI_SIZE 512

static void take_for_durable(char (*texts)[URI_SIZE], const char **uris, const char *const *nodes,
                             size_t node_count) {
    for (size_t i = 0; i < node_count && i < REDLOCK_MAX_NODES; i++) {
        const char *separator = strchr(nodes[i], '?') != NULL ? "&" : "?";

        snprintf(texts[i], URI_SIZE, "%s%sdurable=yes", nodes[i], separator);
        uris[i] = texts[i];
    }
}

redlock_client *client_create(struct event_base *base, const char *const *nodes, size_t node_count,
                              redlock_options options) {
    return client_create_on(NULL, base, nodes, node_count, options);
}

redlock_client *client_create_on(redlock_loop *loop, struct event_base *base,
                                 const char *const *nodes, size_t node_count,
                                 redlock_options options) {
    char texts[REDLOCK_MAX_NODES][URI_SIZE];
    const char *uris[REDLOCK_MAX_NODES];
    redlock_client *client;
    redlock_error error;

    take_for_durable(texts, uris, nodes, node_count);
    options.nodes = uris;
    options.node_count = node_count;
    options.name = "redlock-bench";
    if ((loop != NULL ? redlock_client_create_on(loop, &options, &client, &error)
                      : redlock_client_create(base, &options, &client, &error)) != REDLOCK_OK) {
        fprintf(stderr, "redlock-bench: %s\n", naming_by_options(error.message));
        return NULL;
    }
    return client;
}

bool client_is_ready(const redlock_client *client, FILE *complaints) {
    redlock_node_info infos[REDLOCK_MAX_NODES];
    size_t count = redlock_client_nodes(client, infos, REDLOCK_MAX_NODES);
    bool ready = true;

    for (size_t i = 0; i < count; i++) {
        if (!infos[i].connected) {
            ready = false;
            if (complaints != NULL) {
                fprintf(complaints, "redlock-bench: %s is not connected: %s\n", infos[i].node,
                        infos[i].reason);
            }
        }
    }
    return ready;
}
