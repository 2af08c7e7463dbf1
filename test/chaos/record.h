/*
 * The records that a client logs: of fixed size, in a file of its own, each appended by one write,
 * so that they survive its SIGKILL. Times are CLOCK_BOOTTIME, which all processes share.
 *
 * A hold is valid from the moment at which the client was notified until the end that the library
 * reported (`until_ns`), or until the client released the lock or was notified of its loss, if that
 * came first.
 */
#ifndef REDLOCK_CHAOS_RECORD_H
#define REDLOCK_CHAOS_RECORD_H

#include <stdint.h>

enum record_kind {
    RECORD_FAILED = 1, /* an acquisition failed, with its status */
    RECORD_ACQUIRED,   /* with until_ns */
    RECORD_EXTENDED,   /* an extension's callback came, with its status */
    RECORD_VALID,      /* a renewal was noticed, with the new until_ns */
    RECORD_READ,       /* the set was read: `element` is its newest */
    RECORD_ADDING,     /* right before the set is written with this hold as its newest element */
    RECORD_ADDED,      /* right after the set was written */
    RECORD_LETTING_GO, /* right before the release */
    RECORD_RELEASED,   /* the release's callback came, with its status */
    RECORD_LOST        /* on_lost, with its status */
};

struct record {
    uint64_t at_ns;
    uint64_t until_ns;
    uint64_t hold;    /* unique in the run, never 0; also the element that it adds to the set */
    uint64_t element; /* 0: the empty set */
    uint32_t key;
    int16_t kind;
    int16_t status;
};

#endif
