/*
 * An application with thousands of watchdog locks, each of a key of its own, in one client: it
 * acquires them, at once or a few at a time, and holds them until it closes its client. A timer
 * of its own, every 10 ms, shows for how long the library keeps the loop. In between it may be
 * busy inside a callback, and ask for many keys that others hold.
 */
#ifndef REDLOCK_SIM_CROWD_H
#define REDLOCK_SIM_CROWD_H

#include "network.h"
#include "process.h"

#include <redlock.h>
#include <stdbool.h>
#include <stdint.h>

struct load_world;
struct crowd;

enum crowd_state { CROWD_WAITS, CROWD_ASKS, CROWD_HOLDS, CROWD_HAS_LOST, CROWD_HAS_FAILED };

/* What it is to do next. */
enum crowd_wish {
    CROWD_HOLD,    /* nothing but hold its locks */
    CROWD_BEGIN,   /* acquire them */
    CROWD_CONTEND, /* ask at once for many keys that others hold */
    CROWD_CLOSE
};

/* The latest renewal of a lock, as seen from outside the library. */
struct renewal {
    uint64_t began_at;     /* not later than its round did, in true time; 0: there was none */
    uint64_t quorum_at;    /* a quorum's grants had arrived at the process's sockets; 0: not yet */
    uint32_t asked;        /* mask: of the servers that it was sent to */
    uint32_t granted;      /* mask: whose grants have arrived */
    unsigned unsuccessful; /* renewals since the latest that a quorum granted */
    uint64_t since;        /* that one, or the acquisition, was told then */
    struct {
        unsigned link;  /* the number of the connection */
        unsigned count; /* renewals that were sent over it, and are not answered */
    } open[SERVERS_MAX];
};

struct crowd_lock {
    struct crowd *crowd;
    unsigned index;
    enum crowd_state state;
    redlock_lock *lock;
    struct renewal renewal;
};

/* Renewals that were sent in the latest tenths of a second. */
#define TENTHS 10

struct crowd {
    struct event_base process;
    struct load_world *load;
    redlock_client *client;
    struct crowd_lock *locks; /* those that are held, and behind them those that are contended */
    unsigned asked, asking;   /* asked for so far, and not acquired yet */
    unsigned held, contended; /* held now; contended for now */
    enum crowd_wish wish;
    bool is_closed;
    uint64_t closing_at;
    struct alarm tick;
    uint64_t tick_due;
    uint64_t busy_for;        /* it will be, as soon as it can; ns */
    bool is_busy_in_callback; /* inside a callback of the library */
    bool is_probing;          /* it acquires a lock, in whose callback it will be busy */

    uint64_t tenth;                /* the number of the current one */
    unsigned sent[TENTHS];         /* to all servers */
    unsigned sent_to[SERVERS_MAX]; /* in the current one */
    uint64_t settled_at;           /* renewals are spread from then on */
};

void crowd_init(struct crowd *crowd, struct load_world *load, unsigned index);
void crowd_finish(struct crowd *crowd);

/* Has it do that when its timer is due. */
void crowd_wish(struct crowd *crowd, enum crowd_wish wish);

bool crowd_has_all(const struct crowd *crowd);

/* Acquisitions that are under way. */
unsigned crowd_asks(const struct crowd *crowd);

/* Is busy for so long, soon: in a callback of the library, or in its own timer. */
void crowd_be_busy(struct crowd *crowd, uint64_t ns, bool in_callback);
bool crowd_is_busy(const struct crowd *crowd);

bool crowd_contends(const struct crowd *crowd);

#endif
