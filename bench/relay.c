#include "relay.h"

#include "address.h"
#include "child.h"
#include "memory.h"
#include "relay_loop.h"

#include <arpa/inet.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define SCHEME "redis://"
#define NS_PER_MS 1e6

/* The part of a URI that names the host and the port. */
struct place {
    const char *text;
    size_t length;
};

struct relay {
    struct child child;
    size_t count;
    struct relay_port ports[REDLOCK_MAX_NODES];
    struct place places[REDLOCK_MAX_NODES];
    char *uris[REDLOCK_MAX_NODES];
};

/* ---------------------------------------------------------------------------------------- URIs */

static struct place place_in(const char *uri) {
    struct place place = {.text = uri + strlen(SCHEME)};
    const char *at;

    place.length = strcspn(place.text, "/?");
    at = memrchr(place.text, '@', place.length);
    if (at != NULL) {
        place.length -= (size_t)(at + 1 - place.text);
        place.text = at + 1;
    }
    return place;
}

/* Parses ADDRESS[:PORT]. */
static bool parse_node(struct sockaddr_in *node, struct place place) {
    char uri[sizeof(SCHEME "255.255.255.255:65535")];
    struct address address;

    if (snprintf(uri, sizeof(uri), SCHEME "%.*s", (int)place.length, place.text) >=
            (int)sizeof(uri) ||
        address_parse(&address, uri) != NULL) {
        return false;
    }
    *node = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)address.port)};
    return inet_pton(AF_INET, address.host, &node->sin_addr) == 1;
}

/* Finds the nodes. Does not print URIs, which may have passwords. */
static bool parse_uris(struct relay *relay, const char *const *uris) {
    for (size_t i = 0; i < relay->count; i++) {
        bool is_plain = strncmp(uris[i], SCHEME, strlen(SCHEME)) == 0;

        if (is_plain) {
            relay->places[i] = place_in(uris[i]);
        }
        if (!is_plain || !parse_node(&relay->ports[i].node, relay->places[i])) {
            fprintf(stderr,
                    "redlock-bench: node %zu: --rtt, --jitter and --late need redis:// with an "
                    "address like 127.0.0.1 and a port\n",
                    i + 1);
            return false;
        }
    }
    return true;
}

/* Puts the relay's port in place of the node's. */
static void replace_places(struct relay *relay, const char *const *uris, const int *ports) {
    for (size_t i = 0; i < relay->count; i++) {
        struct place place = relay->places[i];

        if (asprintf(&relay->uris[i], "%.*s127.0.0.1:%d%s", (int)(place.text - uris[i]), uris[i],
                     ports[i], place.text + place.length) < 0) {
            memory_end();
        }
    }
}

/* --------------------------------------------------------------------------------- the process */

/* Runs in the child. */
static int become_relay(void *arg) {
    struct relay *relay = arg;

    prctl(PR_SET_NAME, "redlock-relay"); /* as tools like top(1) show it */
    return relay_loop_run(relay->ports, relay->count, STDIN_FILENO, STDOUT_FILENO) == 0
               ? EXIT_SUCCESS
               : EXIT_FAILURE;
}

static struct relay_terms terms_of(const struct relay_delays *delays, size_t node) {
    double rtt_ms = delays->rtt_ms[delays->rtt_count > 1 ? node : 0];

    return (struct relay_terms){
        .delay_ns = (uint64_t)(rtt_ms / 2 * NS_PER_MS),
        .jitter_ns = (uint64_t)(delays->jitter_ms * NS_PER_MS),
        .late_share = delays->late_percent / 100,
        .late_ns = (uint64_t)(delays->late_ms * NS_PER_MS),
    };
}

struct relay *relay_start(const char *const *uris, size_t count,
                          const struct relay_delays *delays) {
    struct relay *relay = memory_take(1, sizeof(*relay));
    int ports[REDLOCK_MAX_NODES];

    relay->count = count;
    for (size_t i = 0; i < count; i++) {
        relay->ports[i].terms = terms_of(delays, i);
    }
    if (!parse_uris(relay, uris)) {
        relay_finish(relay);
        return NULL;
    }
    if (!child_start(&relay->child, become_relay, relay, count, ports)) {
        fputs("redlock-bench: cannot start the relay\n", stderr);
        relay_finish(relay);
        return NULL;
    }
    replace_places(relay, uris, ports);
    return relay;
}

void relay_finish(struct relay *relay) {
    if (relay == NULL) {
        return;
    }
    child_finish(&relay->child);
    for (size_t i = 0; i < relay->count; i++) {
        free(relay->uris[i]);
    }
    free(relay);
}

const char *const *relay_uris(const struct relay *relay) {
    return (const char *const *)relay->uris;
}
