#include "client.h"

#include "naming.h"

#include <string.h>

/* Maximum size of a URI with its NUL; longer ones are refused. */
#define URI_SIZE 512

/* Maximum number of commands of a lock at a node, and maximum size of each. */
#define COMMANDS_PER_LOCK 4
#define COMMAND_BYTES 512

/* The nodes of a client, declared durable. */
struct nodes {
    char texts[REDLOCK_MAX_NODES][URI_SIZE];
    const char *uris[REDLOCK_MAX_NODES];
};

static void set_nodes(redlock_options *options, struct nodes *durable, const char *const *nodes,
                      size_t node_count) {
    for (size_t i = 0; i < node_count && i < REDLOCK_MAX_NODES; i++) {
        const char *separator = strchr(nodes[i], '?') != NULL ? "&" : "?";

        snprintf(durable->texts[i], URI_SIZE, "%s%sdurable=yes", nodes[i], separator);
        durable->uris[i] = durable->texts[i];
    }
    options->nodes = durable->uris;
    options->node_count = node_count;
}

static void complain(const redlock_error *error) {
    fprintf(stderr, "redlock-bench: %s\n", naming_by_options(error->message));
}

redlock_options client_options(size_t locks, uint64_t ttl_ms, uint64_t node_timeout_ms) {
    redlock_options options = REDLOCK_OPTIONS_INIT;

    options.name = "redlock-bench";
    options.node_timeout_ms = node_timeout_ms;
    if (locks > options.max_commands / COMMANDS_PER_LOCK) {
        options.max_commands = (uint32_t)(locks * COMMANDS_PER_LOCK);
        options.max_bytes = locks * COMMANDS_PER_LOCK * COMMAND_BYTES;
    }
    if (options.max_ttl_ms < ttl_ms) {
        options.max_ttl_ms = ttl_ms;
    }
    return options;
}

redlock_client *client_create(struct event_base *base, const char *const *nodes, size_t node_count,
                              redlock_options options) {
    return client_create_on(NULL, base, nodes, node_count, options);
}

redlock_client *client_create_on(redlock_loop *loop, struct event_base *base,
                                 const char *const *nodes, size_t node_count,
                                 redlock_options options) {
    struct nodes durable;
    redlock_client *client;
    redlock_error error;

    set_nodes(&options, &durable, nodes, node_count);
    if ((loop != NULL ? redlock_client_create_on(loop, &options, &client, &error)
                      : redlock_client_create(base, &options, &client, &error)) != REDLOCK_OK) {
        complain(&error);
        return NULL;
    }
    return client;
}

redlock_mt *client_create_shared(const char *const *nodes, size_t node_count,
                                 redlock_options options) {
    struct nodes durable;
    redlock_mt *mt;
    redlock_error error;

    set_nodes(&options, &durable, nodes, node_count);
    if (redlock_mt_create(&options, &mt, &error) != REDLOCK_OK) {
        complain(&error);
        return NULL;
    }
    return mt;
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
