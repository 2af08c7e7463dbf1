/*
 * A lock's life, as decisions alone: events and the time go in, updates come out.
 *
 * A lease waits for one thing at a time: the verdict of a round, or the instant `wake_at`, which is
 * also the round's deadline. The lease never reads a clock, sends nothing and allocates nothing;
 * the lock (lib/lock/lock.c) carries out the update that each event returns.
 *
 * core/lease_state.h draws the states. core/acquire.h decides until the lock is held, core/queue.h
 * while it waits in the queue, core/hold.h while it is held. This module dispatches the events, and
 * ends a lease.
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
 * Begins a request to acquire at `members`, a mask of nodes; asks no node yet. The caller goes on
 * with lease_begin or lease_wait: at once, when the nodes are known, or when lease_may_start
 * returns true. `longest` bounds this wait for a request that makes one try. `terms` must outlive
 * the lease.
 */
void lease_start(struct lease *lease, const struct lease_terms *terms, uint32_t members,
                 uint64_t longest, uint64_t now);

/*
 * Returns whether the first try may begin before all nodes are known: the time to wait is over, or
 * a quorum is up (`has_quorum`) and the others had the time of a round. Otherwise sets `wake_at`.
 */
bool lease_may_start(struct lease *lease, bool has_quorum, uint64_t now);

/* Begins the first try. */
void lease_begin(struct lease *lease, uint64_t now, struct lease_update *update);

/*
 * Begins to wait until another request of the client hands its lock over (core/handover.h), or
 * until lease_lead. Asks no node.
 */
void lease_wait(struct lease *lease);

/* Begins to acquire, after lease_wait, unless the lease has ended since. */
void lease_lead(struct lease *lease, uint64_t now, struct lease_update *update);

/*
 * Asks `members` instead from now on. New nodes get the key of a held lock, so that the next
 * renewal finds it there. The round under way continues with the nodes that it began with.
 */
void lease_move(struct lease *lease, uint32_t members, uint64_t now, struct lease_update *update);

/* Handles the verdict of a decided round, the lease's latest; `now` is a fresh clock reading. */
void lease_decided(struct lease *lease, const struct round *round, uint64_t now,
                   struct lease_update *update);

/* Has a lease in STARTING, whose nodes are known, wait until they have room. */
void lease_wait_for_room(struct lease *lease);

/* Returns whether the time of a request in STARTING, or of a waiting one, is over. */
bool lease_is_at_end(const struct lease *lease, uint64_t now);

/*
 * Ends a request without a try because its time is over: in STARTING, because the nodes had no
 * room, or after lease_wait.
 */
void lease_end_untried(struct lease *lease, redlock_status why, uint64_t now,
                       struct lease_update *update);

/*
 * Handles the firing of the timer, which may be early. `round` is the round that the lease waits
 * for, or NULL; `silence` is that of an open round, whose late members are expired here.
 */
void lease_woken(struct lease *lease, struct round *round, const struct round_silence *silence,
                 uint64_t now, struct lease_update *update);

/*
 * Returns whether a vote, or a push, that has not decided the latest round calls for
 * lease_late_votes.
 */
bool lease_heeds(const struct round *round, redlock_vote vote);

/*
 * Handles votes that arrived for a decided round, or pushes for an open one. Votes that complete
 * the quorum of a renewal that was given up make it succeed. Nodes that turn out to lack the key
 * are topped up while a quorum of the list has it. After an acquisition that waits until success is
 * reported: a yes is as fresh as the clock reading that decided it, and sending takes time.
 */
void lease_late_votes(struct lease *lease, const struct round *round, uint64_t now,
                      struct lease_update *update);

/*
 * Renews at once a lock that could not be renewed, because a node has come up. `round` is the
 * latest one, `up` the mask of the nodes that take commands. Between two renewals that succeed,
 * this happens at most as often as there are nodes.
 */
void lease_renew_now(struct lease *lease, const struct round *round, uint32_t up, uint64_t now,
                     struct lease_update *update);

/*
 * Asks again for the entry of a lease that waits in the queue, because a node may have started a
 * new queue. `round` is the lease's latest round.
 */
void lease_ask_again(struct lease *lease, const struct round *round, uint64_t now,
                     struct lease_update *update);

/*
 * Handles a notification that the key may have changed at the nodes of `round->changed`: all nodes
 * are asked soon (core/change.h). `round` is the latest one, or NULL.
 */
void lease_key_changed(struct lease *lease, const struct round *round, uint64_t now,
                       struct lease_update *update);

/*
 * Updates, from its round, the reason why the last try failed: votes may have arrived since. Call
 * it before an event that may end the acquisition, so that the status is that of the latest votes.
 */
void lease_reconsider(struct lease *lease, const struct round *tried);

/* Records that the round of the last update has been written: the nodes' time begins now. */
void lease_sent(struct lease *lease, struct round *round, uint64_t now);

/*
 * Records that the top-up of the last update was not sent to `nodes`, a mask: they have no room for
 * it, or other top-ups wait for them. They are nodes of lease_awaits_room until lease_has_room, or
 * until the verdict of a renewal that they have granted.
 */
void lease_await_room(struct lease *lease, uint32_t nodes);

/* Tops up those nodes of lease_awaits_room that `nodes`, a mask, names: they have room now. */
void lease_has_room(struct lease *lease, uint32_t nodes, uint64_t now, struct lease_update *update);

/* Records that there was no memory to send the round of the last update. */
void lease_out_of_memory(struct lease *lease, uint64_t now, struct lease_update *update);

/*
 * Calls of the application. Each returns REDLOCK_OK, or the status with which to refuse the call; a
 * refused call changes nothing. `round` is the lease's latest round, or NULL.
 */
redlock_status lease_cancel(struct lease *lease, struct round *round, uint64_t now,
                            struct lease_update *update);
redlock_status lease_extend(struct lease *lease, struct round *round, uint64_t ttl, uint64_t now,
                            struct lease_update *update);
redlock_status lease_release(struct lease *lease, uint64_t now, struct lease_update *update);

/* Ends whatever is under way, and releases a held lock, because the client is closing. */
void lease_close(struct lease *lease, struct round *round, uint64_t now,
                 struct lease_update *update);

/*
 * Returns, while a try is under way, the time within which the next try reaches the nodes if this
 * one fails, at most a TTL. 0: no try follows.
 */
uint64_t lease_next_try_within(const struct lease *lease, uint64_t now);

/* Returns how long the lock is still certain to be ours, in nanoseconds. 0: it is not held. */
uint64_t lease_validity(const struct lease *lease, uint64_t now);

/* Returns the fence of a lease that was acquired; 0: not fenced. */
uint64_t lease_fence(const struct lease *lease);

#endif
