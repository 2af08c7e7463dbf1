/*
 * The happy path: a call of the application, a verdict or the alarm goes into the lease.
 * lock_carry_out does what the lease's update says: it sends rounds, sets the alarm and records
 * notifications. These are delivered at the end of the lock's next turn, never from inside a call
 * of the application.
 *
 * Failures: if there is no memory for a round, the lease learns so in the next turn. All sockets
 * are read before a round times out.
 *
 * A callback may do anything: release the lock, close the client, acquire again. So the bookkeeping
 * is finished before each callback, and only the lock's own state is read after it. A lock whose
 * handle has ended is freed when its last callback has returned.
 */
#include "lock/lock.h"

#include "base/nanos.h"
#include "core/handover.h"
#include "core/options.h"
#include "core/queue.h"
#include "core/tries.h"
#include "io/clock.h"
#include "lock/notifications.h"
#include "lock/outbox.h"

#include <string.h>

/* ---- carrying out ---- */

static void update_cohort(redlock_lock *lock, enum lease_state before, uint64_t now);

void lock_set_alarm(redlock_lock *lock) {
    alarms_set(&lock->locks->alarms, &lock->alarm, lock->lease.wake_at);
}

/* Counts a change of state, and emits its event. */
static void record_change(redlock_lock *lock, const struct lease_update *update,
                          enum lease_state before, uint64_t now) {
    const struct round *round = lock_round(lock);
    bool has_changed = before != lock->lease.state;
    /* An extension that came during a renewal follows its verdict at once. */
    bool is_followed =
        before == LEASE_RENEWING && update->send && round != NULL && round->verdict != ROUND_OPEN;
    /* The end of a wait, a renewal or a release. */
    if ((has_changed || is_followed) && (COUNTS_STATES >> before & 1)) {
        counts_end_state(&lock->locks->counts, &lock->lease, update, before, lock->operation, now);
        lock->has_waited |= counts_as_wait(before);
    }
    if (has_changed) {
        EMIT(&lock->locks->context->events, lock_changed, .request = lock->request,
             .key = lock->key->bytes, .before = before, .after = lock->lease.state);
    }
}

/*
 * Gives up a try, and sends the round that follows, if any. The release goes first, except before a
 * QUEUE: a key that is given up goes to the first in the queue, which needs the new entry by then.
 */
static void undo_and_send(redlock_lock *lock, const struct lease_update *update, uint64_t now) {
    bool asks_for_entry = update->send && update->round == ROUND_QUEUE;
    char token[TOKEN_LENGTH + 1];
    struct key *key = key_hold(lock->key);
    /* Wait queue: without a ticket the release gives up the key alone, and the entry stays. */
    uint64_t entry_ticket = update->keeps_entry ? 0 : outbox_entry_ticket(lock);
    token_unpack(token, lock->token);
    if (lock->operation != NULL) {
        /* Its command, if not sent yet, would take the key again. */
        lock->operation->is_void = true;
    }
    if (asks_for_entry) {
        outbox_send(lock, update, now);
    }
    outbox_undo(lock, key, token, entry_ticket, update->undo, now);
    key_drop(key);
    if (!asks_for_entry) {
        outbox_send(lock, update, now);
    }
}

/*
 * Copies the end of the lock's validity, for a client that has a mirror (node/context.h). Not
 * inlined, to keep it out of the common path.
 */
static __attribute__((noinline)) void mirror_validity(const redlock_lock *lock,
                                                      const struct mirror *mirror) {
    if (lock->on_ended.call == mirror->on_lost) {
        bool is_held = lease_is_held(&lock->lease);
        mirror->set_end(lock->on_ended.arg, is_held ? lock->lease.holding.validity_end : 0);
    }
}

/* Returns whether an update is a release that leaves the key at the nodes for a time. */
static bool stays(const redlock_lock *lock, const struct lease_update *update, uint64_t now) {
    return update->send && update->round == ROUND_RELEASE && now < lock->lease.holding.stay_until;
}

void lock_carry_out(redlock_lock *lock, const struct lease_update *update, enum lease_state before,
                    uint64_t now) {
    record_change(lock, update, before, now);
    /* The order of core/update.h: top up, undo, send, set the timer, notify. */
    if (update->top_up != 0) {
        outbox_top_up(lock, update, now);
    }
    if (update->undo != 0) {
        undo_and_send(lock, update, now);
    } else {
        outbox_send(lock, update, now);
    }
    /* Permits: STAY leaves the queue entry alone, so another call gives it up. */
    if (outbox_entry_ticket(lock) != 0 && lock->wait->name != NULL && stays(lock, update, now)) {
        outbox_leave_queue(lock, now);
    }
    if (update->top_up_later) {
        locks_raise(lock, LOCK_LATE_VOTE); /* handled after the notifications: a yes is fresh */
    }
    if (update->watch) {
        if (lock->operation != NULL) {
            lock->operation->unwatched = lock->operation->foreign;
        }
        locks_raise(lock, LOCK_UNWATCHED); /* likewise, and after the top-up */
    }
    const struct mirror *mirror = &lock->locks->context->mirror;
    if (mirror->on_lost != NULL) {
        mirror_validity(lock, mirror);
    }
    lock_set_alarm(lock);
    locks_refile(lock);
    if (update->notifications != 0) {
        notifications_add(lock, update);
    }
    if (lock->wait != NULL && lock->wait->cohort != NULL) {
        update_cohort(lock, before, now);
    }
    context_wake(lock->locks->context);
}

/* ---- cohorts ---- */

/* Makes a cohort leader ask for the key: with the release that made it the leader, if any. */
static void lead(redlock_lock *lock, uint64_t now) {
    struct lease_update update;
    enum lease_state before = lock->lease.state;
    lease_lead(&lock->lease, now, &update);
    /* Cohort: only the release of a lock that can be handed over serves this leader's entry. */
    update.before_release &= cohorts_can_hand_over(lock);
    lock_carry_out(lock, &update, before, now);
}

/* Updates the cohort of a lock after an event. */
static void update_cohort(redlock_lock *lock, enum lease_state before, uint64_t now) {
    enum lease_state state = lock->lease.state;
    /* Cohort: a leader that acquired becomes the holder, or makes room for the next leader. */
    if (lease_is_held(&lock->lease) && before <= LEASE_DIAGNOSING) {
        redlock_lock *next = cohorts_acquired(lock);
        if (next != NULL) {
            locks_raise(next, LOCK_LEADING); /* after the notifications, which are fresh now */
        }
    } else if (state == LEASE_LOST || state == LEASE_RELEASING || state == LEASE_OVER) {
        /* Cohort: the next leader's QUEUE can travel with the release that has just been begun. */
        redlock_lock *next = cohorts_leave(lock);
        if (next != NULL && !lock->locks->context->is_closing) {
            lead(next, now);
        }
    }
}

/*
 * Asks the nodes for the key, or waits in the cohort for another request of this client. `before`
 * is the state that the last event named.
 */
static void start_request(redlock_lock *lock, enum lease_state before, uint64_t now) {
    struct locks *locks = lock->locks;
    struct lease_update update = {0};
    /* Cohort: of the requests that wait for one key, only leaders ask the nodes. */
    if (!lock->lease.terms->queues || cohorts_join(&locks->cohorts, lock)) {
        lease_begin(&lock->lease, now, &update);
        lock_carry_out(lock, &update, before, now);
    } else {
        /* The ticket is drawn now: it counts from arrival, whenever the request leads. */
        lease_wait(&lock->lease);
        record_change(lock, &update, before == LEASE_STARTING ? before : LEASE_QUEUED, now);
        locks_listen(lock);
        outbox_draw_ticket(lock);
        lock_set_alarm(lock);
    }
}

/* Returns whether all nodes are known, or the time to wait for them is over. */
static bool may_start(redlock_lock *lock, uint64_t now) {
    struct members *members = lock->locks->members;
    bool has_quorum = members_have_quorum(members);
    bool is_due = members->are_known || lease_may_start(&lock->lease, has_quorum, now);
    if (is_due && has_quorum) { /* a quorum is enough: no later request waits for other nodes */
        members_wait_no_longer(members);
    }
    return is_due;
}

/*
 * Begins the first try of a lock that was held back, if the nodes are known and have room. At the
 * end of the request's time there is none, unless too few nodes are up: then its votes, which cost
 * next to nothing, say why.
 */
static void start_if_due(redlock_lock *lock) {
    struct lease_update update;
    uint64_t now = clock_now();
    if (!may_start(lock, now)) {
        lock_set_alarm(lock);
        return;
    }
    bool is_at_end = lease_is_at_end(&lock->lease, now);
    if (is_at_end && members_have_quorum(lock->locks->members)) {
        lease_end_untried(&lock->lease, REDLOCK_ENOQUORUM, now, &update);
        lock_carry_out(lock, &update, LEASE_STARTING, now);
        return;
    }
    if (!lock->is_admitted && !is_at_end) {
        lease_wait_for_room(&lock->lease);
        lock_set_alarm(lock);
        context_wake(lock->locks->context); /* to be admitted, if there is room (turn_admit) */
        return;
    }
    start_request(lock, LEASE_STARTING, now);
    if (lock->list == LOCK_STARTING) { /* otherwise an event is queued already */
        locks_move_home(lock);
    }
}

bool lock_may_begin(struct locks *locks) {
    return locks->members->are_known && TAILQ_EMPTY(&locks->queues[LOCK_STARTING].list) &&
           locks_have_room(locks);
}

void lock_begin(redlock_lock *lock, uint64_t now) {
    struct locks *locks = lock->locks;
    const struct lease_terms *terms = lock->lease.terms;
    uint32_t members = members_all(locks->members);
    EMIT(&locks->context->events, lock_asked, .request = lock->request, .key = lock->key->bytes);
    members_use(locks->members, now);
    if (terms->watches) {
        locks_listen(lock);
    }
    lease_start(&lock->lease, terms, members, options_stall(&locks->context->options), now);
    if (lock_may_begin(locks)) {
        locks_admit(locks, lock->key->length);
        start_request(lock, LEASE_ACQUIRING, now);
        return;
    }
    /* A try now could lack a quorum only for want of room, or because names are looked up. */
    if (locks->members->are_known) {
        lease_wait_for_room(&lock->lease);
        context_wake(locks->context);
    }
    lock_set_alarm(lock);
    locks_move_home(lock);
}

/* Hands over the token, which stays at the nodes, so that its pushes find the new owner. */
static void hand_over_token(redlock_lock *from, redlock_lock *to) {
    struct waiters *waiters = &from->locks->waiters;
    waiters_remove(waiters, from);
    memcpy(to->token, from->token, sizeof(to->token));
    to->wait->entry_ticket = from->wait->entry_ticket;
    waiters_add(waiters, to);
}

/* Hands over the latest round, or its votes, and its events. */
static void hand_over_round(redlock_lock *from, redlock_lock *to) {
    const unsigned of_round = LOCK_DECIDED | LOCK_LATE_VOTE;
    to->operation = from->operation;
    from->operation = NULL;
    to->granted = from->granted;
    to->unsent = from->unsent;
    to->was_renewed = from->was_renewed;
    if (to->operation != NULL && to->operation->listener.on_vote != NULL) {
        to->operation->listener.owner = to; /* later votes are reported to the new owner */
    }
    if (from->events & of_round) { /* a verdict includes the late votes */
        locks_raise(to, from->events & LOCK_DECIDED ? LOCK_DECIDED : LOCK_LATE_VOTE);
    }
    from->events &= (uint16_t)~of_round;
}

/* Returns the next waiter of the lock's cohort if the lock can be handed over now, or NULL. */
static redlock_lock *next_of(const redlock_lock *lock, uint64_t now) {
    redlock_lock *next = cohorts_next(lock);
    return next != NULL && handover_is_possible(&lock->lease, &next->lease, now) ? next : NULL;
}

bool lock_part(redlock_lock *lock, uint64_t now) {
    lock->is_parting = !lock->locks->context->is_closing && next_of(lock, now) != NULL;
    if (lock->is_parting) {
        locks_ready(lock);
    }
    return lock->is_parting;
}

bool lock_is_closed_for_holder(const redlock_lock *lock) {
    return lock->is_closed && lock->lease.was_acquired;
}

void lock_notify_release(redlock_lock *lock) {
    if (lock->list == LOCK_ENDED) { /* otherwise the release is under way, and will report */
        lock->notifications |= LEASE_RELEASED;
        locks_ready(lock);
    }
}

static void hand_over(redlock_lock *lock, redlock_lock *next, uint64_t now) {
    struct lease_update ended, begun;
    enum lease_state before = lock->lease.state;
    lock->locks->counts.handovers++;
    cohorts_hand_over(lock);
    hand_over_token(lock, next);
    handover_move(&lock->lease, &next->lease, now, &ended, &begun);
    if (lease_is_held(&next->lease)) { /* without a message: the votes count for the next, too */
        hand_over_round(lock, next);
        begun.watch = next->lease.terms->watches;
    }
    lock_carry_out(lock, &ended, before, now);
    lock_carry_out(next, &begun, LEASE_QUEUED, now);
}

/*
 * Ends a parting lock: reports its end, then hands it over if the validity, read again, still
 * allows that. So the application never sees two locks held at once, and cannot call anything on a
 * lock that is held without its knowledge. Returns the next lock; NULL: this one is being released.
 */
static redlock_lock *part(redlock_lock *lock) {
    const struct context *context = lock->locks->context;
    struct lease_update update;
    if (!context->is_closing && next_of(lock, clock_now()) != NULL) {
        notifications_deliver_release(lock, REDLOCK_OK);
    }
    /* The callback took time, and may have closed the client or canceled the next: look again. */
    enum lease_state before = lock->lease.state;
    uint64_t now = clock_now();
    redlock_lock *next = context->is_closing ? NULL : next_of(lock, now);
    lock->is_parting = false;
    if (next != NULL) {
        hand_over(lock, next, now);
    } else {
        lease_release(&lock->lease, now, &update);
        lock_carry_out(lock, &update, before, now);
    }
    return next;
}

/* ---- events ---- */

/* Reads all sockets before a round times out, once a turn: a reply that has arrived is in time. */
static void read_arrived(struct locks *locks) {
    if (!locks->has_read) {
        locks->has_read = true;
        members_read(locks->members);
    }
}

static struct operation *open_operation(const redlock_lock *lock) {
    return lock->operation != NULL && lock->operation->round.verdict == ROUND_OPEN ? lock->operation
                                                                                   : NULL;
}

/* Makes the lease read the votes again, so that the status of a failure matches its report. */
static void reconsider(redlock_lock *lock) {
    const struct operation *operation = lock->operation;
    if (operation != NULL) { /* a DIAGNOSE follows the try that failed: that one's votes say why */
        lease_reconsider(&lock->lease,
                         operation->tried != NULL ? &operation->tried->round : &operation->round);
    }
}

/*
 * Counts and emits the TIMEOUT votes that a round's deadline cast, and the verdict if they decided
 * it. Not inlined, to keep it out of the common path. `silent` is the mask from before.
 */
static __attribute__((noinline)) void
record_timeouts(const redlock_lock *lock, const struct operation *open, uint32_t silent) {
    const struct locks *locks = lock->locks;
    const struct events *events = &locks->context->events;
    const struct round *round = &open->round;
    /* mask: nodes whose silence the deadline has turned into a vote */
    uint32_t late = silent & ~round->silent & members_all(locks->members);
    struct node *node;
    while ((node = members_take(locks->members, &late)) != NULL) {
        node->votes[REDLOCK_VOTE_TIMEOUT]++;
        EMIT(events, vote_cast, .request = lock->request, .key = lock->key->bytes,
             .round = round->kind, .node = node_name(node), .vote = REDLOCK_VOTE_TIMEOUT);
    }
    if (round->verdict != ROUND_OPEN) {
        EMIT(events, round_decided, .request = lock->request, .key = lock->key->bytes,
             .round = round->kind, .verdict = round->verdict);
    }
}

/* Returns which silent nodes of an open round are late; `open` may be NULL. */
static struct round_silence silence_of(const redlock_lock *lock, const struct operation *open,
                                       uint64_t now) {
    if (open == NULL) {
        return (struct round_silence){.next = NANOS_NEVER};
    }
    const struct round *round = &open->round;
    bool is_split = round_deniers(round) != 0 && lease_is_acquiring(&lock->lease);
    uint64_t margin = is_split ? ANSWER_MARGIN_SPLIT : ANSWER_MARGIN;
    return members_silence(lock->locks->members, round->silent, round->sent_at, margin, now);
}

/* Returns why a request fails for which another one of its cohort has asked: as that one would. */
static redlock_status failure_of_cohort(const redlock_lock *lock) {
    const redlock_lock *leader = cohorts_leader(lock);
    if (leader == NULL) { /* this client has the key */
        return REDLOCK_EHELD;
    }
    const struct round *round = lock_round(leader);
    if (leader->lease.state == LEASE_QUEUED && round != NULL) {
        return tries_failure(round);
    }
    return leader->lease.failure != REDLOCK_OK ? leader->lease.failure : REDLOCK_ENOQUORUM;
}

static void on_woken(redlock_lock *lock, struct lease_update *update) {
    enum lease_state before = lock->lease.state;
    /* Deadline of a round: replies that have arrived count, however late the loop reads them. */
    if (open_operation(lock) != NULL && clock_now() >= lock->lease.wake_at) {
        read_arrived(lock->locks);
    }
    uint64_t now = clock_now();
    if (lock->events & LOCK_DECIDED) { /* those replies have decided the round */
        lock->events &= (uint16_t)~LOCK_DECIDED;
        lease_decided(&lock->lease, lock_round(lock), now, update);
    } else if (before == LEASE_QUEUED && lock_round(lock) == NULL &&
               lease_is_at_end(&lock->lease, now)) {
        lease_end_untried(&lock->lease, failure_of_cohort(lock), now, update);
    } else {
        const struct operation *open = open_operation(lock);
        uint32_t silent = open != NULL ? open->round.silent : 0;
        const struct round_silence silence = silence_of(lock, open, now);
        lease_woken(&lock->lease, lock_round(lock), &silence, now, update);
        if (open != NULL) {
            record_timeouts(lock, open, silent);
        }
    }
    lock_carry_out(lock, update, before, now);
}

/*
 * Makes nodes watch the key. While the lock is held, these are all nodes, if the request asked for
 * that. For the first in the queue, these are the nodes at which a foreign client holds the key:
 * its release pushes nothing.
 */
static void watch_key(redlock_lock *lock) {
    const struct lease *lease = &lock->lease;
    struct operation *operation = lock->operation;
    uint32_t nodes = lease_is_held(lease) && lease->terms->watches ? lease->members : 0;
    if (operation != NULL && operation->unwatched != 0) {
        nodes |= queue_is_waiting(lease, &operation->round) ? operation->unwatched : 0;
        operation->unwatched = 0;
    }
    watches_look(&lock->locks->watches, lock, nodes & members_all(lock->locks->members));
}

void lock_has_room(redlock_lock *lock, uint32_t node) {
    struct lease_update update;
    uint64_t now = clock_now();
    lease_has_room(&lock->lease, node, now, &update);
    lock_carry_out(lock, &update, lock->lease.state, now);
}

static void handle_event(redlock_lock *lock, enum lock_event event) {
    struct lease_update update;
    enum lease_state before = lock->lease.state;
    if (before == LEASE_STARTING) {
        start_if_due(lock); /* no other event concerns a lock without a round */
        return;
    }
    reconsider(lock);
    if (event == LOCK_STARTED) { /* already started, or ended */
        return;
    }
    if (event == LOCK_WOKEN) {
        on_woken(lock, &update);
        return;
    }
    if (event == LOCK_UNWATCHED) {
        watch_key(lock);
        return;
    }
    if (event == LOCK_LEADING) {
        lead(lock, clock_now());
        return;
    }
    const struct round *round = lock_round(lock);
    uint64_t now = clock_now();
    if (event == LOCK_DECIDED) {
        lease_decided(&lock->lease, round, now, &update);
    } else if (event == LOCK_RENEW_NOW) {
        lease_renew_now(&lock->lease, round, members_up(lock->locks->members), now, &update);
    } else if (event == LOCK_ASK_AGAIN) {
        lease_ask_again(&lock->lease, round, now, &update);
    } else if (event == LOCK_KEY_CHANGED) {
        lease_key_changed(&lock->lease, round, now, &update);
    } else if (event == LOCK_LATE_VOTE) {
        /* Renewal: grants after the deadline count from the round's start, and may complete it. */
        bool was_unrenewed = lock->lease.is_unrenewed;
        lease_late_votes(&lock->lease, round, now, &update);
        lock->locks->counts.renewed_late +=
            was_unrenewed && lock->lease.state == LEASE_HELD && !lock->lease.is_unrenewed;
    } else {
        lease_out_of_memory(&lock->lease, now, &update);
    }
    lock_carry_out(lock, &update, before, now);
}

/* Handles events until one causes a notification, which goes first: a yes must be fresh. */
static void handle_events(redlock_lock *lock) {
    /* A verdict precedes the alarm, which may be that round's deadline. */
    static const enum lock_event order[] = {
        LOCK_NO_MEMORY, LOCK_DECIDED,     LOCK_WOKEN,     LOCK_LATE_VOTE, LOCK_RENEW_NOW,
        LOCK_ASK_AGAIN, LOCK_KEY_CHANGED, LOCK_UNWATCHED, LOCK_LEADING,   LOCK_STARTED};
    const unsigned count = sizeof(order) / sizeof(order[0]);
    for (unsigned i = 0; i < count && lock->events != 0 && lock->notifications == 0; i++) {
        if (lock->events & order[i]) {
            lock->events &= (uint16_t)~order[i];
            handle_event(lock, order[i]);
            /* The next round was not sent, and the token of the last one may be given up. */
            if (lock->events & LOCK_NO_MEMORY) {
                return; /* the next turn begins with this: no event may send under that token */
            }
        }
    }
}

static void lock_close(redlock_lock *lock) {
    struct lease_update update = {0};
    enum lease_state before = lock->lease.state;
    uint64_t now = clock_now();
    locks_record_closed(lock);
    if (before == LEASE_OVER) {
        return;
    }
    lease_close(&lock->lease, lock_round(lock), now, &update);
    lock_carry_out(lock, &update, before, now);
}

void lock_turn(redlock_lock *lock) {
    struct locks *locks = lock->locks;
    locks->in_turn = lock;
    redlock_lock *next = lock->is_parting ? part(lock) : NULL;
    if (lock->locks->context->is_closing && !lock->is_closed) {
        lock_close(lock); /* first, since earlier events no longer matter */
    }
    handle_events(lock);
    bool has_ended = lock->notifications != 0 && notifications_deliver(lock);
    locks->in_turn = NULL;
    if (has_ended) {
        locks_end(lock);
    } else if (lock->events != 0 || lock->notifications != 0 || lock->is_parting) {
        locks_ready(lock);
    } else if (lock->lease.state == LEASE_HELD) {
        outbox_rest(lock);
    }
    /* Handover: the next holder is notified at once, while the validity is as just read. */
    if (next != NULL && next->notifications != 0) {
        locks_unqueue(next);
        lock_turn(next);
    }
}
