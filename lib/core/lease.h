/*
 * A lock's life, as decisions alone: events and the time go in, an update of what to do comes out.
 *
 * A lease waits for one thing at a time: the verdict of a round, or the instant `wake_at`, which is
 * also the round's deadline. The lease never reads a clock, sends nothing and allocates nothing;
 * the lock (lib/lock/lock.c) carries out the update that each event returns.
 *
 * core/lease_state.h draws the states. core/acquire.h decides until the lock is held, core/queue.h
 * while it waits in the queue for that, core/hold.h while it is held; this module takes the events,
 * and ends a lease.
 */
#ifndef REDLOCK_CORE_LEASE_H
#define REDLOCK_CORE_LEASE_H

#include "core/lease_state.h"
#include "core/round.h"
#include "core/update.h"

#include <redlock.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * Begins a request to acquire at `members`, a mask of nodes; asks no node yet. lease_begin or
 * lease_wait follows: at once, or when the nodes are known, or when lease_may_start says so.
 * `longest` is the bound of that wait for a request that makes one try. `terms` must live as long
 * as the lease.
 */
void lease_start(struct lease *lease, const struct lease_terms *terms, uint32_t members,
                 uint64_t longest, uint64_t now);

/*
 * Returns whether the first try may begin, though not all nodes are known, and otherwise sets
 * `wake_at`: the time to wait is over, or a quorum is up (`has_quorum`) and the others had the
 * time of a round.
 */
bool lease_may_start(struct lease *lease, bool has_quorum, uint64_t now);

/* Begins the first try. */
void lease_begin(struct lease *lease, uint64_t now, struct lease_update *update);

/*
 * Begins to wait for another request of the client, which hands its lock over (core/handover.h), or
 * until lease_lead; asks no node.
 */
void lease_wait(struct lease *lease);

/* Begins to acquire, after lease_wait, unless the lease has ended since. */
void lease_lead(struct lease *lease, uint64_t now, struct lease_update *update);

/*
 * Asks other nodes from now on. Those that are new get the key of a lock that is held, so that the
 * next renewal finds it there. The round under way goes on with the nodes that it began with.
 */
void lease_move(struct lease *lease, uint32_t members, uint64_t now, struct lease_update *update);

/* Takes the verdict of a decided round, the lease's latest; `now` is a fresh clock reading. */
void lease_decided(struct lease *lease, const struct round *round, uint64_t now,
                   struct lease_update *update);

/*
 * Takes the firing of the timer, which may be early. `round` is the one that the lease waits for,
 * or NULL; one whose deadline is over is expired here.
 */
void lease_woken(struct lease *lease, struct round *round, uint64_t now,
                 struct lease_update *update);

/*
 * Takes votes that came in for a decided round, or pushes for one that is open. Votes that complete
 * the quorum of a renewal that was given up make it succeed. Nodes that turn out to lack the key,
 * while a quorum of the list has it, are topped up. After an acquisition they are only topped up
 * once it is told: a yes is as fresh as the clock reading that decided it, and sending takes time.
 */
void lease_late_votes(struct lease *lease, const struct round *round, uint64_t now,
                      struct lease_update *update);

/*
 * Renews at once a lock that could not be renewed: a node has come up. `round` is the latest one,
 * `up` the mask of the nodes that take commands.
 * Between two renewals that succeed this happens at most as often as there are nodes.
 */
void lease_renew_now(struct lease *lease, const struct round *round, uint32_t up, uint64_t now,
                     struct lease_update *update);

/*
 * Asks again for the entry of a lease that waits in the queue, `round` being its latest round: the
 * queue of a node may have begun anew.
 */
void lease_ask_again(struct lease *lease, const struct round *round, uint64_t now,
                     struct lease_update *update);

/*
 * Takes a notification that the key may have changed at the nodes of `round->changed`: all nodes
 * are asked soon (core/change.h). `round` is the latest one, or NULL.
 */
void lease_key_changed(struct lease *lease, const struct round *round, uint64_t now,
                       struct lease_update *update);

/*
 * Reads anew from its round why the last try failed: votes may have come since. To be called before
 * an event that may end the acquisition, so that its status is that of the votes at that time.
 */
void lease_reconsider(struct lease *lease, const struct round *tried);

/* Records that the round of the last update has been written: the nodes' time begins now. */
void lease_sent(struct lease *lease, struct round *round, uint64_t now);

/* Records that there was no memory to send the round of the last update. */
void lease_out_of_memory(struct lease *lease, uint64_t now, struct lease_update *update);

/*
 * Calls of the application. Each returns REDLOCK_OK, or the status with which to refuse the call,
 * and then nothing has changed. `round` is the lease's latest round, or NULL.
 */
redlock_status lease_cancel(struct lease *lease, const struct round *round, uint64_t now,
                            struct lease_update *update);
redlock_status lease_extend(struct lease *lease, uint64_t ttl, uint64_t now,
                            struct lease_update *update);
redlock_status lease_release(struct lease *lease, uint64_t now, struct lease_update *update);

/* Ends whatever is under way, and releases a held lock, because the client closes. */
void lease_close(struct lease *lease, const struct round *round, uint64_t now,
                 struct lease_update *update);

/*
 * Returns, while a try is under way, the time within which the next try reaches the nodes if this
 * one fails, at most a TTL; 0: no try follows.
 */
uint64_t lease_next_try_within(const struct lease *lease, uint64_t now);

/* Returns for how long the lock is still certain to be ours; 0: not held. */
uint64_t lease_validity(const struct lease *lease, uint64_t now);

#endif
