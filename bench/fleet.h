/*
 * Measures what many clients cost a master: to connect, in each state, and when the master
 * restarts.
 */
#ifndef BENCH_FLEET_H
#define BENCH_FLEET_H

#include "bystander.h"

#include <stddef.h>
#include <stdint.h>

struct event_base;
struct masters;

/* The states, in the order in which they are measured. */
enum fleet_state {
    FLEET_IDLE,
    FLEET_WORKING, /* a share of the clients runs cycles */
    FLEET_HOLDING, /* each holds a lock with the watchdog */
    FLEET_WAITING, /* each waits for a key of its own, which another client holds */
    FLEET_WAITED,  /* idle again */
    FLEET_STATES
};

struct fleet_settings {
    struct masters *masters;
    const char *const *nodes; /* URIs of the masters */
    size_t clients;
    size_t working_percent;
    size_t rate; /* cycles due per second at each client that works */
    uint64_t ttl_ms;
    uint64_t node_timeout_ms; /* of the library; 0: it follows the answers of each node */
    double duration_s;        /* time measured, for each state */
};

/* What the first master has done, divided by the number of clients. */
struct fleet_cost {
    double seconds; /* time measured; not divided */
    double commands;
    double bytes_in;
    double bytes_out;
    double cpu_us; /* user and system */
};

struct fleet_result {
    struct fleet_cost connecting; /* until all clients are connected */
    struct fleet_cost states[FLEET_STATES];
    struct fleet_cost restart_waiting;         /* until all are connected again and in line */
    struct fleet_cost restart;                 /* from idle, until all are connected again */
    struct bystander_counts bystander_waiting; /* beside restart_waiting */
    struct bystander_counts bystander;         /* beside restart */
    double connections[FLEET_STATES];          /* at the first master */
    double connection_bytes[FLEET_STATES];     /* the master's memory for a connection, mean */
    uint64_t cycles;                           /* while FLEET_WORKING was measured */
    uint64_t skipped;                          /* likewise: see struct crowd_counts */
    uint64_t lost;                             /* locks held and lost */
    uint64_t errors; /* number of failed acquisitions and releases in cycles */
};

/*
 * Runs the benchmark and fills in *result. Returns -1 if there is no result, after a message on
 * stderr.
 */
int fleet_run(struct event_base *base, const struct fleet_settings *settings,
              struct fleet_result *result);

#endif
