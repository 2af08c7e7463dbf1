/*
 * The happy path: ready_ask records a wait. While there are waits, each event after which a node's
 * votes may count makes a turn check the nodes. As soon as the votes of a quorum of each list
 * count, the turn calls back for all waits.
 *
 * Failures: if the nodes that do not refuse the client are no quorum, all waits end at once. A
 * timer is set for what happens without an event: the end of a timeout, and the end of a
 * quarantine, after which a node's grants count even before its next beat is answered.
 */
#include "ready.h"

#include "base/memory.h"
#include "base/nanos.h"
#include "io/clock.h"

struct ready_wait {
    TAILQ_ENTRY(ready_wait) link;
    redlock_ready_cb *on_ready;
    void *arg;
    uint64_t until; /* the end of the timeout; NANOS_NEVER: none */
};

static void on_wait_timer(void *arg) {
    const struct ready *ready = arg;
    ready_look(ready);
}

void ready_init(struct ready *ready, struct context *context, struct members *members) {
    ready->context = context;
    ready->members = members;
    ready->count = 0;
    TAILQ_INIT(&ready->waits);
    timer_init(&ready->timer, context->loop, on_wait_timer, ready);
}

void ready_finish(struct ready *ready) {
    timer_finish(&ready->timer);
}

redlock_status ready_ask(struct ready *ready, uint64_t timeout, redlock_ready_cb *on_ready,
                         void *arg) {
    if (ready->count == READY_WAITS_MAX) {
        return REDLOCK_EBUSY;
    }
    struct ready_wait *wait = memory_alloc(&ready->context->allocator, sizeof(*wait));
    if (wait == NULL) {
        return REDLOCK_ENOMEM;
    }
    uint64_t now = clock_now();
    wait->on_ready = on_ready;
    wait->arg = arg;
    wait->until = nanos_add(now, timeout);
    members_use(ready->members, now);
    TAILQ_INSERT_TAIL(&ready->waits, wait, link);
    ready->count++;
    context_wake(ready->context);
    return REDLOCK_OK;
}

void ready_look(const struct ready *ready) {
    if (ready_has_any(ready)) {
        context_wake(ready->context);
    }
}

/* Returns whether a wait has ended; `status` is its outcome. */
static bool has_ended(const struct ready *ready, const struct ready_wait *wait,
                      redlock_status *status) {
    uint64_t changes_at;
    if (ready->context->is_closing) {
        *status = REDLOCK_ECLOSED;
    } else if (members_count(ready->members, &changes_at)) { /* Trust: only votes that count */
        *status = REDLOCK_OK;
    } else if (members_refuse(ready->members)) {
        *status = REDLOCK_EACCESS;
    } else {
        *status = REDLOCK_ENOQUORUM;
        return wait->until <= clock_now();
    }
    return true;
}

/* Sets the timer for the waits that are left: the first timeout, or the end of a quarantine. */
static void set_wait_timer(struct ready *ready) {
    const struct ready_wait *wait;
    uint64_t at = NANOS_NEVER;
    if (!ready_has_any(ready) || ready->context->is_closing) {
        timer_clear(&ready->timer);
        return;
    }
    members_count(ready->members, &at);
    TAILQ_FOREACH(wait, &ready->waits, link) {
        at = nanos_min(at, wait->until);
    }
    timer_set(&ready->timer, at);
}

/*
 * Checks each wait anew, since a callback may change the nodes or close the client. Stops at the
 * present last wait: those that callbacks begin are left to the next turn.
 */
void ready_turn(struct ready *ready) {
    if (!ready_has_any(ready)) {
        return; /* most turns; the timer is clear */
    }
    const struct ready_wait *last = TAILQ_LAST(&ready->waits, ready_list);
    struct ready_wait *wait = TAILQ_FIRST(&ready->waits);
    bool is_last = false;
    redlock_status status;
    while (!is_last) {
        struct ready_wait *next = TAILQ_NEXT(wait, link);
        is_last = wait == last;
        if (has_ended(ready, wait, &status)) {
            const struct ready_wait ended = *wait;
            TAILQ_REMOVE(&ready->waits, wait, link);
            ready->count--;
            memory_free(&ready->context->allocator, wait);
            ended.on_ready(status, ended.arg);
        }
        wait = next;
    }
    set_wait_timer(ready);
}
