/* GET /v1/events: the state of the gateway once a second, as server-sent events. */
#ifndef STREAM_H
#define STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/queue.h>

struct connection;
struct event;
struct exchange;
struct gateway;

/* Maximum number of pages at the same time. */
#define STREAMS_MAX 32

struct stream {
    TAILQ_ENTRY(stream) link;
    struct streams *streams;
    struct connection *connection;
};

struct streams {
    TAILQ_HEAD(, stream) list;
    size_t count;
    struct event *tick;
};

/* Initializes the streams. Returns false if the timer cannot be created. */
bool streams_init(struct streams *streams, struct gateway *gateway);

/* Ends all streams. */
void streams_close(struct streams *streams);

/* Frees the timer. */
void streams_finish(struct streams *streams);

/* Begins a stream; its first event is sent at once. */
void events_serve(const struct exchange *exchange);

#endif
