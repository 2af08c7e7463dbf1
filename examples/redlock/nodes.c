#include "nodes.h"

#include "duration.h"
#include "naming.h"
#include "tool.h"

#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIRECT_TIMEOUT_MS 1000
#define CLOSE_TIMEOUT_MS 1000
#define MAX_TTL_MS 30000
#define SEPARATORS ", \t\n"

void nodes_init(struct nodes *nodes) {
    *nodes = (struct nodes){.max_ttl_ms = MAX_TTL_MS, .direct_timeout_ms = DIRECT_TIMEOUT_MS};
}

static bool begins_uri(const char *text) {
    return strncmp(text, "redis://", 8) == 0 || strncmp(text, "rediss://", 9) == 0 ||
           strncmp(text, "unix://", 7) == 0;
}

/*
 * Terminates a URI before the next one, or at the end of the list. Returns what follows. A comma
 * before anything but a URI belongs to the URI: half a password must not be taken for a node.
 */
static char *cut_uri(char *uri) {
    char *separator = strpbrk(uri, SEPARATORS);

    while (separator != NULL) {
        char *next = separator + strspn(separator, SEPARATORS);

        if (*next == '\0' || begins_uri(next)) {
            *separator = '\0';
            return next;
        }
        separator = strpbrk(next, SEPARATORS);
    }
    return uri + strlen(uri);
}

void nodes_set(struct nodes *nodes, const char *list) {
    static char *copy; /* kept until the program ends: it has one list */

    free(copy);
    copy = strdup(list);
    if (copy == NULL) {
        tool_refused("memory");
    }
    nodes->count = 0;
    for (char *uri = copy + strspn(copy, SEPARATORS); *uri != '\0';) {
        char *next = cut_uri(uri);

        if (nodes->count == REDLOCK_MAX_NODES) {
            tool_usage("more than %d nodes", REDLOCK_MAX_NODES);
        }
        nodes->uris[nodes->count++] = uri;
        uri = next;
    }
}

bool nodes_take(struct nodes *nodes, int option) {
    switch (option) {
    case 'n':
        nodes_set(nodes, optarg);
        if (nodes->count == 0) { /* must not fall back to $REDLOCK_NODES */
            tool_usage("-n names no nodes");
        }
        return true;
    case NODES_MAX_TTL:
        nodes->max_ttl_ms = duration_of_option("--max-ttl", optarg);
        return true;
    case NODES_NODE_TIMEOUT:
        nodes->node_timeout_ms = duration_of_option("--node-timeout", optarg);
        if (nodes->node_timeout_ms != 0) { /* 0 follows the network */
            nodes->direct_timeout_ms = nodes->node_timeout_ms;
        }
        return true;
    default:
        return false;
    }
}

void nodes_default(struct nodes *nodes) {
    const char *list = getenv("REDLOCK_NODES");

    if (nodes->count == 0 && list != NULL) {
        nodes_set(nodes, list);
    }
    if (nodes->count == 0) {
        tool_usage("no nodes: set REDLOCK_NODES=redis://host1,redis://host2,redis://host3, or use "
                   "-n; \"redlock dev\" starts throwaway ones");
    }
}

size_t nodes_quorum(const struct nodes *nodes) {
    return nodes->count / 2 + 1;
}

redlock_client *nodes_connect(const struct nodes *nodes, struct event_base *base,
                              const char *owner) {
    redlock_options options = REDLOCK_OPTIONS_INIT;
    redlock_client *client;
    redlock_error error;

    options.nodes = nodes->uris;
    options.node_count = nodes->count;
    options.max_ttl_ms = nodes->max_ttl_ms;
    options.node_timeout_ms = nodes->node_timeout_ms;
    options.close_timeout_ms = CLOSE_TIMEOUT_MS;
    options.name = "redlock-command";
    options.owner = owner;
    options.tls_ca_file = getenv("REDLOCK_TLS_CA_FILE");
    options.tls_cert_file = getenv("REDLOCK_TLS_CERT_FILE");
    options.tls_key_file = getenv("REDLOCK_TLS_KEY_FILE");
    if (redlock_client_create(base, &options, &client, &error) != REDLOCK_OK) {
        tool_usage("%s", naming_by_options(error.message));
    }
    return client;
}

static void on_checked(void *arg) {
    event_base_loopbreak(arg);
}

void nodes_check(struct nodes *nodes) {
    struct event_base *base = nodes_loop();
    redlock_client *client = nodes_connect(nodes, base, NULL);
    redlock_node_info infos[REDLOCK_MAX_NODES];

    redlock_client_nodes(client, infos, REDLOCK_MAX_NODES);
    for (size_t i = 0; i < nodes->count; i++) {
        snprintf(nodes->names[i], sizeof(nodes->names[i]), "%s", infos[i].node);
    }
    redlock_client_close(client, on_checked, base);
    event_base_dispatch(base);
    event_base_free(base);
}

static void on_libevent_says(int severity, const char *words) {
    if (severity >= EVENT_LOG_WARN) {
        tool_say("%s", words);
    }
}

/* Ends the program when libevent cannot go on, after libevent's message. */
static void on_libevent_fails(int code) {
    (void)code;
    exit(TOOL_SYSTEM);
}

struct event_base *nodes_loop(void) {
    struct event_config *config;
    struct event_base *base = NULL;

    event_set_log_callback(on_libevent_says);
    event_set_fatal_callback(on_libevent_fails);
    config = event_config_new();

    if (config != NULL && event_config_set_flag(config, EVENT_BASE_FLAG_PRECISE_TIMER) == 0) {
        base = event_base_new_with_config(config);
    }
    if (base == NULL) {
        tool_say("cannot make an event loop");
        exit(TOOL_SYSTEM);
    }
    event_config_free(config);
    return base;
}

/* Returns whether the node has neither answered nor failed yet. */
static bool is_beginning(const redlock_node_info *info) {
    if (!info->connected) {
        return info->disconnected == 0;
    }
    return !info->trusted && info->distrust_ms == 0 && info->commands > 0;
}

bool nodes_are_known(const redlock_client *client) {
    redlock_node_info infos[REDLOCK_MAX_NODES];
    size_t count = redlock_client_nodes(client, infos, REDLOCK_MAX_NODES);

    for (size_t i = 0; i < count; i++) {
        if (is_beginning(&infos[i])) {
            return false;
        }
    }
    return true;
}

size_t nodes_without_descriptor(const redlock_client *client) {
    redlock_node_info infos[REDLOCK_MAX_NODES];
    size_t count = redlock_client_nodes(client, infos, REDLOCK_MAX_NODES);
    size_t without = 0;

    for (size_t i = 0; i < count; i++) {
        without += !infos[i].connected && strstr(infos[i].reason, strerror(EMFILE)) != NULL;
    }
    return without;
}

bool nodes_lack_descriptors(const struct nodes *nodes, const redlock_client *client) {
    size_t without = nodes_without_descriptor(client);

    if (without <= nodes->count - nodes_quorum(nodes)) {
        return false;
    }
    tool_say("too few descriptors for %zu of %zu nodes: %s; raise the limit by ulimit -n", without,
             nodes->count, strerror(EMFILE));
    return true;
}

bool nodes_is_refusal(const char *text) {
    static const char *const words[] = {"NOPERM",
                                        "NOAUTH",
                                        "WRONGPASS",
                                        "invalid password",
                                        "ERR AUTH",
                                        "ERR Client sent AUTH",
                                        "can't run this command",
                                        "ACL failure",
                                        "(its user needs +"};

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strstr(text, words[i]) != NULL) {
            return true;
        }
    }
    return false;
}
