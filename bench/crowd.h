/*
 * Many clients in processes of their own, all connected to all masters, which do together what the
 * benchmark requests: nothing, cycles, hold a lock each, or wait for a key that is held.
 *
 * A process has as many clients as its limit of descriptors permits: most often, one process has
 * all.
 */
#ifndef BENCH_CROWD_H
#define BENCH_CROWD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct crowd;
struct event_base;
struct masters;

/* What all clients do. */
enum crowd_state {
    CROWD_IDLE,    /* connected, without locks and requests; also the first state */
    CROWD_WORKING, /* some run cycles at a rate, each with a key of its own */
    CROWD_HOLDING, /* each holds a lock with the watchdog, with a key of its own */
    CROWD_CUT,     /* idle, and the first master, which the benchmark has killed, is gone */
    CROWD_GUARDED, /* idle, while a further client holds the keys for which they will wait */
    CROWD_WAITING, /* after CROWD_GUARDED: each is in a queue */
};

struct crowd_settings {
    struct masters *masters;
    const char *const *nodes; /* URIs of the masters */
    size_t clients;
    bool same_key;   /* whether all wait for one key; otherwise, each for a key of its own */
    uint64_t ttl_ms; /* in CROWD_WORKING and CROWD_HOLDING */
    uint64_t node_timeout_ms; /* of the library; 0: it follows the answers of each node */
    size_t working_percent;   /* share of the clients that work in CROWD_WORKING */
    size_t rate;              /* cycles due per second at each of them */
};

/* What the clients have done so far. */
struct crowd_counts {
    uint64_t cycles;
    uint64_t skipped; /* cycles that were due before the client's last one had ended */
    uint64_t lost;    /* locks held and lost */
    uint64_t errors;  /* failed acquisitions and releases in cycles */
};

/*
 * Raises the limit of descriptors as far as permitted, for this process and the masters that it
 * starts later. Returns false, after a message on stderr that names `option`, if `clients` clients
 * are too many for one master.
 */
bool crowd_raise_limit(const char *option, size_t clients);

/* Returns how many clients a master must admit, for this number of clients in a crowd. */
size_t crowd_connections(size_t clients);

/*
 * Starts the processes, and waits until all clients are connected. Returns NULL on failure, after a
 * message on stderr.
 */
struct crowd *crowd_start(struct event_base *base, const struct crowd_settings *settings);

/*
 * Waits until all clients are in this state. CROWD_IDLE lies between any two others, except from
 * CROWD_GUARDED to CROWD_WAITING. Returns false on failure, after a message on stderr.
 */
bool crowd_enter(struct crowd *crowd, enum crowd_state state);

/* Lets the clients go on for a time. Returns false on failure, after a message on stderr. */
bool crowd_rest(struct crowd *crowd, double seconds);

struct crowd_counts crowd_counts(const struct crowd *crowd);

/* Closes all clients, and waits for their end. Returns false on failure, after a message. */
bool crowd_finish(struct crowd *crowd);

#endif
