#include "lock/waiters.h"

#include "base/memory.h"
#include "lock/lock_state.h"

#include <stdint.h>
#include <string.h>

#define LISTS_LEAST 64 /* a power of two */

void waiters_init(struct waiters *waiters, const redlock_allocator *allocator) {
    *waiters = (struct waiters){.allocator = allocator};
}

void waiters_finish(struct waiters *waiters) {
    memory_free(waiters->allocator, waiters->lists);
}

/* Returns the list for a token, by its first 8 bytes: a search may know no more digits. */
static struct waiter_list *waiter_list_of(struct waiter_list *lists, unsigned count,
                                          const unsigned char *token) {
    uint64_t bits;
    memcpy(&bits, token, sizeof(bits));
    uint64_t hash = bits * UINT64_C(0x9e3779b97f4a7c15); /* 2^64 / golden ratio */
    return &lists[(hash >> 32) & (count - 1)];           /* `count` is a power of two */
}

static void move_all(struct waiters *waiters, struct waiter_list *lists, unsigned count) {
    for (unsigned i = 0; i < waiters->list_count; i++) {
        redlock_lock *lock;
        while ((lock = LIST_FIRST(&waiters->lists[i])) != NULL) {
            LIST_REMOVE(lock, wait->waiter_link);
            LIST_INSERT_HEAD(waiter_list_of(lists, count, lock->token), lock, wait->waiter_link);
        }
    }
}

/* Makes room for one more lock. Returns false only if there is no list at all. */
static bool grow(struct waiters *waiters) {
    /* No more locks than lists: a search looks at one or two, however many wait. */
    if (waiters->count < waiters->list_count) {
        return true;
    }
    unsigned count = waiters->list_count > 0 ? 2 * waiters->list_count : LISTS_LEAST;
    struct waiter_list *lists = memory_zalloc(waiters->allocator, count * sizeof(*lists));
    if (lists == NULL) {
        return waiters->lists != NULL; /* the lists that exist get longer */
    }
    move_all(waiters, lists, count);
    memory_free(waiters->allocator, waiters->lists);
    waiters->lists = lists;
    waiters->list_count = count;
    return true;
}

bool waiters_add(struct waiters *waiters, redlock_lock *lock) {
    if (!grow(waiters)) {
        return false;
    }
    struct waiter_list *list = waiter_list_of(waiters->lists, waiters->list_count, lock->token);
    LIST_INSERT_HEAD(list, lock, wait->waiter_link);
    lock->wait->is_waiter = true;
    waiters->count++;
    return true;
}

void waiters_remove(struct waiters *waiters, redlock_lock *lock) {
    if (lock->wait != NULL && lock->wait->is_waiter) {
        LIST_REMOVE(lock, wait->waiter_link);
        lock->wait->is_waiter = false;
        waiters->count--;
    }
}

redlock_lock *waiters_find(const struct waiters *waiters, const char *token, size_t length) {
    unsigned char packed[TOKEN_BYTES];
    if (waiters->lists == NULL) {
        return NULL;
    }
    token_pack(packed, token);
    redlock_lock *lock;
    LIST_FOREACH(lock, waiter_list_of(waiters->lists, waiters->list_count, packed),
                 wait->waiter_link) {
        if (memcmp(lock->token, packed, length / 2) == 0) {
            return lock;
        }
    }
    return NULL;
}
