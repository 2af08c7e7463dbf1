/*
 * A line has a holder, contenders, and a list of those that wait, of which the first `gate` are to
 * be served by the holder. It lasts as long as any lock is in it.
 */
#include "lock/lines.h"

#include "lock/lock_state.h"
#include "node/context.h"

/* Contenders among readers, which nodes let in together. */
#define READERS 64

struct line {
    LIST_ENTRY(line) link;
    struct lines *lines;
    redlock_lock *holder; /* NULL where a lock cannot be handed over */
    struct lock_head contending;
    struct lock_head waiting;
    unsigned contending_count;
    unsigned waiting_count;
    unsigned gate; /* number of those that wait whom the holder hands the lock over to */
};

static const struct pool_kind line_kind = {.size = sizeof(struct line), .max_spares = 256};

void lines_init(struct lines *lines, struct context *context) {
    lines->context = context;
    pool_init(&lines->pool, &context->allocator, &line_kind, NULL);
    for (unsigned i = 0; i < LINES_LISTS; i++) {
        LIST_INIT(&lines->lists[i]);
    }
}

void lines_finish(struct lines *lines) {
    pool_finish(&lines->pool);
}

/* ---- lines ---- */

bool lines_can_hand_over(const redlock_lock *lock) {
    return (lock_kind(lock)->features & (KIND_PERMIT | KIND_READER)) == 0 &&
           lock->lease.terms->min_hold == 0;
}

/* Returns the name that is waited for: of a semaphore, not of one of its permits. */
static const struct key *name_of(const redlock_lock *lock) {
    return lock->wait->name != NULL ? lock->wait->name : lock->key;
}

/* Returns whether requests stand in the same line. */
static bool is_alike(const redlock_lock *one, const redlock_lock *other) {
    return one->kind == other->kind && lines_can_hand_over(one) == lines_can_hand_over(other) &&
           one->lease.terms->lock_delay == other->lease.terms->lock_delay &&
           key_equals(name_of(one), name_of(other));
}

/*
 * Returns how many of a line may contend at the same time: each may keep a node's next waiters
 * waiting for a reservation, if this client hangs. Of a semaphore, one for each permit, and one
 * that is in line before the first of them is released.
 */
static unsigned most_contending(const redlock_lock *lock) {
    unsigned features = lock_kind(lock)->features;
    return features & KIND_PERMIT   ? 2 * lock->lease.terms->permits
           : features & KIND_READER ? READERS
                                    : 1;
}

/* Returns the line of a lock, or NULL. */
static struct line *line_of(const redlock_lock *lock) {
    return lock->wait != NULL ? lock->wait->line : NULL;
}

/* Returns any lock of a line, of which all are alike. */
static const redlock_lock *member_of(const struct line *line) {
    return line->holder != NULL         ? line->holder
           : line->contending_count > 0 ? TAILQ_FIRST(&line->contending)
                                        : TAILQ_FIRST(&line->waiting);
}

static struct line *find(struct lines *lines, const redlock_lock *lock) {
    struct line_list *list = &lines->lists[name_of(lock)->hash & (LINES_LISTS - 1)];
    struct line *line;
    LIST_FOREACH(line, list, link) {
        if (is_alike(member_of(line), lock)) {
            return line;
        }
    }
    line = pool_take(&lines->pool);
    if (line != NULL) {
        *line = (struct line){.lines = lines};
        TAILQ_INIT(&line->contending);
        TAILQ_INIT(&line->waiting);
        LIST_INSERT_HEAD(list, line, link);
    }
    return line;
}

static void drop_if_empty(struct line *line) {
    if (line->holder == NULL && line->contending_count == 0 && line->waiting_count == 0) {
        LIST_REMOVE(line, link);
        pool_put(&line->lines->pool, line);
    }
}

static void take_out(struct line *line, redlock_lock *lock) {
    TAILQ_REMOVE(&line->waiting, lock, wait->line_link);
    line->waiting_count--;
    line->gate -= lock->wait->is_gated;
    lock->wait->is_gated = false;
}

static void add_contender(struct line *line, redlock_lock *lock) {
    TAILQ_INSERT_TAIL(&line->contending, lock, wait->line_link);
    line->contending_count++;
    lock->wait->is_contending = true;
}

static void remove_contender(struct line *line, redlock_lock *lock) {
    TAILQ_REMOVE(&line->contending, lock, wait->line_link);
    line->contending_count--;
    lock->wait->is_contending = false;
}

/* Opens the gate: nobody is handed the lock any more. */
static void open_gate(struct line *line) {
    redlock_lock *lock = TAILQ_FIRST(&line->waiting);
    for (; line->gate > 0; line->gate--) {
        lock->wait->is_gated = false;
        lock = TAILQ_NEXT(lock, wait->line_link);
    }
}

/* Closes the gate over those that wait, `most` of them at the most. */
static void close_gate(struct line *line, unsigned most) {
    redlock_lock *lock = TAILQ_FIRST(&line->waiting);
    for (; lock != NULL && line->gate < most; line->gate++) {
        lock->wait->is_gated = true;
        lock = TAILQ_NEXT(lock, wait->line_link);
    }
}

/* Returns whether one more may contend. */
static bool has_room(const struct line *line, const redlock_lock *lock) {
    return line->holder == NULL && line->contending_count < most_contending(lock);
}

/* Makes the first that waits a contender, if one more may be. Returns it, or NULL. */
static redlock_lock *promote(struct line *line) {
    redlock_lock *first = TAILQ_FIRST(&line->waiting);
    if (first == NULL || !has_room(line, first)) {
        return NULL;
    }
    take_out(line, first);
    add_contender(line, first);
    return first;
}

/* ---- locks ---- */

bool lines_join(struct lines *lines, redlock_lock *lock) {
    struct line *line = find(lines, lock);
    lock->wait->line = line;
    lock->wait->is_gated = lock->wait->is_contending = false;
    if (line == NULL) {
        return true;
    }
    if (has_room(line, lock)) {
        add_contender(line, lock);
        return true;
    }
    TAILQ_INSERT_TAIL(&line->waiting, lock, wait->line_link);
    line->waiting_count++;
    return false;
}

redlock_lock *lines_acquired(redlock_lock *lock) {
    struct line *line = line_of(lock);
    if (line == NULL || !lock->wait->is_contending) {
        return NULL;
    }
    if (!lines_can_hand_over(lock)) {
        return lines_leave(lock);
    }
    remove_contender(line, lock);
    line->holder = lock;
    close_gate(line, line->lines->context->options.max_local_handoffs);
    return NULL;
}

redlock_lock *lines_next(const redlock_lock *lock) {
    const struct line *line = line_of(lock);
    bool is_holder = line != NULL && line->holder == lock;
    return is_holder && line->gate > 0 ? TAILQ_FIRST(&line->waiting) : NULL;
}

void lines_hand_over(redlock_lock *lock) {
    struct line *line = lock->wait->line;
    line->holder = TAILQ_FIRST(&line->waiting);
    take_out(line, line->holder);
    lock->wait->line = NULL;
}

redlock_lock *lines_leave(redlock_lock *lock) {
    struct line *line = line_of(lock);
    if (line == NULL) {
        return NULL;
    }
    lock->wait->line = NULL;
    if (line->holder == lock) {
        line->holder = NULL;
        open_gate(line);
    } else if (lock->wait->is_contending) {
        remove_contender(line, lock);
    } else {
        take_out(line, lock);
    }
    redlock_lock *next = promote(line);
    drop_if_empty(line);
    return next;
}
