/* Causes faults: now and then one, of the kinds that the plan allows. */
#ifndef REDLOCK_SIM_NEMESIS_H
#define REDLOCK_SIM_NEMESIS_H

#include "app.h"
#include "network.h"
#include "plan.h"

/* What has been done so that an acquisition stays open while its node forgets it: mishap.c. */
enum stage { STAGE_NONE, STAGE_CLEAR, STAGE_OPEN, STAGE_FORGOTTEN };

struct nemesis {
    struct world *world;
    struct network *network;
    struct app *apps;
    const struct plan *plan;
    struct task task;
    uint64_t set_back; /* sum of the setbacks of clocks */
    unsigned jumps_back;
    unsigned late;            /* in worlds of lost keys: the node that is topped up late ... */
    bool is_lost, is_late;    /* ... it has lost its locks; the top-up is under way ... */
    bool is_met;              /* ... and somebody has the key there */
    uint64_t keys_rest_until; /* until then, no further node loses keys */
    uint64_t heals_at;        /* end of all faults */
    uint64_t strikes_at;      /* instant of the next fault, if it is to come; past: any */
    enum stage stage;
    unsigned forgetful;   /* in worlds of open acquisitions: the node that grants and forgets */
    uint64_t heard_at;    /* instant from which on the other process is heard */
    uint64_t opened_till; /* instant at which the other nodes get the acquisition */
    uint64_t clock_rests_until[SERVERS_MAX]; /* no further jump of the server's clock until then */
};

/* Sets latencies and clock rates, and begins. */
void nemesis_init(struct nemesis *nemesis, struct network *network, struct app *apps,
                  const struct plan *plan);

/* Stops, and repairs all faults but half-open connections and servers that are to stay out. */
void nemesis_heal(struct nemesis *nemesis);

/* For the last phase: takes the jitter from all paths, and gives each process a nearest server. */
void nemesis_fall_in_step(struct nemesis *nemesis);

#endif
