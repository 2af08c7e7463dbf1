/*
 * The happy path: fanout_choose picks a quorum of nodes that are up and trusted, by the key; they
 * grant, and no other node is asked.
 *
 * Failures: where so few nodes are up and trusted that they are no quorum, all are asked. A vote
 * after which those asked cannot complete the quorum makes the others due (flight.c); so does the
 * timer, when an answer is late. They are asked at the end of the turn (send.c). Without memory for
 * the timer it looks in each turn of the loop.
 */
#include "round/fanout.h"

#include "base/nanos.h"
#include "io/clock.h"
#include "node/members.h"
#include "node/node.h"

/* An answer is not late before that: a loop has more to do than to read it. */
#define HEDGE_LEAST NANOS_PER_MS

/* Returns whether a node can be expected to grant. */
static bool is_fit(const struct node *node) {
    return node_is_up(node) && guard_look(&node->guard).fault == TRUST_NO_FAULT;
}

/* Returns a mask of those nodes that can be expected to grant. */
static uint32_t fit_of(const struct members *members, uint32_t nodes) {
    uint32_t fit = 0;
    struct node *node;
    while ((node = members_take(members, &nodes)) != NULL) {
        fit |= is_fit(node) ? node_bit(node) : 0;
    }
    return fit;
}

/* Inserts a time into a sorted list of `count`. */
static void insert(uint64_t *times, unsigned count, uint64_t time) {
    for (; count > 0 && times[count - 1] > time; count--) {
        times[count] = times[count - 1];
    }
    times[count] = time;
}

/*
 * Returns twice the time within which the fastest quorum of the nodes usually answers, but no more
 * than half of the time that the round waits: the others need the rest. So who asks all nodes would
 * not be much sooner, and a node that is always slow is not waited for.
 */
static uint64_t hedging_delay(const struct fanout *fanout, uint32_t nodes) {
    const struct context *context = fanout->flights->context;
    uint64_t most = nanos_from_ms(context->options.node_timeout_ms) / 2;
    uint64_t times[REDLOCK_MAX_NODES];
    unsigned count = 0;
    const struct node *node;
    while ((node = members_take(fanout->flights->members, &nodes)) != NULL) {
        uint64_t bound = latency_bound(&node->uplink.traffic.latency);
        insert(times, count++, bound != 0 ? 2 * bound : most);
    }
    return nanos_min(nanos_max(times[count / 2], HEDGE_LEAST), most);
}

/* ---- late answers ---- */

static void arm(struct fanout *fanout, uint64_t at) {
    if (!timer_set(&fanout->timer, at)) {
        timer_soon(&fanout->timer);
    }
}

static void hedge(struct fanout *fanout, struct flight *flight, uint64_t delay) {
    flight->hedge_at = nanos_add(clock_now(), delay);
    TAILQ_INSERT_TAIL(&fanout->flights->hedged, flight, lean_link);
    if (flight->hedge_at < fanout->timer.at) {
        arm(fanout, flight->hedge_at);
    }
}

/* Those behind the first that has time have time, too. */
static void on_time(void *arg) {
    struct fanout *fanout = arg;
    uint64_t now = clock_now();
    struct flight *flight;
    while ((flight = TAILQ_FIRST(&fanout->flights->hedged)) != NULL) {
        if (!flight_has_others(flight)) {
            flight_unhedge(flight);
        } else if (flight->hedge_at <= now) {
            flight_want_others(flight);
        } else {
            arm(fanout, flight->hedge_at);
            return;
        }
    }
}

struct flight *fanout_next(struct fanout *fanout) {
    struct flight *flight;
    while ((flight = TAILQ_FIRST(&fanout->flights->due)) != NULL) {
        flight_unhedge(flight);
        if (flight_has_others(flight)) {
            return flight;
        }
    }
    return NULL;
}

bool fanout_init(struct fanout *fanout, struct flights *flights) {
    const struct context *context = flights->context;
    *fanout = (struct fanout){.flights = flights};
    if (context->options.fanout == REDLOCK_FANOUT_ALL) {
        return true;
    }
    return timer_init(&fanout->timer, &context->loop, on_time, fanout);
}

void fanout_finish(struct fanout *fanout) {
    timer_finish(&fanout->timer);
}

uint32_t fanout_choose(struct fanout *fanout, struct flight *flight, uint32_t nodes) {
    const struct members *members = fanout->flights->members;
    uint32_t fit = fit_of(members, nodes);
    uint32_t chosen = members_quorum(members, fit, flight->plan.key->hash);
    if (chosen == 0) {
        return nodes;
    }
    round_leave_out(&flight->round, nodes & ~chosen);
    if (flight->round.unasked != 0) {
        hedge(fanout, flight, hedging_delay(fanout, fit));
    }
    return chosen;
}
