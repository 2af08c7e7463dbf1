/*
 * Relays that split the masters' bytes into messages as long as these are arrays of strings:
 * messages of channels are, answers to commands never are.
 */
#include "push_relay.h"

#include "command.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEED UINT64_C(0x2545f4914f6cdd1d)
#define PROBE "probe:"

/* The way to one master. */
struct way {
    struct relay relay; /* the first member, so that lanes lead to it */
    struct push_relay *push_relay;
    bool is_copy;            /* the next message is the copy of a push */
    struct span *span;       /* the span that the kept copies came from; NULL: none */
    struct evbuffer *copies; /* copies of pushes */
    char uri[64];
};

struct push_relay {
    size_t count;
    struct way ways[REDLOCK_MAX_NODES];
    const char *uris[REDLOCK_MAX_NODES];
    uint64_t random;
    unsigned lost_percent;
    bool doubles, keeps;
    size_t pushes, lost;
};

static unsigned draw_percent(struct push_relay *push_relay) {
    push_relay->random ^= push_relay->random << 13;
    push_relay->random ^= push_relay->random >> 7;
    push_relay->random ^= push_relay->random << 17;
    return (unsigned)(push_relay->random % 100);
}

/*
 * Copies the first `size` bytes of the input to the front of a buffer, which may be the input
 * itself.
 */
static void copy(struct evbuffer *input, size_t size, struct evbuffer *to) {
    char *bytes = malloc(size);

    assert_non_null(bytes);
    assert_int_equal(evbuffer_copyout(input, bytes, size), size);
    assert_int_equal(evbuffer_prepend(to, bytes, size), 0);
    free(bytes);
}

/* Returns whether the push is to be delivered. */
static bool treat(struct way *way, struct lane *lane, struct evbuffer *input, size_t size) {
    struct push_relay *push_relay = way->push_relay;

    if (way->is_copy) {
        way->is_copy = false;
        return true;
    }
    push_relay->pushes++;
    if (draw_percent(push_relay) < push_relay->lost_percent) {
        push_relay->lost++;
        evbuffer_drain(input, size);
        return false;
    }
    if (push_relay->doubles) {
        way->is_copy = true;
        copy(input, size, input);
    }
    if (push_relay->keeps) {
        way->span = lane->span;
        copy(input, size, way->copies);
    }
    return true;
}

/* Returns whether the command is a message that grants a key. */
static bool is_push(const struct command *message) {
    char text[sizeof(PROBE)];

    command_text(message, 2, text, sizeof(text));
    return command_is(message, "message", NULL) && strcmp(text, PROBE) != 0;
}

static size_t next_message(struct lane *lane, struct evbuffer *input) {
    struct way *way = (struct way *)lane->span->relay;
    struct command message;

    while (lane->from == SERVER) {
        int got = command_read(&message, input);
        size_t size = message.size;

        if (got == 0) {
            return 0;
        }
        if (got < 0) {
            break;
        }
        bool goes_on = !is_push(&message);
        command_finish(&message);
        if (goes_on || treat(way, lane, input, size)) {
            return size;
        }
    }
    return evbuffer_get_length(input);
}

/* ---------------------------------------------------------------------------------------- life */

static void destroy(void *object) {
    struct push_relay *push_relay = object;

    for (size_t i = 0; i < push_relay->count; i++) {
        relay_finish(&push_relay->ways[i].relay);
        evbuffer_free(push_relay->ways[i].copies);
    }
    free(push_relay);
}

struct push_relay *push_relay_create(struct fixture *f) {
    struct push_relay *push_relay = calloc(1, sizeof(*push_relay));

    assert_non_null(push_relay);
    push_relay->random = SEED;
    push_relay->count = masters_count(f->masters);
    for (size_t i = 0; i < push_relay->count; i++) {
        struct way *way = &push_relay->ways[i];

        way->push_relay = push_relay;
        way->copies = evbuffer_new();
        assert_non_null(way->copies);
        relay_init(&way->relay, f->base, masters_port(f->masters, i), next_message);
        snprintf(way->uri, sizeof(way->uri), "redis://127.0.0.1:%d?durable=yes",
                 relay_port(&way->relay));
        push_relay->uris[i] = way->uri;
    }
    at_finish(f, destroy, push_relay);
    return push_relay;
}

const char *const *push_relay_uris(const struct push_relay *push_relay) {
    return push_relay->uris;
}

redlock_client *push_relay_client(struct fixture *f, const struct push_relay *push_relay,
                                  redlock_guards guards) {
    redlock_options options = patient_options(f, push_relay->uris, push_relay->count);

    options.guards = guards;
    redlock_client *client = connect_with(f, &options);
    if (guards == REDLOCK_GUARDS_ON) {
        wait_trusted(f, client, push_relay->count);
    }
    return client;
}

/* --------------------------------------------------------------------------------------- fates */

void push_relay_lose(struct push_relay *push_relay, unsigned percent) {
    push_relay->lost_percent = percent;
}

void push_relay_double(struct push_relay *push_relay) {
    push_relay->doubles = true;
}

void push_relay_keep_copies(struct push_relay *push_relay) {
    push_relay->keeps = true;
}

void push_relay_deliver_copies(struct fixture *f, struct push_relay *push_relay) {
    for (size_t i = 0; i < push_relay->count; i++) {
        struct way *way = &push_relay->ways[i];

        if (way->span != NULL) {
            bufferevent_write_buffer(way->span->sides[CLIENT], way->copies);
        }
    }
    wait_delivered(f, push_relay);
}

static void set_hold(struct push_relay *push_relay, enum side from, bool holds) {
    for (size_t i = 0; i < push_relay->count; i++) {
        struct terms terms = push_relay->ways[i].relay.terms[from];

        terms.holds = holds;
        relay_set(&push_relay->ways[i].relay, from, &terms);
    }
}

void push_relay_hold(struct push_relay *push_relay, enum side from) {
    set_hold(push_relay, from, true);
}

void push_relay_pass(struct push_relay *push_relay, enum side from) {
    set_hold(push_relay, from, false);
}

static bool is_delivered(void *arg) {
    const struct push_relay *push_relay = arg;

    for (size_t i = 0; i < push_relay->count; i++) {
        const struct span *span;

        LIST_FOREACH(span, &push_relay->ways[i].relay.spans, entry) {
            struct bufferevent *client = span->sides[CLIENT];

            if (evbuffer_get_length(span->lanes[SERVER].bytes) > 0 ||
                (client != NULL && evbuffer_get_length(bufferevent_get_output(client)) > 0)) {
                return false;
            }
        }
    }
    return true;
}

void wait_delivered(struct fixture *f, struct push_relay *push_relay) {
    run_until(f, is_delivered, push_relay, "all that the masters sent is delivered");
    run_turns(f, 10);
}

size_t push_relay_pushes(const struct push_relay *push_relay) {
    return push_relay->pushes;
}

size_t push_relay_lost(const struct push_relay *push_relay) {
    return push_relay->lost;
}
