#include "stream.h"

#include "answer.h"
#include "fields.h"
#include "gateway.h"
#include "status.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <stdlib.h>

/* Maximum number of bytes not yet sent to a page. */
#define BACKLOG_MAX (1 << 20)

static void drop(struct stream *stream) {
    TAILQ_REMOVE(&stream->streams->list, stream, link);
    stream->streams->count--;
    free(stream);
}

static void on_broken(void *arg) {
    drop(arg);
}

/* Writes the state as one event. Returns NULL when out of memory. */
static struct evbuffer *write_event(struct gateway *gateway) {
    json_t *status = status_json(gateway);
    char *text = status == NULL ? NULL : json_dumps(status, JSON_COMPACT);
    struct evbuffer *buffer = text == NULL ? NULL : evbuffer_new();

    if (buffer != NULL && evbuffer_add_printf(buffer, "data: %s\n\n", text) < 0) {
        evbuffer_free(buffer);
        buffer = NULL;
    }
    free(text);
    json_decref(status);
    return buffer;
}

/* Sends a copy of the event; closes a page that does not read. */
static void report(struct stream *stream, struct evbuffer *event) {
    struct connection *connection = stream->connection;
    struct evbuffer *copy;

    if (evbuffer_get_length(bufferevent_get_output(connection->bufferevent)) > BACKLOG_MAX) {
        connection_drop(connection);
        return;
    }
    copy = evbuffer_new();
    if (copy != NULL && evbuffer_add_buffer_reference(copy, event) == 0) {
        evhttp_send_reply_chunk(connection->request, copy);
    }
    if (copy != NULL) {
        evbuffer_free(copy);
    }
}

static void on_tick(evutil_socket_t fd, short what, void *arg) {
    struct gateway *gateway = arg;
    struct stream *stream = TAILQ_FIRST(&gateway->streams.list);
    struct evbuffer *event = stream == NULL ? NULL : write_event(gateway);

    (void)fd;
    (void)what;
    if (gateway->client != NULL) {
        window_turn(&gateway->window, gateway->client, connections_now_ms());
    }
    while (event != NULL && stream != NULL) {
        struct stream *next = TAILQ_NEXT(stream, link);

        report(stream, event);
        stream = next;
    }
    if (event != NULL) {
        evbuffer_free(event);
    }
}

bool streams_init(struct streams *streams, struct gateway *gateway) {
    const struct timeval second = {.tv_sec = 1};

    TAILQ_INIT(&streams->list);
    streams->tick = event_new(gateway->base, -1, EV_PERSIST, on_tick, gateway);
    return streams->tick != NULL && event_add(streams->tick, &second) == 0;
}

void streams_close(struct streams *streams) {
    struct stream *stream;

    while ((stream = TAILQ_FIRST(&streams->list)) != NULL) {
        struct connection *connection = stream->connection;

        connection_forget(connection);
        drop(stream);
        connection_answer(connection);
        evhttp_send_reply_end(connection->request);
    }
}

void streams_finish(struct streams *streams) {
    if (streams->tick != NULL) {
        event_free(streams->tick);
    }
}

void events_serve(const struct exchange *exchange) {
    struct streams *streams = &exchange->gateway->streams;
    struct connection *connection = exchange->connection;
    struct stream *stream;
    struct evbuffer *event;

    if (!fields_none(exchange)) {
        return;
    }
    if (evhttp_request_get_command(connection->request) == EVHTTP_REQ_HEAD) {
        answer_bytes(connection, "text/event-stream", NULL);
        return;
    }
    if (streams->count == STREAMS_MAX) {
        answer_problem(connection, PROBLEM_FULL, NULL, "%d pages are open.", STREAMS_MAX);
        return;
    }
    event = write_event(exchange->gateway);
    stream = calloc(1, sizeof(*stream));
    if (event == NULL || stream == NULL ||
        !connection_watch(connection, true, on_broken, NULL, stream)) {
        free(stream);
        answer_problem(connection, PROBLEM_NO_MEMORY, NULL, "Out of memory.");
    } else {
        *stream = (struct stream){.streams = streams, .connection = connection};
        TAILQ_INSERT_TAIL(&streams->list, stream, link);
        streams->count++;
        answer_begin(connection, "text/event-stream");
        report(stream, event);
    }
    if (event != NULL) {
        evbuffer_free(event);
    }
}
