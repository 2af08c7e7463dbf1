/*
 * An application with thousands of watchdog locks in one client, each for its own key: it acquires
 * them, all at once or a few at a time, and holds them until it closes its client. Its own timer,
 * every 10 ms, shows how long the library blocks the loop. Meanwhile the application may be busy
 * inside a callback, and request many keys that others hold.
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

enum crowd_state {
    CROWD_WAITS,
    CROWD_ASKS,
    CROWD_HOLDS,
    CROWD_HAS_LOST,
    CROWD_HAS_RELEASED,
    CROWD_HAS_FAILED
};

/* The crowd's next action. */
enum crowd_wish {
    CROWD_HOLD,    /* only hold its locks */
    CROWD_BEGIN,   /* acquire its locks */
    CROWD_CONTEND, /* request at once many keys that others hold */
    CROWD_CLOSE
};

/* The latest renewal of a lock, as seen from outside the library. */
struct renewal {
    uint64_t began_at; /* in true time, at or before the start of the round; 0: no renewal yet */
    /* instant at which a quorum's grants had reached the process's sockets; 0: not yet */
    uint64_t quorum_at;
    uint32_t asked;        /* mask of the servers to which it was sent */
    uint32_t granted;      /* mask of the servers whose grants have arrived */
    unsigned unsuccessful; /* number of renewals since the latest that a quorum granted */
    uint64_t since;        /* instant at which that renewal, or the acquisition, was reported */
    struct {
        unsigned link;  /* number of the connection */
        unsigned count; /* number of unanswered renewals on the connection */
    } open[SERVERS_MAX];
};

struct crowd_lock {
    struct crowd *crowd;
    unsigned index;
    enum crowd_state state;
    uint64_t wait;     /* time by the process's clock in which its first try may begin; 0: any */
    uint64_t start_by; /* the end of that time by the world's clock; 0: none */
    redlock_lock *lock;
    struct renewal renewal;
};

/* Number of tenths of a second in which the renewals sent are counted. */
#define TENTHS 10

struct crowd {
    struct event_base process;
    struct load_world *load;
    redlock_client *client;
    struct crowd_lock *locks; /* held locks, then contended locks */
    unsigned asked, asking;   /* number of locks requested so far; number still pending */
    unsigned released;        /* number of locks that were released at once, or given up */
    unsigned held, contended; /* number of locks held now; and contended now */
    enum crowd_wish wish;
    bool is_closed;
    uint64_t closing_at;
    struct alarm tick;
    uint64_t tick_due;
    uint64_t busy_for;        /* length of its next busy spell, as soon as possible; ns */
    bool is_busy_in_callback; /* inside a callback of the library */
    bool is_probing; /* whether it is acquiring the lock in whose callback it will be busy */

    uint64_t tenth;                /* number of the current tenth */
    unsigned sent[TENTHS];         /* renewals to all servers, by tenth */
    unsigned sent_to[SERVERS_MAX]; /* renewals to each server in the current tenth */
    uint64_t steady_from;          /* instant from which renewals must be spread */
};

void crowd_init(struct crowd *crowd, struct load_world *load, unsigned index);
void crowd_finish(struct crowd *crowd);

/* Makes the crowd do `wish` when its timer is due. */
void crowd_wish(struct crowd *crowd, enum crowd_wish wish);

bool crowd_has_all(const struct crowd *crowd);

/* Returns the number of pending acquisitions. */
unsigned crowd_asks(const struct crowd *crowd);

/* Makes the application busy soon, for `ns`: in a callback of the library, or in its own timer. */
void crowd_be_busy(struct crowd *crowd, uint64_t ns, bool in_callback);
bool crowd_is_busy(const struct crowd *crowd);

bool crowd_contends(const struct crowd *crowd);

#endif
