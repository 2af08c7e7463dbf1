/*
 * A relay that splits requests into commands, so that commands can be counted, and held from a
 * named one on. Replies pass as they come.
 */
#include "proxy.h"

#include "relay.h"

#include <event2/buffer.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_NAMES 16
#define NAME_SIZE 16

struct tally {
    char name[NAME_SIZE];
    size_t count;
};

struct proxy {
    struct relay relay;
    struct fixture *fixture;
    char hold_from[NAME_SIZE]; /* the command that begins the hold; "": none */
    struct tally tallies[MOST_NAMES];
    void (*watch)(const struct command *command, void *arg);
    void *watch_arg;
    char uri[40];
};

static void name_command(const struct command *command, char name[NAME_SIZE]) {
    if (command_is_script(command)) {
        snprintf(name, NAME_SIZE, ANY_SCRIPT);
    } else {
        command_text(command, 0, name, NAME_SIZE);
    }
}

static void count_command(struct proxy *proxy, const struct command *command,
                          const char name[NAME_SIZE]) {
    size_t i = 0;

    while (i < MOST_NAMES - 1 && proxy->tallies[i].count > 0 &&
           strcmp(proxy->tallies[i].name, name) != 0) {
        i++;
    }
    memcpy(proxy->tallies[i].name, name, NAME_SIZE);
    proxy->tallies[i].count++;
    if (proxy->watch != NULL) {
        proxy->watch(command, proxy->watch_arg);
    }
}

/* Finds the next command in requests; takes replies whole. */
static size_t next_message(struct lane *lane, struct evbuffer *input) {
    struct proxy *proxy = (struct proxy *)lane->span->relay;
    struct command command;
    char name[NAME_SIZE];
    size_t size;

    if (lane->from == SERVER) {
        return evbuffer_get_length(input);
    }
    if (command_read(&command, input) <= 0) {
        return 0;
    }
    size = command.size;
    name_command(&command, name);
    count_command(proxy, &command, name);
    if (strcmp(proxy->hold_from, name) == 0) {
        lane->terms.holds = true;
    }
    command_finish(&command);
    return size;
}

static void destroy(void *object) {
    struct proxy *proxy = object;

    relay_finish(&proxy->relay);
    free(proxy);
}

static struct proxy *create(struct fixture *f, size_t master, relay_next *next) {
    struct proxy *proxy = calloc(1, sizeof(*proxy));

    assert_non_null(proxy);
    proxy->fixture = f;
    relay_init(&proxy->relay, f->base, masters_port(f->masters, master), next);
    snprintf(proxy->uri, sizeof(proxy->uri), "redis://127.0.0.1:%d", relay_port(&proxy->relay));
    at_finish(f, destroy, proxy);
    return proxy;
}

struct proxy *proxy_create(struct fixture *f, size_t master) {
    return create(f, master, next_message);
}

struct proxy *proxy_create_blind(struct fixture *f, size_t master) {
    return create(f, master, NULL);
}

void proxies_create(struct fixture *f, struct proxy **proxies, const char **uris) {
    for (size_t i = 0; i < masters_count(f->masters); i++) {
        proxies[i] = proxy_create(f, i);
        uris[i] = proxy_uri(proxies[i]);
    }
}

const char *proxy_uri(const struct proxy *proxy) {
    return proxy->uri;
}

int proxy_port(const struct proxy *proxy) {
    return relay_port(&proxy->relay);
}

/* -------------------------------------------------------------------------------- connections */

void proxy_accept(struct proxy *proxy) {
    relay_accept(&proxy->relay);
}

void proxy_refuse(struct proxy *proxy) {
    relay_refuse(&proxy->relay);
}

void proxy_cut(struct proxy *proxy) {
    relay_cut(&proxy->relay);
}

static void strand(struct span *span, const void *arg) {
    (void)arg;
    span_end(span, CLIENT);
}

void proxy_strand(struct proxy *proxy) {
    proxy->hold_from[0] = '\0';
    proxy->relay.terms[CLIENT].holds = false;
    proxy->relay.terms[SERVER].holds = false;
    relay_each(&proxy->relay, strand, NULL);
}

static void deliver(struct span *span, const void *arg) {
    (void)arg;
    if (span->sides[CLIENT] == NULL) {
        span->lanes[CLIENT].terms.holds = false;
        span_move(span);
    }
}

static bool has_delivered(void *arg) {
    const struct proxy *proxy = arg;
    const struct span *span;

    LIST_FOREACH(span, &proxy->relay.spans, entry) {
        if (span->sides[CLIENT] == NULL) {
            return false;
        }
    }
    return true;
}

void proxy_deliver(struct proxy *proxy) {
    relay_each(&proxy->relay, deliver, NULL);
    run_until(proxy->fixture, has_delivered, proxy, "the stranded requests are executed");
}

/* ---------------------------------------------------------------------------------------- bytes */

static void set_terms(struct proxy *proxy, enum side from, bool holds, bool jams) {
    struct terms terms = proxy->relay.terms[from];

    terms.holds = holds;
    terms.jams = jams;
    relay_set(&proxy->relay, from, &terms);
}

void proxy_hold_requests(struct proxy *proxy, const char *from) {
    if (from != NULL) {
        snprintf(proxy->hold_from, sizeof(proxy->hold_from), "%s", from);
    } else {
        set_terms(proxy, CLIENT, true, false);
    }
}

void proxy_jam_requests(struct proxy *proxy) {
    set_terms(proxy, CLIENT, false, true);
}

void proxy_pass_requests(struct proxy *proxy) {
    proxy->hold_from[0] = '\0';
    set_terms(proxy, CLIENT, false, false);
}

void proxy_hold_replies(struct proxy *proxy) {
    set_terms(proxy, SERVER, true, false);
}

void proxy_pass_replies(struct proxy *proxy) {
    set_terms(proxy, SERVER, false, false);
}

void proxy_set_piece(struct proxy *proxy, size_t bytes) {
    for (enum side from = CLIENT; from <= SERVER; from++) {
        struct terms terms = proxy->relay.terms[from];

        terms.piece = bytes;
        relay_set(&proxy->relay, from, &terms);
    }
}

void proxies_hold_requests(struct proxy *const *proxies, size_t from, size_t to, const char *name) {
    for (size_t i = from; i < to; i++) {
        proxy_hold_requests(proxies[i], name);
    }
}

void proxies_pass_requests(struct proxy *const *proxies, size_t from, size_t to) {
    for (size_t i = from; i < to; i++) {
        proxy_pass_requests(proxies[i]);
    }
}

void proxies_hold_replies(struct proxy *const *proxies, size_t from, size_t to) {
    for (size_t i = from; i < to; i++) {
        proxy_hold_replies(proxies[i]);
    }
}

void proxies_pass_replies(struct proxy *const *proxies, size_t from, size_t to) {
    for (size_t i = from; i < to; i++) {
        proxy_pass_replies(proxies[i]);
    }
}

/* ------------------------------------------------------------------------------ what arrives */

size_t proxy_arrived(const struct proxy *proxy, const char *name) {
    for (size_t i = 0; i < MOST_NAMES; i++) {
        if (strcmp(proxy->tallies[i].name, name) == 0) {
            return proxy->tallies[i].count;
        }
    }
    return 0;
}

struct wanted {
    const struct proxy *proxy;
    const char *name;
    size_t count;
};

static bool has_arrived(void *arg) {
    const struct wanted *wanted = arg;

    return proxy_arrived(wanted->proxy, wanted->name) >= wanted->count;
}

void wait_arrived(struct fixture *f, struct proxy *proxy, const char *name, size_t count) {
    struct wanted wanted = {proxy, name, count};
    char what[64];

    snprintf(what, sizeof(what), "%s has arrived %zu times", name, count);
    run_until(f, has_arrived, &wanted, what);
}

void proxy_watch(struct proxy *proxy, void (*watch)(const struct command *command, void *arg),
                 void *arg) {
    proxy->watch = watch;
    proxy->watch_arg = arg;
}
