/*
 * A call of the application, a verdict, or the timer goes into the lease; the update that comes
 * out is carried out by `lock_carry_out`: rounds are sent, the timer is set, news are noted. News
 * are told in the lock's next turn, after all else, and never from inside a call of the
 * application.
 *
 * A callback may do anything: release the lock, close the client, acquire again. So before each
 * call the bookkeeping is finished, and after it only the lock's own state is looked at again; a
 * lock whose handle has ended is freed when its last callback has returned.
 */
#include "lock.h"

#include "base/nanos.h"
#include "batch.h"
#include "core/options.h"
#include "io/clock.h"
#include "io/random.h"
#include "node.h"
#include "release.h"
#include "wire/fence.h"

static void queue_init(struct lock_queue *queue) {
    TAILQ_INIT(&queue->list);
    queue->count = 0;
}

static void unqueue(redlock_lock *lock) {
    if (lock->queue != NULL) {
        TAILQ_REMOVE(&lock->queue->list, lock, ready_link);
        lock->queue->count--;
        lock->queue = NULL;
    }
}

static void enqueue(redlock_lock *lock, struct lock_queue *queue) {
    unqueue(lock);
    TAILQ_INSERT_TAIL(&queue->list, lock, ready_link);
    queue->count++;
    lock->queue = queue;
    context_wake(lock->locks->context);
}

static void make_ready(redlock_lock *lock) {
    if (lock->queue == NULL) {
        enqueue(lock, &lock->locks->ready);
    }
}

static void raise_event(redlock_lock *lock, enum lock_event event) {
    struct lock_queue *decided = &lock->locks->decided;
    lock->events |= event;
    if (event == LOCK_DECIDED && lock->queue != decided) {
        enqueue(lock, decided);
    } else {
        make_ready(lock);
    }
}

static void on_timer(void *arg) {
    raise_event(arg, LOCK_WOKEN);
}

/* Votes after the verdict matter where they tell of a node without the key, or make up for a no. */
static bool is_of_use(const struct round *round, redlock_vote vote) {
    return vote == REDLOCK_VOTE_MISSING
               ? round_was_kept(round)
               : vote == REDLOCK_VOTE_GRANTED && round->kind == ROUND_RENEW &&
                     round_was_granted_late(round);
}

static void on_vote(void *owner, bool decided, redlock_vote vote) {
    redlock_lock *lock = owner;
    if (decided) {
        raise_event(lock, LOCK_DECIDED);
    } else if (is_of_use(&lock->flight->round, vote)) {
        raise_event(lock, LOCK_LATE_VOTE);
    }
}

/* ---- the pool ---- */

static bool set_up(void *object, void *context) {
    redlock_lock *lock = object;
    const struct locks *locks = context;
    return timer_init(&lock->timer, &locks->context->loop, on_timer, lock);
}

static void take_down(void *object) {
    redlock_lock *lock = object;
    timer_finish(&lock->timer);
}

static const struct pool_kind lock_kind = {.size = sizeof(struct redlock_lock),
                                           .max_spares = 4096,
                                           .set_up = set_up,
                                           .take_down = take_down};

void locks_init(struct locks *locks, struct context *context) {
    locks->context = context;
    locks->has_read = false;
    pool_init(&locks->pool, &context->allocator, &lock_kind, locks);
    TAILQ_INIT(&locks->all);
    TAILQ_INIT(&locks->ended);
    queue_init(&locks->decided);
    queue_init(&locks->ready);
    TAILQ_INIT(&locks->sent);
    TAILQ_INIT(&locks->unrenewed);
}

static void lock_free(redlock_lock *lock) {
    key_drop(lock->key);
    if (lock->name != NULL) {
        key_drop(lock->name);
    }
    pool_put(&lock->locks->pool, lock);
}

void locks_finish(struct locks *locks) {
    while (!TAILQ_EMPTY(&locks->ended)) {
        redlock_lock *lock = TAILQ_FIRST(&locks->ended);
        TAILQ_REMOVE(&locks->ended, lock, all_link);
        lock_free(lock);
    }
    pool_finish(&locks->pool);
}

static struct key *create_keys(struct keys *keys, const redlock_request *request) {
    size_t length;
    const char *name = options_key(request, 0, &length);
    struct key *first = key_create(keys, name, length, request->mode);
    for (size_t i = 1; first != NULL && i < request->key_count; i++) {
        name = options_key(request, i, &length);
        if (!key_append(first, name, length)) {
            key_drop(first);
            first = NULL;
        }
    }
    return first;
}

redlock_lock *lock_create(struct locks *locks, const redlock_request *request,
                          redlock_cb *on_acquired, void *arg) {
    redlock_lock *lock = pool_take(&locks->pool);
    if (lock == NULL) {
        return NULL;
    }
    lock->key = create_keys(&locks->context->keys, request);
    if (lock->key == NULL) {
        pool_put(&locks->pool, lock);
        return NULL;
    }
    lock->name = request->permits > 0 ? key_hold(lock->key) : NULL; /* its first try has the key */
    lock->locks = locks;
    lock->flight = lock->tried = NULL;
    lock->events = lock->news = 0;
    lock->queue = NULL;
    lock->is_sent = lock->is_unrenewed = lock->is_closed = false;
    lock->replicas = request->wait_replicas;
    lock->on_acquired = (struct lock_callback){on_acquired, arg};
    lock->on_lost = (struct lock_callback){request->on_lost, request->on_lost_arg};
    lock->on_extended = lock->on_released = (struct lock_callback){NULL, NULL};
    TAILQ_INSERT_TAIL(&locks->all, lock, all_link);
    return lock;
}

/* ---- carrying out ---- */

/* The votes of a flight that the lock lets go of no longer concern it. */
static void let_go(struct flight **flight) {
    if (*flight != NULL) {
        (*flight)->listener = FLIGHT_UNATTENDED;
        flight_drop(*flight);
        *flight = NULL;
    }
}

/* SETs go out at once, scripts at the end of the turn: unless they are about the same key. */
static void set_now(struct context *context, struct flight *flight, uint32_t nodes) {
    if (batch_may_hold(context, flight->key)) {
        batch_send_all(context);
    }
    flight_send_set(flight, nodes);
}

/* What takes the key; SCRIPT_COUNT: SET does. A writer that is topped up meets no readers. */
static enum script script_to_take(const redlock_lock *lock, bool is_new) {
    bool is_fenced = lock->lease.terms.fenced;
    if (lock->lease.terms.permits > 0 && is_new) {
        return SCRIPT_PERMIT;
    }
    if (lock->key->mode == REDLOCK_READER) {
        return SCRIPT_SHARE;
    }
    if (lock->key->mode == REDLOCK_WRITER && is_new) {
        return is_fenced ? SCRIPT_WRITE_FENCED : SCRIPT_WRITE;
    }
    return is_fenced || lock->key->count > 1 ? SCRIPT_TAKE : SCRIPT_COUNT;
}

/* What is new goes with the other scripts of the turn; a top-up at once, after those before it. */
static void take(const redlock_lock *lock, struct flight *flight, uint32_t nodes, bool is_new) {
    struct context *context = lock->locks->context;
    enum script script = script_to_take(lock, is_new);
    if (script == SCRIPT_COUNT) {
        set_now(context, flight, nodes);
    } else if (is_new) {
        batch_add(context, script, flight_prepare_take(flight, nodes), flight);
    } else {
        batch_send_alone(context, script, flight_prepare_take(flight, nodes), flight);
    }
}

static void top_up(redlock_lock *lock, uint32_t nodes, uint64_t ttl, uint64_t now) {
    struct flight_plan plan = {.kind = ROUND_ACQUIRE,
                               .key = lock->key,
                               .token = lock->token,
                               .now = now,
                               .ttl = ttl,
                               .lock_delay = lock->lease.terms.lock_delay,
                               .is_fenced = lock->lease.terms.fenced,
                               .fence = lock->lease.fence};
    struct flight *flight =
        ttl >= NANOS_PER_MS ? flight_create(lock->locks->context, FLIGHT_UNATTENDED, &plan) : NULL;
    if (flight != NULL) {
        take(lock, flight, nodes, false);
        flight_drop(flight);
    }
}

static enum script script_of(const redlock_lock *lock, enum round_kind kind, uint64_t now) {
    switch (kind) {
    case ROUND_RELEASE: /* the counter stays */
        return release_script(lock->key, lock->lease.stay_until, now);
    case ROUND_SETTLE:
        return release_script(lock->key, 0, now);
    default:
        return lock->key->mode == REDLOCK_READER ? SCRIPT_SHARE_KEEP
               : lock->lease.terms.fenced        ? SCRIPT_KEEP
                                                 : SCRIPT_RENEW;
    }
}

/* False when there is no memory for the key of the permit that is to be tried. */
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

/* What makes a round a try: what is to be had, and what it is to grow by. */
static void plan_try(const redlock_lock *lock, struct flight_plan *plan) {
    const struct lease_terms *terms = &lock->lease.terms;
    plan->step = 1;
    plan->permits = terms->permits;
    if (lock->key->mode == REDLOCK_WRITER) {
        plan->intent_ms = nanos_to_ms(lease_next_try_within(&lock->lease, plan->now));
    }
    if (terms->fenced) {
        plan->fence =
            fence_hint(clock_wall_us()); /* so that lost counters begin above their past */
    }
}

static struct flight_plan plan_round(const redlock_lock *lock, enum round_kind kind,
                                     uint32_t awaited, uint64_t now) {
    const struct lease *lease = &lock->lease;
    bool is_release = kind == ROUND_RELEASE || kind == ROUND_SETTLE;
    struct flight_plan plan = {.kind = kind,
                               .key = lock->key,
                               .token = lock->token,
                               .now = now,
                               .ttl = lease_round_ttl(lease),
                               .lock_delay = lease->terms.lock_delay,
                               .awaited = awaited,
                               .may_hold = lease->may_hold,
                               .keep_until = nanos_add(now, lease->longest_ttl),
                               .stay_until = kind == ROUND_RELEASE ? lease->stay_until : 0,
                               .is_fenced = lease->terms.fenced,
                               .fence = lease->fence,
                               .replicas = is_release ? 0 : lock->replicas};
    if (kind == ROUND_ACQUIRE) {
        plan_try(lock, &plan);
    }
    return plan;
}

/* False when there is no memory for the round. */
static bool begin_round(redlock_lock *lock, enum round_kind kind, uint32_t awaited, uint64_t now) {
    struct context *context = lock->locks->context;
    if (kind == ROUND_ACQUIRE) {
        if (!change_key(lock)) {
            return false;
        }
        random_token(lock->token);
    }
    struct flight_plan plan = plan_round(lock, kind, awaited, now);
    struct flight_listener listener = {on_vote, lock};
    struct flight *flight = flight_create(context, listener, &plan);
    if (flight == NULL) {
        return false;
    }
    if (kind == ROUND_SETTLE) {
        lock->flight->listener = FLIGHT_UNATTENDED;
        lock->tried = lock->flight;
    } else {
        let_go(&lock->flight);
    }
    lock->flight = flight;
    lock->events &= /* they were about the last one */
        ~(unsigned)(LOCK_DECIDED | LOCK_LATE_VOTE | LOCK_NO_MEMORY);
    if (!lock->is_sent) {
        lock->is_sent = true;
        TAILQ_INSERT_TAIL(&lock->locks->sent, lock, sent_link);
    }
    uint32_t all = flight->round.members;
    if (kind == ROUND_ACQUIRE) {
        take(lock, flight, all, true);
    } else {
        batch_add(context, script_of(lock, kind, now), all, flight);
    }
    return true;
}

static void note_news(redlock_lock *lock, const struct lease_update *update) {
    lock->news |= update->news;
    if (update->news & LEASE_ACQUIRED) {
        lock->acquired = update->acquired;
    }
    if (update->news & LEASE_EXTENDED) {
        lock->extended = update->extended;
    }
    if (update->news & LEASE_LOSS) {
        lock->loss = update->loss;
    }
    if (update->news & LEASE_RELEASED) {
        lock->released = update->released;
    }
    if (lock->news != 0) {
        make_ready(lock);
    }
}

static void note_unrenewed(redlock_lock *lock) {
    struct lock_list *list = &lock->locks->unrenewed;
    if (lock->is_unrenewed == lock->lease.is_unrenewed) {
        return;
    }
    lock->is_unrenewed = lock->lease.is_unrenewed;
    if (lock->is_unrenewed) {
        TAILQ_INSERT_TAIL(list, lock, unrenewed_link);
    } else {
        TAILQ_REMOVE(list, lock, unrenewed_link);
    }
}

static void set_timer(redlock_lock *lock) {
    if (!timer_set(&lock->timer, lock->lease.wake_at)) {
        raise_event(lock, LOCK_WOKEN); /* without a timer the lock asks every turn */
    }
}

static void log_state(const redlock_lock *lock, enum lease_state before) {
    const struct log *log = &lock->locks->context->log;
    if (before == lock->lease.state) {
        return;
    }
    redlock_log_level level =
        lock->lease.state == LEASE_LOST ? REDLOCK_LOG_WARN : REDLOCK_LOG_DEBUG;
    if (log_wants(log, level)) {
        log_line(log, level, "lock %s: %s -> %s", lock->key->bytes, lease_state_name(before),
                 lease_state_name(lock->lease.state));
    }
}

void lock_carry_out(redlock_lock *lock, const struct lease_update *update, enum lease_state before,
                    uint64_t now) {
    log_state(lock, before);
    struct context *context = lock->locks->context;
    if (update->undo != 0) {
        lock->flight->is_void = true;
        const struct owed owed = {.key = lock->key,
                                  .token = lock->token,
                                  .until = nanos_add(now, lock->lease.longest_ttl)};
        release_unattended(context, &owed, update->undo, now);
    }
    if (update->send && !begin_round(lock, update->round, update->awaited, now)) {
        raise_event(lock, LOCK_NO_MEMORY);
    }
    if (update->top_up != 0) {
        top_up(lock, update->top_up, update->top_up_ttl, now);
    }
    if (update->top_up_later) {
        raise_event(lock, LOCK_LATE_VOTE); /* what is due is told before it is dealt with */
    }
    set_timer(lock);
    note_unrenewed(lock);
    note_news(lock, update);
    context_wake(context);
}

/* ---- the turn ---- */

/* A closing client gave up its locks by itself: who holds a handle does not know until on_closed.
 */
static void lock_end(redlock_lock *lock) {
    struct locks *locks = lock->locks;
    unqueue(lock);
    if (lock->is_sent) {
        TAILQ_REMOVE(&locks->sent, lock, sent_link);
        lock->is_sent = false;
    }
    if (lock->is_unrenewed) {
        TAILQ_REMOVE(&locks->unrenewed, lock, unrenewed_link);
        lock->is_unrenewed = false;
    }
    TAILQ_REMOVE(&locks->all, lock, all_link);
    timer_clear(&lock->timer);
    let_go(&lock->flight);
    let_go(&lock->tried);
    if (locks->context->is_closing) {
        TAILQ_INSERT_TAIL(&locks->ended, lock, all_link);
    } else {
        lock_free(lock);
    }
}

/* What has arrived is not late: it is read before anybody is called so, once a turn. */
static void read_arrived(struct locks *locks) {
    const struct members *members = &locks->context->members;
    if (!locks->has_read) {
        locks->has_read = true;
        uint32_t rest = members_all(members);
        struct node *node;
        while ((node = members_take(members, &rest)) != NULL) {
            node_read(node);
        }
    }
}

static struct flight *open_flight(const redlock_lock *lock) {
    return lock->flight != NULL && lock->flight->round.verdict == ROUND_OPEN ? lock->flight : NULL;
}

/* The status of a failed acquisition is that of the votes that its report will show. */
static void reconsider(redlock_lock *lock) {
    const struct flight *tried = lock->tried != NULL ? lock->tried : lock->flight;
    if (tried != NULL) {
        lease_reconsider(&lock->lease, &tried->round);
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
        lease_woken(&lock->lease, flight != NULL ? &flight->round : NULL, now, update);
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
        lease_hurry(&lock->lease, &lock->flight->round, now, &update);
    } else if (event == LOCK_LATE_VOTE) {
        lease_late_votes(&lock->lease, &lock->flight->round, now, &update);
    } else {
        lease_out_of_memory(&lock->lease, now, &update);
    }
    lock_carry_out(lock, &update, before, now);
}

/* What an event leads to is told before the next is dealt with: a yes, while it is fresh. */
static void handle_events(redlock_lock *lock) {
    static const enum lock_event order[] = {LOCK_NO_MEMORY, LOCK_DECIDED, LOCK_WOKEN,
                                            LOCK_LATE_VOTE, LOCK_HURRIED};
    for (unsigned i = 0; i < sizeof(order) / sizeof(order[0]) && lock->news == 0; i++) {
        if (lock->events & order[i]) {
            lock->events &= ~(unsigned)order[i];
            on_event(lock, order[i]);
        }
    }
}

/* Takes one piece of news off the lock. */
static bool take_news(redlock_lock *lock, enum lease_news news) {
    bool is_due = lock->news & news;
    lock->news &= ~(unsigned)news;
    return is_due;
}

static void call(redlock_lock *lock, struct lock_callback callback, redlock_status status) {
    if (callback.call != NULL) {
        callback.call(lock, status, callback.arg);
    }
}

/* What the extension led to was sent first: so much time may have passed meanwhile. */
static redlock_status fresh_extension(const redlock_lock *lock) {
    uint64_t end =
        lock->lease.validity_end; /* 0: it was released or closed since, and is told so */
    bool is_over = lock->extended == REDLOCK_OK && end != 0 && clock_now() >= end;
    return is_over ? REDLOCK_EEXPIRED : lock->extended;
}

/* True when the handle has ended. */
static bool tell(redlock_lock *lock) {
    if (take_news(lock, LEASE_EXTENDED)) {
        call(lock, lock->on_extended, fresh_extension(lock));
    }
    if (take_news(lock, LEASE_ACQUIRED)) {
        redlock_status status = lock->acquired;
        call(lock, lock->on_acquired, status);
        if (status != REDLOCK_OK) {
            return true;
        }
    }
    if (lock->news & LEASE_EXTENDED) {
        return false; /* extended and closed inside a callback: it ends first, in the next turn */
    }
    if (take_news(lock, LEASE_LOSS)) {
        call(lock, lock->on_lost, lock->loss);
    }
    if (take_news(lock, LEASE_RELEASED)) {
        call(lock, lock->on_released, lock->released);
        return true;
    }
    return false;
}

static void lock_close(redlock_lock *lock) {
    struct locks *locks = lock->locks;
    struct lease_update update = {0};
    enum lease_state before = lock->lease.state;
    uint64_t now = clock_now();
    lock->is_closed = true;
    TAILQ_REMOVE(&locks->all, lock, all_link);
    TAILQ_INSERT_TAIL(&locks->all, lock, all_link);
    if (before == LEASE_OVER) {
        return;
    }
    const struct flight *flight = lock->flight;
    lease_close(&lock->lease, flight != NULL ? &flight->round : NULL, now, &update);
    lock_carry_out(lock, &update, before, now);
}

bool locks_are_open(const struct locks *locks) {
    const redlock_lock *first = TAILQ_FIRST(&locks->all);
    return first != NULL && !first->is_closed;
}

/* What has happened meanwhile is not told any more when the client closes. */
static void lock_turn(redlock_lock *lock) {
    if (lock->locks->context->is_closing && !lock->is_closed) {
        lock_close(lock);
    }
    handle_events(lock);
    if (lock->news != 0 && tell(lock)) {
        lock_end(lock);
    } else if (lock->events != 0) {
        make_ready(lock);
    }
}

/* Its holder is told before anything is sent: the release leaves at the end of the turn. */
static void close_some(struct locks *locks) {
    for (unsigned i = 0; i < LOCKS_PER_TURN && locks_are_open(locks); i++) {
        lock_turn(TAILQ_FIRST(&locks->all));
    }
}

static unsigned due_in(const struct lock_queue *queue) {
    return queue->count < LOCKS_PER_TURN ? queue->count : LOCKS_PER_TURN;
}

static void deal_with(struct lock_queue *queue, unsigned count) {
    for (; count > 0 && queue->count > 0; count--) {
        redlock_lock *lock = TAILQ_FIRST(&queue->list);
        unqueue(lock);
        lock_turn(lock);
    }
}

/* Those that come up meanwhile stay for the next turn. */
void locks_turn(struct locks *locks) {
    unsigned verdicts = due_in(&locks->decided);
    unsigned others = due_in(&locks->ready);
    locks->has_read = false;
    if (locks->context->is_closing) {
        close_some(locks);
    }
    deal_with(&locks->decided, verdicts);
    deal_with(&locks->ready, others);
}

bool locks_are_ready(const struct locks *locks) {
    return locks->decided.count > 0 || locks->ready.count > 0;
}

void locks_wake(struct locks *locks) {
    redlock_lock *lock;
    TAILQ_FOREACH(lock, &locks->all, all_link) {
        if (lock->lease.wake_at != NANOS_NEVER) {
            raise_event(lock, LOCK_WOKEN);
        }
    }
}

void locks_hurry(struct locks *locks) {
    redlock_lock *lock;
    TAILQ_FOREACH(lock, &locks->unrenewed, unrenewed_link) {
        raise_event(lock, LOCK_HURRIED);
    }
}

void locks_move(struct locks *locks) {
    uint32_t members = members_all(&locks->context->members);
    redlock_lock *lock;
    TAILQ_FOREACH(lock, &locks->all, all_link) {
        struct lease_update update;
        uint64_t now = clock_now();
        lease_move(&lock->lease, members, now, &update);
        lock_carry_out(lock, &update, lock->lease.state, now);
    }
}

void locks_sent(struct locks *locks) {
    uint64_t now = TAILQ_EMPTY(&locks->sent) ? 0 : clock_now();
    while (!TAILQ_EMPTY(&locks->sent)) {
        redlock_lock *lock = TAILQ_FIRST(&locks->sent);
        TAILQ_REMOVE(&locks->sent, lock, sent_link);
        lock->is_sent = false;
        lease_sent(&lock->lease, now);
        set_timer(lock);
    }
}
