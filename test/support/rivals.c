#include "rivals.h"

#include <stdlib.h>

#define MOST 64

struct rival {
    struct rivals *all;
    redlock_client *client;
    redlock_request request;
    unsigned number, turn;
    redlock_lock *lock; /* NULL: not held */
};

struct rivals {
    struct fixture *f;
    struct rivals_options options;
    struct rival each[MOST];
    unsigned count, done;
    unsigned intrusions;
    uint64_t fence; /* the newest */
};

static void begin_turn(struct rival *rival);

static void on_released(struct call *call, void *arg) {
    (void)call; /* a lock may be lost while the loop cannot run */
    begin_turn(arg);
}

static void leave(struct rival *rival) {
    struct call *call = begin_release(rival->all->f, rival->lock);

    rival->lock = NULL;
    call->then = on_released;
    call->then_arg = rival;
}

static void on_stayed(struct call *call, void *arg) {
    (void)call;
    leave(arg);
}

static void record_intrusions(struct rivals *all, const redlock_lock *lock) {
    for (unsigned i = 0; i < all->count; i++) {
        const struct rival *other = &all->each[i];

        all->intrusions += other->lock != NULL && redlock_validity_ms(other->lock) > 0;
    }
    if (all->options.request.fenced) {
        all->intrusions += redlock_fence(lock) <= all->fence;
        all->fence = redlock_fence(lock);
    }
}

static void on_acquired(struct call *call, void *arg) {
    struct rival *rival = arg;
    struct rivals *all = rival->all;

    assert_ended(call, REDLOCK_OK);
    record_intrusions(all, call->lock);
    rival->lock = call->lock;
    if (all->options.on_in != NULL) {
        all->options.on_in(rival->number, rival->turn, all->options.arg);
    }
    if (all->options.hastes) {
        leave(rival);
        return;
    }
    struct call *stay = begin_extend(all->f, call->lock, 0);
    stay->then = on_stayed;
    stay->then_arg = rival;
}

static void begin_turn(struct rival *rival) {
    struct rivals *all = rival->all;

    bool is_over = all->options.is_over != NULL && all->options.is_over(all->options.arg);

    if (is_over || rival->turn == all->options.turns) {
        all->done++;
        return;
    }
    rival->turn++;
    struct call *call = begin_acquire(all->f, rival->client, &rival->request);
    call->then = on_acquired;
    call->then_arg = rival;
}

struct rivals *rivals_create(struct fixture *f, const struct rivals_options *options) {
    struct rivals *rivals = calloc(1, sizeof(*rivals));

    assert_non_null(rivals);
    rivals->f = f;
    rivals->options = *options;
    at_finish(f, free, rivals);
    return rivals;
}

void rivals_begin(struct rivals *rivals, redlock_client *client) {
    rivals_begin_for(rivals, client, &rivals->options.request);
}

void rivals_begin_for(struct rivals *rivals, redlock_client *client,
                      const redlock_request *request) {
    struct rival *rival = &rivals->each[rivals->count];

    assert_int_in_range(rivals->count, 0, MOST - 1);
    *rival = (struct rival){
        .all = rivals, .client = client, .request = *request, .number = rivals->count++};
    begin_turn(rival);
}

bool rivals_are_done(void *rivals) {
    const struct rivals *all = rivals;

    return all->count > 0 && all->done == all->count;
}

void wait_rivals(struct fixture *f, struct rivals *rivals) {
    run_until(f, rivals_are_done, rivals, "all rivals have had their turns");
}

unsigned rivals_intrusions(const struct rivals *rivals) {
    return rivals->intrusions;
}
