/*
 * Replaces servers while clients run, as lib/doc/operating.md advises operators: all clients become
 * joint, one after the other in any order; after one max_ttl all commit; then the next change
 * begins. Some changes are abandoned. A client that starts meanwhile gets the lists that the step
 * requires.
 */
#ifndef REDLOCK_SIM_MOVER_H
#define REDLOCK_SIM_MOVER_H

#include "app.h"
#include "plan.h"

#define LISTS_MAX 8

enum mover_stage {
    STAGE_REST,   /* all clients have the list */
    STAGE_JOIN,   /* some clients are joint */
    STAGE_WAIT,   /* all clients are joint, but old locks may still exist */
    STAGE_COMMIT, /* some clients have the next list */
    STAGE_ABANDON /* some clients are still joint */
};

struct mover {
    struct world *world;
    struct app *apps;
    const struct plan *plan;
    struct task task;
    enum mover_stage stage;
    uint32_t lists[LISTS_MAX]; /* masks of servers */
    unsigned list;             /* number of the list in force */
    uint64_t wait_until;
};

/* Gives each process its first list; begins changes if the plan has them. */
void mover_init(struct mover *mover, struct world *world, struct app *apps,
                const struct plan *plan);

/* Makes no further change, in any stage. */
void mover_rest(struct mover *mover);

#endif
