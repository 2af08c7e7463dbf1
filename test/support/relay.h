/*
 * Carries bytes between clients and a port of this machine, on a libevent loop, as its owner
 * decides: at once, later, in pieces, or not at all.
 *
 * A span is a connection of a client together with its connection to the server; a lane is one
 * direction of a span. Bytes wait in their lane until its terms let them pass, and then in the
 * other side's output until its socket takes them. While the bytes from a side exceed a limit, the
 * side is not read. The end of a connection arrives after the bytes before it.
 */
#ifndef REDLOCK_TEST_RELAY_H
#define REDLOCK_TEST_RELAY_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

struct bufferevent;
struct evbuffer;
struct event;
struct event_base;
struct evconnlistener;

enum side { CLIENT, SERVER };

/* The treatment of the bytes from one side. */
struct terms {
    bool holds;        /* bytes wait, and so does the end */
    bool loses;        /* bytes are dropped instead of passed */
    bool hides_end;    /* the end is hidden from the other side, which is reset after a silence */
    bool jams;         /* nothing is read */
    size_t piece;      /* limit of the bytes that pass in one turn; 0: none */
    uint64_t delay_ms; /* the delay of bytes that arrive from now on */
};

struct lane {
    struct span *span;
    enum side from; /* the side that the bytes come from */
    struct terms terms;
    bool ended;               /* that side is gone */
    struct evbuffer *bytes;   /* waiting bytes */
    size_t due;               /* number of the first bytes whose delay is over */
    struct evbuffer *batches; /* sizes and times of the others */
    struct event *timer;      /* fires at the next of these times */
};

struct span {
    LIST_ENTRY(span) entry;
    struct relay *relay;
    struct bufferevent *sides[2]; /* NULL: gone */
    struct lane lanes[2];         /* by the side that the bytes come from */
};

/*
 * Returns the size of the first message in the input, which then passes; 0: it is incomplete. May
 * first change the lane's terms, and drain messages to drop them.
 */
typedef size_t relay_next(struct lane *lane, struct evbuffer *input);

/*
 * A relay. It may be the first member of an owner's struct, so that relay_next finds the owner by
 * the lane.
 */
struct relay {
    struct event_base *base;
    relay_next *next;                /* NULL: bytes pass as they come */
    struct evconnlistener *listener; /* NULL: connections are refused */
    int reservation;                 /* the socket that reserves the port */
    struct sockaddr_in address;
    struct sockaddr_in server;
    struct terms terms[2]; /* for new spans, by the side that the bytes come from */
    LIST_HEAD(, span) spans;
};

/* Accepts connections at a free port of 127.0.0.1 for the server at another port there. */
void relay_init(struct relay *relay, struct event_base *base, int server_port, relay_next *next);
void relay_finish(struct relay *relay);

int relay_port(const struct relay *relay);

/* Refuses connections, as a host without a server does; accepts them again. */
void relay_refuse(struct relay *relay);
void relay_accept(struct relay *relay);

/* Destroys all spans; bytes in flight are lost. */
void relay_cut(struct relay *relay);

/* Sets the terms for bytes from one side, in all spans and in new ones. */
void relay_set(struct relay *relay, enum side from, const struct terms *terms);

/* Calls a function, which may destroy the span, for each span. */
void relay_each(struct relay *relay, void (*visit)(struct span *span, const void *arg),
                const void *arg);

/* Passes the bytes that the terms allow; destroys the span if both sides are gone. */
void span_move(struct span *span);

/* Closes one side, whose bytes are still passed, and moves the span. */
void span_end(struct span *span, enum side side);

/* Resets one side without notifying the other. */
void span_half_open(struct span *span, enum side side);

/* Resets both sides, and destroys the span. */
void span_reset(struct span *span);

#endif
