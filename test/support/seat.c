#include "seat.h"

#include <errno.h>
#include <event2/buffer.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

bool seat_init(struct seat *seat) {
    *seat = (struct seat){.inbox = evbuffer_new(), .outbox = evbuffer_new()};
    return seat->inbox != NULL && seat->outbox != NULL;
}

static void finish(struct evbuffer *buffer) {
    if (buffer != NULL) {
        evbuffer_free(buffer);
    }
}

void seat_finish(struct seat *seat) {
    finish(seat->inbox);
    finish(seat->outbox);
    *seat = (struct seat){0};
}

static void clear(struct evbuffer *buffer) {
    evbuffer_drain(buffer, evbuffer_get_length(buffer));
}

void seat_clear(struct seat *seat) {
    clear(seat->inbox);
    clear(seat->outbox);
}

ssize_t seat_serve(struct seat *seat, size_t most, seat_answer *answer, void *arg) {
    struct command command;
    ssize_t served = 0;
    bool goes_on = true;

    while (goes_on && (size_t)served < most) {
        int got = command_read(&command, seat->inbox);
        size_t size = command.size;

        if (got <= 0) {
            return got < 0 ? got : served;
        }
        goes_on = answer(&command, arg);
        command_finish(&command);
        evbuffer_drain(seat->inbox, size);
        served++;
    }
    return served;
}

void seat_say(struct seat *seat, const void *bytes, size_t length) {
    evbuffer_add(seat->outbox, bytes, length);
}

void seat_say_text(struct seat *seat, const char *text) {
    seat_say(seat, text, strlen(text));
}

void seat_say_bulk(struct seat *seat, const void *bytes, size_t length) {
    char header[32];

    snprintf(header, sizeof(header), "$%zu\r\n", length);
    seat_say_text(seat, header);
    seat_say(seat, bytes, length);
    seat_say_text(seat, "\r\n");
}

size_t seat_unsent(const struct seat *seat) {
    return evbuffer_get_length(seat->outbox);
}

ssize_t seat_receive(struct seat *seat, int socket, size_t most) {
    size_t before = evbuffer_get_length(seat->inbox);
    size_t length = before;
    int got = -1;

    /* libevent reads no more than a few thousand bytes at a time. */
    while (length < most) {
        size_t room = most - length;

        got = evbuffer_read(seat->inbox, socket, room < INT32_MAX ? (int)room : -1);
        if (got <= 0) {
            break;
        }
        length += (size_t)got;
    }
    return length > before ? (ssize_t)(length - before) : got;
}

void seat_send(struct seat *seat, int socket, size_t most) {
    size_t length = seat_unsent(seat) < most ? seat_unsent(seat) : most;
    ssize_t sent;

    if (length == 0) {
        return;
    }
    sent = send(socket, evbuffer_pullup(seat->outbox, (ev_ssize_t)length), length,
                MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent > 0) {
        evbuffer_drain(seat->outbox, (size_t)sent);
    } else if (errno != EAGAIN && errno != EWOULDBLOCK) {
        clear(seat->outbox);
    }
}
