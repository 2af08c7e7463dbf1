/*
 * The happy path: a call of the application, a verdict, or the timer goes into the lease;
 * lock_carry_out does as the update says: rounds are sent, the timer is set, news are noted. News
 * are told in the lock's next turn, after all else, and never from inside a call of the
 * application.
 *
 * Failures: without memory for a round the lease is told so in the next turn; without a timer the
 * lock looks at the clock in each turn. Before a round times out all sockets are read.
 *
 * A callback may do anything: release the lock, close the client, acquire again. So the bookkeeping
 * is finished before each callback, and only the lock's own state is looked at after it; a lock
 * whose handle has ended is freed when its last callback has returned.
 */
#include "lock/lock.h"

#include "base/nanos.h"
#include "core/backoff.h"
#include "core/handover.h"
#include "io/clock.h"
#include "io/random.h"
#include "lock/news.h"
#include "wire/fence.h"

#include <string.h>

/*
 * Returns whether a vote that decides nothing matters: in a QUEUE a grant, and the last answer;
 * behind a verdict a missing key, to be topped up, or a grant that turns a renewal's no into a yes.
 */
static bool is_of_use(const struct round *round, redlock_vote vote) {
    if (round->kind == ROUND_QUEUE && round->verdict == ROUND_OPEN) {
        return vote == REDLOCK_VOTE_GRANTED || round->silent == 0;
    }
    return vote == REDLOCK_VOTE_MISSING
               ? round_was_kept(round)
               : vote == REDLOCK_VOTE_GRANTED && round->kind == ROUND_RENEW &&
                     round_was_granted_late(round);
}

static void on_vote(void *owner, bool decided, redlock_vote vote) {
    redlock_lock *lock = owner;
    if (decided) {
        locks_raise(lock, LOCK_DECIDED);
    } else if (is_of_use(&lock->flight->round, vote)) {
        locks_raise(lock, LOCK_LATE_VOTE);
    }
}

/* ---- rounds ---- */

/* Changes the key to that of the permit to be tried, if any. Returns false when out of memory. */
static bool change_key(redlock_lock *lock) {
    uint32_t permit = lock->lease.permit;
    if (lock->name == NULL || (lock->key != lock->name && lock->permit == permit)) {
        return true;
    }
    struct key *key = key_create_permit(&lock->locks->context->keys, lock->name, permit);
    if (key != NULL) {
        key_drop(lock->key);
        lock->key = key;
        lock->permit = permit;
    }
    return key != NULL;
}

/* Returns the plan of a round, as far as it is common to all kinds of rounds. */
static struct flight_plan plan_round(const redlock_lock *lock, enum round_kind round, uint64_t ttl,
                                     uint64_t now) {
    const struct lease *lease = &lock->lease;
    return (struct flight_plan){.round = round,
                                .kind = lock->kind,
                                .key = lock->key,
                                .token = lock->token,
                                .now = now,
                                .nodes = members_all(lock->locks->members),
                                .ttl = ttl,
                                .node_ttl = nanos_add(ttl, lease->terms.lock_delay),
                                .fence = lease->fence};
}

/* Completes the plan of a try. */
static void plan_try(const redlock_lock *lock, const struct lease_update *update,
                     struct flight_plan *plan) {
    const struct lease_terms *terms = &lock->lease.terms;
    plan->is_new = true;
    plan->permits = terms->permits;
    if (lock->kind->features & KIND_WRITER) {
        plan->intent_ms = nanos_to_ms(lease_next_try_within(&lock->lease, plan->now));
    }
    if (plan->round == ROUND_QUEUE) {
        plan->claim = terms->claim;
        plan->ticket = lock->ticket;
        plan->goes_first = update->undo != 0;
    } else if (terms->fenced) {
        plan->fence = fence_hint(clock_wall_us()); /* a lost counter begins above the hint */
    }
}

/* Completes the plan of a release, or of the release that settles a failed try. */
static void plan_release(const redlock_lock *lock, uint32_t awaited, struct flight_plan *plan) {
    const struct lease *lease = &lock->lease;
    plan->awaited = awaited;
    plan->ticket = lock->placed;
    plan->may_hold = lease->may_hold;
    plan->keep_until = nanos_add(plan->now, lease->longest_ttl);
    plan->stay_until = plan->round == ROUND_RELEASE ? lease->stay_until : 0;
}

static struct flight_plan plan_of(const redlock_lock *lock, const struct lease_update *update,
                                  uint64_t now) {
    struct flight_plan plan = plan_round(lock, update->round, lease_round_ttl(&lock->lease), now);
    if (update->round == ROUND_RELEASE || update->round == ROUND_SETTLE) {
        plan_release(lock, update->awaited, &plan);
    } else {
        plan.replicas = lock->replicas;
    }
    if (update->round == ROUND_ACQUIRE || update->round == ROUND_QUEUE) {
        plan_try(lock, update, &plan);
    }
    return plan;
}

/* Makes a flight the lock's latest one, and drops the events of the one before. */
static void adopt(redlock_lock *lock, struct flight *flight) {
    if (flight->plan.round == ROUND_SETTLE) {
        lock->flight->listener = FLIGHT_UNATTENDED;
        lock->tried = lock->flight;
    } else {
        locks_let_go(&lock->flight);
    }
    lock->flight = flight;
    lock->events &= ~(unsigned)(LOCK_DECIDED | LOCK_LATE_VOTE | LOCK_NO_MEMORY);
    locks_note_sent(lock);
}

/*
 * Draws the ticket of a request that waits in line, once: the masters' time at which it was made.
 * Without a reading of their clocks our own serves, until a try that finds one.
 */
static void draw_ticket(redlock_lock *lock) {
    uint64_t now = clock_now();
    bool is_due = lock->ticket == 0 || lock->is_makeshift;
    uint64_t masters_us = is_due ? members_clock_us(lock->locks->members, now) : 0;
    if (!is_due || (lock->ticket != 0 && masters_us == 0)) {
        return;
    }
    uint64_t waited_us = (now - lock->lease.begun_at) / NANOS_PER_US;
    uint64_t time_us = masters_us != 0 ? masters_us : clock_wall_us();
    lock->is_makeshift = masters_us == 0;
    lock->ticket = fence_hint(time_us > waited_us ? time_us - waited_us : 0);
}

/* Prepares the key and the token of a try. Returns false when out of memory. */
static bool prepare_try(redlock_lock *lock, const struct lease_update *update) {
    struct waiters *waiters = &lock->locks->waiters;
    if (update->keeps_token) {
        lock->may_be_placed |= lock->flight->asks_for_place;
        if (!lock->may_be_placed) { /* all asks were before the channels */
            draw_ticket(lock);
            lock->placed = lock->ticket;
        }
        return true;
    }
    if (!change_key(lock)) {
        return false;
    }
    waiters_remove(waiters, lock);
    random_token(lock->token);
    lock->placed = 0;
    lock->may_be_placed = false;
    if (update->round == ROUND_ACQUIRE) {
        return true;
    }
    draw_ticket(lock);
    lock->placed = lock->ticket;
    members_listen(lock->locks->members);
    return waiters_add(waiters, lock);
}

/* Begins the round of an update. Returns false when out of memory. */
static bool begin_round(redlock_lock *lock, const struct lease_update *update, uint64_t now) {
    struct rounds *rounds = lock->locks->rounds;
    if (update->round == ROUND_ACQUIRE || update->round == ROUND_QUEUE) {
        if (!prepare_try(lock, update)) {
            return false;
        }
    }
    struct flight_plan plan = plan_of(lock, update, now);
    struct flight *flight = round_plan(rounds, (struct flight_listener){on_vote, lock}, &plan);
    if (flight == NULL) {
        return false;
    }
    if (update->keeps_token) {
        lock->flight->is_void = true; /* the call of this turn, if any, need not be sent */
    }
    adopt(lock, flight);
    round_send(rounds, flight);
    return true;
}

/* Sets the key at the nodes that lack it, for the rest of its time; in vain below 1 ms. */
static void top_up(redlock_lock *lock, const struct lease_update *update, uint64_t now) {
    struct flight_plan plan = plan_round(lock, ROUND_ACQUIRE, update->top_up_ttl, now);
    plan.nodes = update->top_up;
    if (plan.ttl >= NANOS_PER_MS) {
        round_send_unattended(lock->locks->rounds, &plan);
    }
}

/* Releases a try that is given up, at the nodes that may hold its key, or a place for it. */
static void undo(redlock_lock *lock, const char *token, uint64_t placed, uint32_t nodes,
                 uint64_t now) {
    const struct owed owed = {.kind = lock->kind,
                              .key = lock->key,
                              .token = token,
                              .ticket = placed,
                              .until = nanos_add(now, lock->lease.longest_ttl)};
    round_send_release(lock->locks->rounds, FLIGHT_UNATTENDED, &owed, nodes, now);
}

/* ---- carrying out ---- */

static void follow_in_line(redlock_lock *lock, enum lease_state before);

void lock_set_timer(redlock_lock *lock) {
    if (!timer_set(&lock->timer, lock->lease.wake_at)) {
        locks_raise(lock, LOCK_WOKEN); /* without a timer: wake the lease in each turn */
    }
}

static void emit_change(const redlock_lock *lock, enum lease_state before) {
    if (before != lock->lease.state) {
        EMIT(&lock->locks->context->events, lock_changed, .key = lock->key->bytes, .before = before,
             .after = lock->lease.state);
    }
}

static void send(redlock_lock *lock, const struct lease_update *update, uint64_t now) {
    if (update->send && !begin_round(lock, update, now)) {
        locks_raise(lock, LOCK_NO_MEMORY);
    }
}

/*
 * Gives up a try, and sends the round that follows, if any: behind the release or, if it asks for a
 * place, before it, so that the place is not left empty.
 */
static void undo_and_send(redlock_lock *lock, const struct lease_update *update, uint64_t now) {
    bool asks_for_place = update->send && update->round == ROUND_QUEUE;
    char token[TOKEN_LENGTH + 1];
    uint64_t placed = lock->placed;
    memcpy(token, lock->token, sizeof(token));
    if (lock->flight != NULL) {
        lock->flight->is_void = true;
    }
    if (asks_for_place) {
        send(lock, update, now);
    }
    undo(lock, token, placed, update->undo, now);
    if (!asks_for_place) {
        send(lock, update, now);
    }
}

void lock_carry_out(redlock_lock *lock, const struct lease_update *update, enum lease_state before,
                    uint64_t now) {
    emit_change(lock, before);
    if (update->undo != 0) {
        undo_and_send(lock, update, now);
    } else {
        send(lock, update, now);
    }
    if (update->top_up != 0) {
        top_up(lock, update, now);
    }
    if (update->top_up_later) {
        locks_raise(lock, LOCK_LATE_VOTE); /* news come before a late vote is dealt with */
    }
    lock_set_timer(lock);
    locks_note_unrenewed(lock);
    news_note(lock, update);
    if (lock->line != NULL) {
        follow_in_line(lock, before);
    }
    context_wake(lock->locks->context);
}

/* ---- lines ---- */

/* Tells the line of a lock what has become of it. The next one contends for the key in its turn. */
static void follow_in_line(redlock_lock *lock, enum lease_state before) {
    enum lease_state state = lock->lease.state;
    bool has_acquired = lease_is_held(&lock->lease) && before <= LEASE_SETTLING;
    bool has_ended = state == LEASE_LOST || state == LEASE_RELEASING || state == LEASE_OVER;
    redlock_lock *next = has_acquired ? lines_acquired(lock) : has_ended ? lines_leave(lock) : NULL;
    if (next != NULL) {
        locks_raise(next, LOCK_CONTENDS);
    }
}

void lock_begin(redlock_lock *lock, const struct lease_terms *terms, uint64_t now) {
    struct locks *locks = lock->locks;
    struct lease_update update;
    uint64_t seed = backoff_random(&locks->context->seed);
    uint32_t members = members_all(locks->members);
    lock->lease.terms = *terms; /* for the choice of the line */
    if (!terms->queues || lines_join(&locks->lines, lock)) {
        lease_start(&lock->lease, terms, members, seed, now, &update);
        lock_carry_out(lock, &update, LEASE_ACQUIRING, now);
    } else {
        lease_wait(&lock->lease, terms, members, seed, now);
        draw_ticket(lock);
        lock_set_timer(lock);
    }
}

static void hand_over_token(redlock_lock *from, redlock_lock *to) {
    struct waiters *waiters = &from->locks->waiters;
    waiters_remove(waiters, from);
    memcpy(to->token, from->token, sizeof(to->token));
    to->placed = from->placed;
    waiters_add(waiters, to);
}

/* Hands over the latest round, with its events. */
static void hand_over_round(redlock_lock *from, redlock_lock *to) {
    const unsigned of_round = LOCK_DECIDED | LOCK_LATE_VOTE;
    to->flight = from->flight;
    from->flight = NULL;
    if (to->flight->listener.on_vote != NULL) {
        to->flight->listener.owner = to;
    }
    if (from->is_sent) {
        locks_note_sent(to);
    }
    if (from->events & of_round) {
        locks_raise(to, from->events & LOCK_DECIDED ? LOCK_DECIDED : LOCK_LATE_VOTE);
    }
    from->events &= ~of_round;
}

/* Returns the next in the line of a lock that is fit to be handed over now, or NULL. */
static redlock_lock *next_of(const redlock_lock *lock, uint64_t now) {
    redlock_lock *next = lines_next(lock);
    return next != NULL && handover_is_possible(&lock->lease, &next->lease, now) ? next : NULL;
}

bool lock_part(redlock_lock *lock, uint64_t now) {
    lock->is_parting = next_of(lock, now) != NULL;
    if (lock->is_parting) {
        locks_ready(lock);
    }
    return lock->is_parting;
}

static void hand_over(redlock_lock *lock, redlock_lock *next, uint64_t now) {
    struct lease_update ended, begun;
    enum lease_state before = lock->lease.state;
    lines_hand_over(lock);
    hand_over_token(lock, next);
    handover_move(&lock->lease, &next->lease, now, &ended, &begun);
    if (lease_is_held(&next->lease)) {
        hand_over_round(lock, next);
    }
    lock_carry_out(lock, &ended, before, now);
    lock_carry_out(next, &begun, LEASE_QUEUED, now);
}

/*
 * Ends a lock that is parting: tells its end, then hands the lock over, with a fresh look at the
 * validity. So the application never knows two to be held, nor may call anything on a lock that is
 * held without its knowledge. Returns the next one, or NULL: then the lock is being released.
 */
static redlock_lock *part(redlock_lock *lock) {
    const struct context *context = lock->locks->context;
    const struct lock_callback told = lock->on_released;
    struct lease_update update;
    if (!context->is_closing && next_of(lock, clock_now()) != NULL) {
        lock->on_released = (struct lock_callback){0};
        news_call(lock, told, REDLOCK_OK);
    }
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

/* Reads all sockets before a round times out, once a turn: a reply that has arrived is not late. */
static void read_arrived(struct locks *locks) {
    if (!locks->has_read) {
        locks->has_read = true;
        members_read(locks->members);
    }
}

static struct flight *open_flight(const redlock_lock *lock) {
    return lock->flight != NULL && lock->flight->round.verdict == ROUND_OPEN ? lock->flight : NULL;
}

/* Has the lease read the votes again: the status of a failed acquisition is that of its report. */
static void reconsider(redlock_lock *lock) {
    const struct flight *tried = lock->tried != NULL ? lock->tried : lock->flight;
    if (tried != NULL) {
        lease_reconsider(&lock->lease, &tried->round);
    }
}

/* Emits the verdict of a round that was open, if its deadline has decided it. */
static void emit_timeout(const redlock_lock *lock, bool was_open) {
    if (was_open && open_flight(lock) == NULL) {
        EMIT(&lock->locks->context->events, round_decided, .key = lock->key->bytes,
             .round = lock->flight->round.kind, .verdict = lock->flight->round.verdict);
    }
}

static void on_woken(redlock_lock *lock, struct lease_update *update) {
    enum lease_state before = lock->lease.state;
    if (open_flight(lock) != NULL && clock_now() >= lock->lease.wake_at) {
        read_arrived(lock->locks);
    }
    uint64_t now = clock_now();
    struct flight *flight = lock->flight;
    if (lock->events & LOCK_DECIDED) {
        lock->events &= ~(unsigned)LOCK_DECIDED;
        lease_decided(&lock->lease, &flight->round, now, update);
    } else {
        bool was_open = open_flight(lock) != NULL;
        lease_woken(&lock->lease, flight != NULL ? &flight->round : NULL, now, update);
        emit_timeout(lock, was_open);
    }
    lock_carry_out(lock, update, before, now);
}

static void on_event(redlock_lock *lock, enum lock_event event) {
    struct lease_update update;
    enum lease_state before = lock->lease.state;
    reconsider(lock);
    if (event == LOCK_WOKEN) {
        on_woken(lock, &update);
        return;
    }
    uint64_t now = clock_now();
    if (event == LOCK_DECIDED) {
        lease_decided(&lock->lease, &lock->flight->round, now, &update);
    } else if (event == LOCK_HURRIED) {
        lease_hurry(&lock->lease, &lock->flight->round, members_up(lock->locks->members), now,
                    &update);
    } else if (event == LOCK_CONTENDS) {
        lease_contend(&lock->lease, now, &update);
    } else if (event == LOCK_REQUEUED) {
        lease_requeue(&lock->lease, &lock->flight->round, now, &update);
    } else if (event == LOCK_LATE_VOTE) {
        lease_late_votes(&lock->lease, &lock->flight->round, now, &update);
    } else {
        lease_out_of_memory(&lock->lease, now, &update);
    }
    lock_carry_out(lock, &update, before, now);
}

/* Deals with events until there is news, which is told first: a yes, while it is fresh. */
static void handle_events(redlock_lock *lock) {
    static const enum lock_event order[] = {LOCK_NO_MEMORY, LOCK_DECIDED, LOCK_WOKEN,
                                            LOCK_LATE_VOTE, LOCK_HURRIED, LOCK_REQUEUED,
                                            LOCK_CONTENDS};
    for (unsigned i = 0; i < sizeof(order) / sizeof(order[0]) && lock->news == 0; i++) {
        if (lock->events & order[i]) {
            lock->events &= ~(unsigned)order[i];
            on_event(lock, order[i]);
        }
    }
}

static void lock_close(redlock_lock *lock) {
    struct lease_update update = {0};
    enum lease_state before = lock->lease.state;
    uint64_t now = clock_now();
    locks_note_closed(lock);
    if (before == LEASE_OVER) {
        return;
    }
    const struct flight *flight = lock->flight;
    lease_close(&lock->lease, flight != NULL ? &flight->round : NULL, now, &update);
    lock_carry_out(lock, &update, before, now);
}

void lock_turn(redlock_lock *lock) {
    redlock_lock *next = lock->is_parting ? part(lock) : NULL;
    if (lock->locks->context->is_closing && !lock->is_closed) {
        lock_close(lock); /* events of before are not told any more */
    }
    handle_events(lock);
    if (lock->news != 0 && news_tell(lock)) {
        locks_end(lock);
    } else if (lock->events != 0) {
        locks_ready(lock);
    }
    if (next != NULL && next->news != 0) {
        locks_unqueue(next);
        lock_turn(next);
    }
}
