/* The lines of actions: what the parts of their writer share. All other files include actions.h. */
#ifndef REDLOCK_SIM_ACTION_LINES_H
#define REDLOCK_SIM_ACTION_LINES_H

#include "actions.h"
#include "checker.h"
#include "parsed_call.h"

#define FEMTOS INT64_C(1000000) /* in a nanosecond */

/* A key at a server. */
struct state {
    uint32_t token; /* NO_TOKEN: free */
    int64_t expires_ms;
};

/* A key at a server, as the model has it. */
struct shadow {
    struct state seen;  /* what was seen there last */
    struct state model; /* lives on after a release that leaves the key for a while */
    unsigned foreign;   /* number of its foreign client */
};

/* A clock, with what was lost by rounding whenever it was set. */
struct exact {
    struct tempo tempo;
    int64_t carry; /* fs */
};

struct actions {
    FILE *file;
    struct network *network;
    const struct plan *plan;
    const struct event_base *bases[PROCESSES_MAX];
    uint64_t written_at; /* instant of the latest clocks written */
    struct exact servers[SERVERS_MAX], processes[PROCESSES_MAX];
    struct shadow shadows[SERVERS_MAX][KEYS_MAX];
    unsigned foreign; /* number of foreign clients' tokens */
    /* The lists of each process before its latest change, and the instant of that change. */
    struct {
        uint32_t now, next;
        uint64_t until;
    } former[PROCESSES_MAX];
};

static inline struct actions *actions_of(const struct world *world) {
    return world->actions;
}

static inline const struct checker *checker_by(const struct actions *actions) {
    return actions->network->world->checker;
}

/* Returns what a process's clock shows, in fs. */
int64_t action_process_clock(struct actions *actions, const struct event_base *process);

/* Returns an instant of a process's clock, which it reads in ns. */
int64_t action_process_instant(struct actions *actions, const struct event_base *process,
                               uint64_t own);

/* Begins a line of any kind but a world: after the clocks, if they have moved. */
void action_begin(struct actions *actions, char kind);
void action_end(struct actions *actions);

/* Writes a key and a token: its process, and a number. */
void action_write_token(struct actions *actions, unsigned key, uint32_t number);

/* Writes a server, and the instant of its clock from which a key is gone; -1 ms: never. */
void action_write_place(struct actions *actions, unsigned server, int64_t expires_ms);

#endif
