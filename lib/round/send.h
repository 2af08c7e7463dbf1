/*
 * The entry to the rounds of a client: a plan goes in, votes come out. This module chooses the
 * command for a plan, and whether it is sent now or at the end of the turn.
 */
#ifndef REDLOCK_ROUND_SEND_H
#define REDLOCK_ROUND_SEND_H

#include "round/batches.h"
#include "round/flight.h"

#include <stdbool.h>
#include <stdint.h>

struct rounds {
    struct flights flights;
    struct batches batches;
};

void rounds_init(struct rounds *rounds, struct context *context, const struct members *members);
void rounds_finish(struct rounds *rounds);

/*
 * Creates a flight from a copy of `plan`; sends nothing. Returns the flight with one reference, the
 * caller's, or NULL when out of memory.
 */
static inline struct flight *round_plan(struct rounds *rounds, struct flight_listener listener,
                                        const struct flight_plan *plan) {
    return flight_create(&rounds->flights, listener, plan);
}

/*
 * Sends a flight's command. Votes may be cast inside this call: a SET and a top-up are sent now,
 * all other commands at the end of the turn.
 */
void round_send(struct rounds *rounds, struct flight *flight);

/* Plans and sends a round for whose votes no owner waits. Returns false when out of memory. */
bool round_send_unattended(struct rounds *rounds, const struct flight_plan *plan);

/*
 * Returns the script that releases a key: before `stay_until` (0: never) one that leaves the key
 * there; with a ticket, one that gives up an entry in the queue as well.
 */
enum script round_release_script(const struct kind *kind, uint64_t ticket, uint64_t stay_until,
                                 uint64_t now);

/*
 * Plans and sends the release of a token at `nodes`. A release that does not get through becomes a
 * pending release of the node, until the key has expired. Returns false when out of memory; the
 * release is then pending at all of `nodes`.
 */
bool round_send_release(struct rounds *rounds, struct flight_listener listener,
                        const struct release *release, uint32_t nodes, uint64_t now);

/* Sends the calls that were collected in this turn. */
static inline void rounds_send(struct rounds *rounds) {
    batches_send(&rounds->batches);
}

#endif
