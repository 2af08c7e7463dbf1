/*
 * Relays that take what masters send apart into messages, as long as these are arrays of strings:
 * messages of channels are, and of the answers to commands none is.
 */
#include "courier.h"

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
    struct relay relay; /* the first member: lanes lead to it */
    struct courier *courier;
    bool is_copy;            /* the next message is the copy of a push */
    struct span *span;       /* that the kept copies came by; NULL: none */
    struct evbuffer *copies; /* pushes that were kept */
    char uri[64];
};

struct courier {
    size_t count;
    struct way ways[REDLOCK_MAX_NODES];
    const char *uris[REDLOCK_MAX_NODES];
    uint64_t random;
    unsigned lost_percent;
    bool doubles, keeps;
    size_t pushes, lost;
};

static unsigned draw_percent(struct courier *courier) {
    courier->random ^= courier->random << 13;
    courier->random ^= courier->random >> 7;
    courier->random ^= courier->random << 17;
    return (unsigned)(courier->random % 100);
}

/* Copies the first bytes of the input to the beginning of a buffer, which may be the input. */
static void copy(struct evbuffer *input, size_t size, struct evbuffer *to) {
    char *bytes = malloc(size);

    assert_non_null(bytes);
    assert_int_equal(evbuffer_copyout(input, bytes, size), size);
    assert_int_equal(evbuffer_prepend(to, bytes, size), 0);
    free(bytes);
}

/* Returns whether the push goes on. */
static bool treat(struct way *way, struct lane *lane, struct evbuffer *input, size_t size) {
    struct courier *courier = way->courier;

    if (way->is_copy) {
        way->is_copy = false;
        return true;
    }
    courier->pushes++;
    if (draw_percent(courier) < courier->lost_percent) {
        courier->lost++;
        evbuffer_drain(input, size);
        return false;
    }
    if (courier->doubles) {
        way->is_copy = true;
        copy(input, size, input);
    }
    if (courier->keeps) {
        way->span = lane->span;
        copy(input, size, way->copies);
    }
    return true;
}

/* Returns whether the command is a message that tells of a key. */
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
    struct courier *courier = object;

    for (size_t i = 0; i < courier->count; i++) {
        relay_finish(&courier->ways[i].relay);
        evbuffer_free(courier->ways[i].copies);
    }
    free(courier);
}

struct courier *courier_create(struct fixture *f) {
    struct courier *courier = calloc(1, sizeof(*courier));

    assert_non_null(courier);
    courier->random = SEED;
    courier->count = masters_count(f->masters);
    for (size_t i = 0; i < courier->count; i++) {
        struct way *way = &courier->ways[i];

        way->courier = courier;
        way->copies = evbuffer_new();
        assert_non_null(way->copies);
        relay_init(&way->relay, f->base, masters_port(f->masters, i), next_message);
        snprintf(way->uri, sizeof(way->uri), "redis://127.0.0.1:%d?durable=yes",
                 relay_port(&way->relay));
        courier->uris[i] = way->uri;
    }
    at_finish(f, destroy, courier);
    return courier;
}

const char *const *courier_uris(const struct courier *courier) {
    return courier->uris;
}

redlock_client *courier_client(struct fixture *f, const struct courier *courier,
                               redlock_guards guards) {
    redlock_options options = patient_options(f, courier->uris, courier->count);

    options.guards = guards;
    redlock_client *client = connect_with(f, &options);
    if (guards == REDLOCK_GUARDS_ON) {
        wait_trusted(f, client, courier->count);
    }
    return client;
}

/* --------------------------------------------------------------------------------------- fates */

void courier_lose(struct courier *courier, unsigned percent) {
    courier->lost_percent = percent;
}

void courier_double(struct courier *courier) {
    courier->doubles = true;
}

void courier_keep_copies(struct courier *courier) {
    courier->keeps = true;
}

void courier_deliver_copies(struct fixture *f, struct courier *courier) {
    for (size_t i = 0; i < courier->count; i++) {
        struct way *way = &courier->ways[i];

        if (way->span != NULL) {
            bufferevent_write_buffer(way->span->sides[CLIENT], way->copies);
        }
    }
    wait_delivered(f, courier);
}

static void set_hold(struct courier *courier, enum side from, bool holds) {
    for (size_t i = 0; i < courier->count; i++) {
        struct terms terms = courier->ways[i].relay.terms[from];

        terms.holds = holds;
        relay_set(&courier->ways[i].relay, from, &terms);
    }
}

void courier_hold(struct courier *courier, enum side from) {
    set_hold(courier, from, true);
}

void courier_pass(struct courier *courier, enum side from) {
    set_hold(courier, from, false);
}

static bool is_delivered(void *arg) {
    const struct courier *courier = arg;

    for (size_t i = 0; i < courier->count; i++) {
        const struct span *span;

        LIST_FOREACH(span, &courier->ways[i].relay.spans, entry) {
            struct bufferevent *client = span->sides[CLIENT];

            if (evbuffer_get_length(span->lanes[SERVER].bytes) > 0 ||
                (client != NULL && evbuffer_get_length(bufferevent_get_output(client)) > 0)) {
                return false;
            }
        }
    }
    return true;
}

void wait_delivered(struct fixture *f, struct courier *courier) {
    run_until(f, is_delivered, courier, "all that the masters sent is delivered");
    run_turns(f, 10);
}

size_t courier_pushes(const struct courier *courier) {
    return courier->pushes;
}

size_t courier_lost(const struct courier *courier) {
    return courier->lost;
}
