#include "mover.h"

#include <inttypes.h>

static uint64_t draw(struct mover *mover, uint64_t below) {
    return rng_below(&mover->world->rng, below);
}

static bool chance(struct mover *mover, unsigned per_mille) {
    return rng_chance(&mover->world->rng, per_mille);
}

/* ---- lists ---- */

static uint32_t any_list(struct mover *mover) {
    unsigned servers = mover->plan->nodes;
    unsigned size = 1 + (unsigned)draw(mover, servers < 5 ? servers : 5);
    uint32_t list = 0;
    while ((unsigned)__builtin_popcount(list) < size) {
        list |= UINT32_C(1) << draw(mover, servers);
    }
    return list;
}

/* Replaces one server by another, as most changes do. */
static uint32_t replace_one(struct mover *mover, uint32_t list) {
    unsigned servers = mover->plan->nodes;
    uint32_t all = (UINT32_C(1) << servers) - 1;
    if (list == all) {
        return any_list(mover);
    }
    uint32_t comes, goes;
    do {
        comes = UINT32_C(1) << draw(mover, servers);
    } while (list & comes);
    do {
        goes = UINT32_C(1) << draw(mover, servers);
    } while (!(list & goes));
    return (list & ~goes) | comes;
}

/* ---- stages ---- */

static uint32_t next_of(const struct mover *mover) {
    return mover->lists[mover->list + 1];
}

/* Sets the lists of a client that starts in this stage: those of one of the two adjacent steps. */
static void report_newborn(struct mover *mover, struct app *app) {
    uint32_t list = mover->lists[mover->list];
    bool early = mover->stage != STAGE_REST && chance(mover, 500);
    switch (mover->stage) {
    case STAGE_JOIN:
        app_is_born_with(app, list, early ? next_of(mover) : 0);
        break;
    case STAGE_WAIT:
        app_is_born_with(app, list, next_of(mover));
        break;
    case STAGE_COMMIT:
        app_is_born_with(app, early ? next_of(mover) : list, early ? 0 : next_of(mover));
        break;
    default:
        app_is_born_with(app, list, 0);
        break;
    }
}

static void enter(struct mover *mover, enum mover_stage stage) {
    static const char *const names[] = {"rest", "join", "wait", "commit", "abandon"};
    TRACE(mover->world, "mover: list %u, %s", mover->list, names[stage]);
    mover->stage = stage;
    for (unsigned i = 0; i < mover->plan->processes; i++) {
        app_forget_step(&mover->apps[i]);
        report_newborn(mover, &mover->apps[i]);
    }
}

static bool all_are(const struct mover *mover, bool joint) {
    for (unsigned i = 0; i < mover->plan->processes; i++) {
        if (app_has_client(&mover->apps[i]) && app_is_joint(&mover->apps[i]) != joint) {
            return false;
        }
    }
    return true;
}

/* Makes one of the applications that have yet to take the step take it. */
static void urge(struct mover *mover, enum app_step step) {
    struct app *app = &mover->apps[draw(mover, mover->plan->processes)];
    if (app_has_client(app) && app_is_joint(app) != (step == STEP_CHANGE)) {
        app_take_step(app, step, next_of(mover));
    }
}

static void join(struct mover *mover) {
    if (!all_are(mover, true)) {
        urge(mover, STEP_CHANGE);
        return;
    }
    mover->wait_until = mover->world->now + mover->plan->options.max_ttl_ms * MS;
    enter(mover, STAGE_WAIT);
}

static void commit(struct mover *mover) {
    if (!all_are(mover, false)) {
        urge(mover, STEP_COMMIT);
        return;
    }
    mover->list++;
    enter(mover, STAGE_REST);
}

static void abandon(struct mover *mover) {
    if (!all_are(mover, false)) {
        urge(mover, STEP_ABANDON);
        return;
    }
    enter(mover, STAGE_REST);
}

static void go_on(struct mover *mover) {
    bool gives_up = chance(mover, 20);
    switch (mover->stage) {
    case STAGE_REST:
        if (mover->list + 1 < LISTS_MAX && chance(mover, 300)) {
            enter(mover, STAGE_JOIN);
        }
        break;
    case STAGE_JOIN:
        if (gives_up) {
            enter(mover, STAGE_ABANDON);
        } else {
            join(mover);
        }
        break;
    case STAGE_WAIT:
        if (gives_up) {
            enter(mover, STAGE_ABANDON);
        } else if (mover->world->now >= mover->wait_until) {
            enter(mover, STAGE_COMMIT);
        }
        break;
    case STAGE_COMMIT:
        commit(mover);
        break;
    case STAGE_ABANDON:
        abandon(mover);
        break;
    }
}

static void on_task(void *owner) {
    struct mover *mover = owner;
    go_on(mover);
    task_schedule(mover->world, &mover->task, mover->world->now + draw(mover, 100 * MS) + 1);
}

/* ---- the beginning and the end ---- */

void mover_init(struct mover *mover, struct world *world, struct app *apps,
                const struct plan *plan) {
    *mover = (struct mover){.world = world, .apps = apps, .plan = plan};
    task_init(&mover->task, on_task, mover);
    mover->lists[0] = (UINT32_C(1) << plan->nodes) - 1;
    if (plan->has_changes) {
        mover->lists[0] = any_list(mover);
        for (unsigned i = 1; i < LISTS_MAX; i++) {
            uint32_t list = mover->lists[i - 1];
            mover->lists[i] = chance(mover, 500) ? replace_one(mover, list) : any_list(mover);
        }
        task_schedule(world, &mover->task, world->now + draw(mover, 500 * MS) + 1);
    }
    enter(mover, STAGE_REST);
}

void mover_rest(struct mover *mover) {
    task_cancel(mover->world, &mover->task);
}
