/* Causes faults from time to time, of the kinds that the plan allows. */
#ifndef REDLOCK_SIM_NEMESIS_H
#define REDLOCK_SIM_NEMESIS_H

#include "app.h"
#include "network.h"
#include "plan.h"

/* Progress of an acquisition that stays open while its node forgets it (mishap.c). */
enum stage { STAGE_NONE, STAGE_CLEAR, STAGE_OPEN, STAGE_FORGOTTEN };

struct nemesis {
    struct world *world;
    struct network *network;
    struct app *apps;
    const struct plan *plan;
    struct task task;
    uint64_t set_back; /* sum of the setbacks of clocks */
    unsigned jumps_back;
    unsigned late; /* in worlds of lost keys: the node that is topped up late */
    /* whether that node has lost its locks; whether the top-up is in flight */
    bool is_lost, is_late;
    bool is_met;              /* whether another process has the key there */
    uint64_t keys_rest_until; /* instant until which no further node loses keys */
    uint64_t heals_at;        /* end of all faults */
    /* instant of the next deliberate fault; in the past: none, faults are random */
    uint64_t strikes_at;
    enum stage stage;
    unsigned forgetful;   /* in worlds of open acquisitions: the node that grants and forgets */
    uint64_t heard_at;    /* instant from which the other process's requests arrive */
    uint64_t opened_till; /* instant at which the acquisition reaches the other nodes */
    unsigned turn;        /* where nodes fail in turn: the next one */
    /* instant until which the server's clock does not jump again */
    uint64_t clock_rests_until[SERVERS_MAX];
};

/* Sets latencies and clock rates, and starts the faults. */
void nemesis_init(struct nemesis *nemesis, struct network *network, struct app *apps,
                  const struct plan *plan);

/* Stops, and repairs all faults but half-open connections and servers that must stay out. */
void nemesis_heal(struct nemesis *nemesis);

/*
 * Prepares the last phase: removes the jitter from all paths, and gives each process a nearest
 * server.
 */
void nemesis_fall_in_step(struct nemesis *nemesis);

#endif
