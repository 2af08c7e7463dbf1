/* Messages between the two processes of `redlock run`: the front and the keeper. */
#ifndef TALK_H
#define TALK_H

#include <stdbool.h>
#include <stdint.h>

enum talk_kind {
    /* from the keeper */
    TALK_STARTED,   /* the child waits to become the command; `number` is its process group */
    TALK_DEADLINE,  /* the deadline has changed */
    TALK_STOPPED,   /* the child was stopped, by the signal `number` */
    TALK_SIGNALLED, /* the command was ended by the signal `number`, without loss of the lock */
    TALK_ENDED,     /* no process and no lock is left; `number` is the exit code */
    /* from the front */
    TALK_GO,    /* the child has the terminal, if there is one */
    TALK_SIGNAL /* send the child the signal `number` */
};

struct talk {
    enum talk_kind kind;
    int number;
};

/*
 * Instant of CLOCK_BOOTTIME at which all processes must have ended; 0: never. It is in shared
 * memory, because messages to a stopped front get stale, and may not fit.
 */
typedef _Atomic uint64_t talk_deadline;

/* Creates a deadline in shared memory: never. Returns NULL on failure, with errno set. */
talk_deadline *talk_share_deadline(void);

/* Creates two connected sockets. Returns 0, or -1 with errno set. */
int talk_open(int sockets[2]);

/* Sends a message; the other end may be gone. */
void talk_send(int socket, enum talk_kind kind, int number);

/* Receives a message and returns 1. Returns 0: none yet; -1: the other end is gone. */
int talk_receive(int socket, struct talk *talk);

/* Return CLOCK_BOOTTIME, which does not stop while the machine is suspended, and the time since
   1970, in ms. */
uint64_t talk_now_ms(void);
uint64_t talk_wall_ms(void);

#endif
