/*
 * A line has a holder, a contender, and a list of those that wait, of which the first `gate` are to
 * be served by the holder. It lasts as long as any lock is in it.
 */
#include "lock/lines.h"

#include "lock/lock_state.h"
#include "node/context.h"

struct line {
    LIST_ENTRY(line) link;
    struct lines *lines;
    redlock_lock *holder;
    redlock_lock *contender;
    struct lock_list waiting;
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

/* Returns whether a lock may go from one request to the other. */
static bool is_alike(const redlock_lock *one, const redlock_lock *other) {
    return one->kind == other->kind &&
           one->lease.terms->lock_delay == other->lease.terms->lock_delay &&
           key_equals(one->key, other->key);
}

/* Returns whether the kind is that of one holder: others need not wait for each other in line. */
static bool can_be_handed_over(const redlock_lock *lock) {
    return (lock_kind(lock)->features & (KIND_PERMIT | KIND_READER)) == 0 &&
           lock->lease.terms->min_hold == 0;
}

/* Returns the line of a lock, or NULL. */
static struct line *line_of(const redlock_lock *lock) {
    return lock->wait != NULL ? lock->wait->line : NULL;
}

/* Returns any lock of a line, of which all are alike. */
static const redlock_lock *member_of(const struct line *line) {
    return line->holder != NULL      ? line->holder
           : line->contender != NULL ? line->contender
                                     : TAILQ_FIRST(&line->waiting);
}

static struct line *find(struct lines *lines, const redlock_lock *lock) {
    struct line_list *list = &lines->lists[lock->key->hash & (LINES_LISTS - 1)];
    struct line *line;
    LIST_FOREACH(line, list, link) {
        if (is_alike(member_of(line), lock)) {
            return line;
        }
    }
    line = pool_take(&lines->pool);
    if (line != NULL) {
        *line = (struct line){.lines = lines};
        TAILQ_INIT(&line->waiting);
        LIST_INSERT_HEAD(list, line, link);
    }
    return line;
}

static void drop_if_empty(struct line *line) {
    if (line->holder == NULL && line->contender == NULL && line->waiting_count == 0) {
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

/* Makes the first that waits the contender, if there is none, nor a holder. Returns it, or NULL. */
static redlock_lock *promote(struct line *line) {
    redlock_lock *first = TAILQ_FIRST(&line->waiting);
    if (line->contender != NULL || line->holder != NULL || first == NULL) {
        return NULL;
    }
    take_out(line, first);
    line->contender = first;
    return first;
}

/* ---- locks ---- */

bool lines_join(struct lines *lines, redlock_lock *lock) {
    struct line *line = can_be_handed_over(lock) ? find(lines, lock) : NULL;
    lock->wait->line = line;
    lock->wait->is_gated = false;
    if (line == NULL) {
        return true;
    }
    if (line->contender == NULL && line->holder == NULL) {
        line->contender = lock;
        return true;
    }
    TAILQ_INSERT_TAIL(&line->waiting, lock, wait->line_link);
    line->waiting_count++;
    return false;
}

void lines_acquired(redlock_lock *lock) {
    struct line *line = line_of(lock);
    if (line != NULL && line->contender == lock) {
        line->holder = lock;
        line->contender = NULL;
        close_gate(line, line->lines->context->options.max_local_handoffs);
    }
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
    } else if (line->contender == lock) {
        line->contender = NULL;
    } else {
        take_out(line, lock);
    }
    redlock_lock *next = promote(line);
    drop_if_empty(line);
    return next;
}
