#include "fake_connection.h"

#include <errno.h>
#include <event2/buffer.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

bool fake_connection_init(struct fake_connection *connection) {
    *connection = (struct fake_connection){.inbox = evbuffer_new(), .outbox = evbuffer_new()};
    return connection->inbox != NULL && connection->outbox != NULL;
}

static void finish(struct evbuffer *buffer) {
    if (buffer != NULL) {
        evbuffer_free(buffer);
    }
}

void fake_connection_finish(struct fake_connection *connection) {
    finish(connection->inbox);
    finish(connection->outbox);
    *connection = (struct fake_connection){0};
}

static void clear(struct evbuffer *buffer) {
    evbuffer_drain(buffer, evbuffer_get_length(buffer));
}

void fake_connection_clear(struct fake_connection *connection) {
    clear(connection->inbox);
    clear(connection->outbox);
}

ssize_t fake_connection_serve(struct fake_connection *connection, size_t most,
                              fake_connection_answer *answer, void *arg) {
    struct command command;
    ssize_t served = 0;
    bool goes_on = true;

    while (goes_on && (size_t)served < most) {
        int got = command_read(&command, connection->inbox);
        size_t size = command.size;

        if (got <= 0) {
            return got < 0 ? got : served;
        }
        goes_on = answer(&command, arg);
        command_finish(&command);
        evbuffer_drain(connection->inbox, size);
        served++;
    }
    return served;
}

void fake_connection_say(struct fake_connection *connection, const void *bytes, size_t length) {
    evbuffer_add(connection->outbox, bytes, length);
}

void fake_connection_say_text(struct fake_connection *connection, const char *text) {
    fake_connection_say(connection, text, strlen(text));
}

void fake_connection_say_bulk(struct fake_connection *connection, const void *bytes,
                              size_t length) {
    char header[32];

    snprintf(header, sizeof(header), "$%zu\r\n", length);
    fake_connection_say_text(connection, header);
    fake_connection_say(connection, bytes, length);
    fake_connection_say_text(connection, "\r\n");
}

size_t fake_connection_unsent(const struct fake_connection *connection) {
    return evbuffer_get_length(connection->outbox);
}

ssize_t fake_connection_receive(struct fake_connection *connection, int socket, size_t most) {
    size_t before = evbuffer_get_length(connection->inbox);
    size_t length = before;
    int got = -1;

    /* libevent reads only a few thousand bytes at a time. */
    while (length < most) {
        size_t room = most - length;

        got = evbuffer_read(connection->inbox, socket, room < INT32_MAX ? (int)room : -1);
        if (got <= 0) {
            break;
        }
        length += (size_t)got;
    }
    return length > before ? (ssize_t)(length - before) : got;
}

void fake_connection_send(struct fake_connection *connection, int socket, size_t most) {
    size_t length =
        fake_connection_unsent(connection) < most ? fake_connection_unsent(connection) : most;
    ssize_t sent;

    if (length == 0) {
        return;
    }
    sent = send(socket, evbuffer_pullup(connection->outbox, (ev_ssize_t)length), length,
                MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent > 0) {
        evbuffer_drain(connection->outbox, (size_t)sent);
    } else if (errno != EAGAIN && errno != EWOULDBLOCK) {
        clear(connection->outbox);
    }
}
