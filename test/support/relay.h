/*
 * Carries bytes between clients and a port of this machine, on a loop of libevent, in the way that
 * its owner wants: at once, later, in pieces, or not at all.
 *
 * A span is a connection of a client and the connection to the server that belongs to it; a lane is
 * the way from one side of a span to the other. Bytes that come wait in their lane until its terms
 * let them pass, and then in the other side's output until its socket takes them. While the bytes
 * from a side exceed a bound, the side is not read. An end travels behind the bytes before it.
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
    bool hides_end;    /* the other side is not told the end, and is reset after a silence */
    bool jams;         /* nothing is read */
    size_t piece;      /* the most bytes that pass in a turn; 0: any number */
    uint64_t delay_ms; /* the delay of bytes that come from now on */
};

struct lane {
    struct span *span;
    enum side from; /* the side that the bytes come from */
    struct terms terms;
    bool ended;               /* the side that the bytes come from is gone */
    struct evbuffer *bytes;   /* bytes that wait */
    size_t due;               /* the number of those, from the first on, whose delay is over */
    struct evbuffer *batches; /* the sizes and times of the others */
    struct event *timer;      /* for the next of these times */
};

struct span {
    LIST_ENTRY(span) entry;
    struct relay *relay;
    struct bufferevent *sides[2]; /* NULL: gone */
    struct lane lanes[2];         /* by the side that the bytes come from */
};

/*
 * Returns the size of the first message in the input, which then goes on; 0: it has not come whole.
 * May change the lane's terms before, and drain messages that are to be dropped.
 */
typedef size_t relay_next(struct lane *lane, struct evbuffer *input);

/* An owner's struct may begin with its relay, so that relay_next finds the owner by the lane. */
struct relay {
    struct event_base *base;
    relay_next *next;                /* NULL: bytes go on as they come */
    struct evconnlistener *listener; /* NULL: connections are refused */
    int reservation;                 /* the socket that reserves the port */
    struct sockaddr_in address;
    struct sockaddr_in server;
    struct terms terms[2]; /* for new spans, by the side that the bytes come from */
    LIST_HEAD(, span) spans;
};

/* Accepts connections at a free port of 127.0.0.1, for the server at another port of it. */
void relay_init(struct relay *relay, struct event_base *base, int server_port, relay_next *next);
void relay_finish(struct relay *relay);

int relay_port(const struct relay *relay);

/* Refuses connections, as a host without a server does; accepts them again. */
void relay_refuse(struct relay *relay);
void relay_accept(struct relay *relay);

/* Destroys all spans; bytes on their way are lost. */
void relay_cut(struct relay *relay);

/* Sets the terms of bytes from one side, in all spans and in new ones. */
void relay_set(struct relay *relay, enum side from, const struct terms *terms);

/* Calls a function, which may destroy the span, for each span. */
void relay_each(struct relay *relay, void (*visit)(struct span *span, const void *arg),
                const void *arg);

/* Passes the bytes that may go by the terms; destroys the span if both sides are gone. */
void span_move(struct span *span);

/* Closes one side, whose bytes are still passed, and moves the span. */
void span_end(struct span *span, enum side side);

/* Ends one side by a reset, of which the other side never learns. */
void span_half_open(struct span *span, enum side side);

/* Resets both sides, and destroys the span. */
void span_reset(struct span *span);

#endif
