/*
 * The logs from which actions.h makes a run of the proof's model: one for each master, written by a
 * module in the server (observer.c), and one for each client (actions_client.c). A frame is
 * appended by one write, before what it reports has an effect elsewhere. Times are CLOCK_BOOTTIME,
 * which is the clients' clock, too.
 */
#ifndef REDLOCK_CHAOS_ACTIONS_LOG_H
#define REDLOCK_CHAOS_ACTIONS_LOG_H

#include <stdint.h>
#include <string.h>
#include <unistd.h>

#define OBSERVER_LOG "REDLOCK_CHAOS_LOG" /* in a server's environment: the path of its log */
#define KEY_PREFIX "chaos:"              /* of all keys; a number follows */
#define FRAME_MAX 65536                  /* a command with the text of a script is shorter */

/* In the comments: the text of the frame. All keys are numbers, times of expiry are Unix time. */
enum frame_kind {
    FRAME_STARTED = 'L', /* "": a server takes its first command; its keys follow */
    FRAME_COMMAND = 'C', /* the command, as RESP: a server begins to execute it */
    FRAME_KEY = 'K',     /* "key value expires_ms", or "key - 0": a server's key now */
    FRAME_EXPIRED = 'X', /* "key - 0": a server's key has expired */
    FRAME_PUSH = 'P',    /* the message (wire/push.h): a server notifies a waiter */
    FRAME_SEND = 's',    /* "key token T|R ttl_ms node": a client sends a try or a renewal */
    FRAME_PUSHED = 'r',  /* "key token node expires_ms": a client reads a push */
    FRAME_GIVE_UP = 'e', /* "key token": a client gives the token up */
    FRAME_PART = 'l',    /* "key token": a lock is about to be released */
    FRAME_HOLD = 'h',    /* "key token until_ns votes": a lock is valid until then */
    FRAME_CLOCK = 't'    /* "unix_ns": the servers' clock */
};

struct frame {
    uint64_t at_ns;
    uint32_t kind;
    uint32_t length; /* of the text that follows */
};

/* Appends a frame. Returns 0; nonzero with errno set. */
static inline int frame_write(int log, uint64_t at_ns, enum frame_kind kind, const char *text,
                              size_t length) {
    static char bytes[sizeof(struct frame) + FRAME_MAX];
    const struct frame frame = {at_ns, kind, (uint32_t)length};

    memcpy(bytes, &frame, sizeof(frame));
    memcpy(bytes + sizeof(frame), text, length);
    return write(log, bytes, sizeof(frame) + length) == (ssize_t)(sizeof(frame) + length) ? 0 : -1;
}

#endif
