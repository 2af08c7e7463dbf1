/*
 * A lock that is held: its validity, its renewals and its loss. In the states HELD and RENEWING.
 *
 * While only silent nodes can complete the quorum of a renewal, the renewal waits on: nodes answer
 * in order, and would not answer another renewal earlier. Otherwise it has half of the time that is
 * left. Grants that arrive later still count, until another round begins. A failed renewal is
 * retried (core/renewal.h), at once when a node comes up. The lock is lost when so many nodes
 * report that the key is not ours that no quorum has it, and at the latest just before its validity
 * ends.
 *
 * A node that lacks the key is topped up while a quorum has it: after a renewal that succeeded, and
 * after one that failed for as long as the validity runs. A node without room for that gets it
 * later: the lock reports such nodes (lease_await_room), and when they have room (lease_has_room).
 */
#ifndef REDLOCK_CORE_HOLD_H
#define REDLOCK_CORE_HOLD_H

#include "core/lease_state.h"
#include "core/update.h"

/* Begins to hold the lock that `round` acquired, valid until `end`, and reports it. */
void hold_begin(struct lease *lease, const struct round *round, uint64_t end, uint64_t now,
                struct lease_update *update);

/* Plans the next renewal of a lock with a watchdog for `at`, replacing any earlier plan. */
void hold_renew_at(struct lease *lease, uint64_t at);

/* Handles the verdict of the round of a renewal or an extension. */
void hold_decided(struct lease *lease, const struct round *round, uint64_t now,
                  struct lease_update *update);

/*
 * Handles the firing of the timer in HELD or RENEWING: loses the lock, renews it, or waits on for
 * `round`, the round under way (NULL: there is none). Returns false if `round` is to be expired.
 */
bool hold_woken(struct lease *lease, const struct round *round, uint64_t now,
                struct lease_update *update);

/*
 * Extends the lock by a round for `ttl`. If a renewal is under way, in `round`, the extension
 * follows when that has a verdict, or after a node's timeout.
 */
void hold_extend(struct lease *lease, struct round *round, uint64_t ttl, uint64_t now,
                 struct lease_update *update);

/* Brings the next renewal forward if nodes watch the key: it may be gone at one of them. */
void hold_key_changed(struct lease *lease);

/* Ends the extension under way, if any, and reports its status. */
void hold_end_extension(struct lease *lease, redlock_status status, struct lease_update *update);

/* Continues in HELD after a renewal that failed or could not be sent, and plans the next one. */
void hold_renewal_failed(struct lease *lease, uint64_t now);

/*
 * Returns whether a vote after the round's verdict calls for hold_late_votes: that a node lacks the
 * key, or has left it free, so that it is topped up; or the grant that turns a renewal's NO into a
 * success.
 */
bool hold_heeds(const struct round *round, redlock_vote vote);

/*
 * Implement lease_renew_now, lease_late_votes, lease_move and lease_has_room. Do nothing unless the
 * lock is held.
 */
void hold_renew_now(struct lease *lease, const struct round *round, uint32_t up, uint64_t now,
                    struct lease_update *update);
void hold_late_votes(struct lease *lease, const struct round *round, uint64_t now,
                     struct lease_update *update);
void hold_top_up_joining(struct lease *lease, uint32_t joining, uint64_t now,
                         struct lease_update *update);
void hold_has_room(struct lease *lease, uint32_t nodes, uint64_t now, struct lease_update *update);

#endif
