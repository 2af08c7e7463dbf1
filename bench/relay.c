/*
 * The process is a fork without threads. It ends with relay_finish, at exit(), and at the latest
 * with the benchmark, however that ends: by the death signal, and when its standard input ends.
 */
#define _GNU_SOURCE 1 /* close_range, pipe2 */

#include "relay.h"

#include "memory.h"
#include "relay_loop.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define SCHEME "redis://"
#define DEFAULT_PORT 6379
#define NS_PER_MS 1e6

/* The part of a URI that names the host and the port. */
struct place {
    const char *text;
    size_t length;
};

struct relay {
    pid_t owner; /* the process that may end the relay, not a fork of it */
    pid_t pid;   /* 0: none */
    int input;   /* write end of the pipe that is the process's standard input; -1: none */
    size_t count;
    struct relay_port ports[REDLOCK_MAX_NODES];
    struct place places[REDLOCK_MAX_NODES];
    char *uris[REDLOCK_MAX_NODES];
};

enum { READER, WRITER };

/* The relay that exit() must end; NULL: none. */
static struct relay *unfinished;

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
    char text[sizeof("255.255.255.255:65535")];
    char *colon;
    char *end = text;
    long port = DEFAULT_PORT;

    if (place.length >= sizeof(text)) {
        return false;
    }
    memcpy(text, place.text, place.length);
    text[place.length] = '\0';
    colon = strchr(text, ':');
    if (colon != NULL) {
        *colon = '\0';
        port = strtol(colon + 1, &end, 10);
        if (end == colon + 1) {
            return false;
        }
    } else {
        end = text + place.length;
    }
    *node = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    return *end == '\0' && port > 0 && port <= 65535 &&
           inet_pton(AF_INET, text, &node->sin_addr) == 1;
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
static void replace_places(struct relay *relay, const char *const *uris) {
    for (size_t i = 0; i < relay->count; i++) {
        struct place place = relay->places[i];

        if (asprintf(&relay->uris[i], "%.*s127.0.0.1:%d%s", (int)(place.text - uris[i]), uris[i],
                     relay->ports[i].number, place.text + place.length) < 0) {
            memory_end();
        }
    }
}

/* --------------------------------------------------------------------------------- the process */

static void end_at_exit(void) {
    if (unfinished != NULL && unfinished->owner == getpid()) {
        relay_finish(unfinished);
    }
}

/* Runs in the child. */
static _Noreturn void become_relay(struct relay *relay, const int input[2], const int output[2]) {
    /* The handlers of the parent's event loop would notify the parent, which would end the run. */
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_DFL);
    signal(SIGCHLD, SIG_DFL);
    prctl(PR_SET_NAME, "redlock-relay"); /* as tools like top(1) show it */
    /* The parent may have ended before the death signal was set. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != relay->owner) {
        _exit(EXIT_FAILURE);
    }
    /* Null masters would not end while this process has their input. */
    if (dup2(input[READER], STDIN_FILENO) < 0 || dup2(output[WRITER], STDOUT_FILENO) < 0 ||
        close_range(STDERR_FILENO + 1, ~0U, 0) != 0) {
        perror("redlock-bench: the relay cannot start");
        _exit(EXIT_FAILURE);
    }
    _exit(relay_loop_run(relay->ports, relay->count, STDIN_FILENO, STDOUT_FILENO) == 0
              ? EXIT_SUCCESS
              : EXIT_FAILURE);
}

/* Waits for the line of ports, which comes when all are open. */
static bool read_ports(struct relay *relay, int output) {
    FILE *lines = fdopen(output, "re");
    size_t known = 0;

    if (lines == NULL) {
        close(output);
        return false;
    }
    while (known < relay->count && fscanf(lines, "%d", &relay->ports[known].number) == 1) {
        known++;
    }
    fclose(lines);
    return known == relay->count;
}

static bool start_process(struct relay *relay) {
    int input[2];
    int output[2];

    if (pipe2(input, O_CLOEXEC) != 0) {
        return false;
    }
    relay->input = input[WRITER];
    if (pipe2(output, O_CLOEXEC) != 0) {
        close(input[READER]);
        return false;
    }
    relay->pid = fork();
    if (relay->pid == 0) {
        become_relay(relay, input, output);
    }
    close(input[READER]);
    close(output[WRITER]);
    if (relay->pid < 0) {
        relay->pid = 0;
        close(output[READER]);
        return false;
    }
    return read_ports(relay, output[READER]);
}

/* ---------------------------------------------------------------------------------------------- */

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
    static bool registered;
    struct relay *relay = memory_take(1, sizeof(*relay));

    relay->owner = getpid();
    relay->input = -1;
    relay->count = count;
    for (size_t i = 0; i < count; i++) {
        relay->ports[i].terms = terms_of(delays, i);
    }
    if (!parse_uris(relay, uris)) {
        relay_finish(relay);
        return NULL;
    }
    unfinished = relay;
    if ((!registered && atexit(end_at_exit) != 0) || !start_process(relay)) {
        fputs("redlock-bench: cannot start the relay\n", stderr);
        relay_finish(relay);
        return NULL;
    }
    registered = true;
    replace_places(relay, uris);
    return relay;
}

void relay_finish(struct relay *relay) {
    if (relay == NULL) {
        return;
    }
    if (relay->pid != 0) {
        kill(relay->pid, SIGKILL);
        while (waitpid(relay->pid, NULL, 0) < 0 && errno == EINTR) {
        }
    }
    if (relay->input >= 0) {
        close(relay->input);
    }
    for (size_t i = 0; i < relay->count; i++) {
        free(relay->uris[i]);
    }
    unfinished = NULL;
    free(relay);
}

const char *const *relay_uris(const struct relay *relay) {
    return (const char *const *)relay->uris;
}
