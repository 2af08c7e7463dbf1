/*
 * The happy path: debts_add appends a copy of a release; a payment (round/payment.c) takes the
 * first debt, sends the release, and drops the debt. So each debt is paid once, the oldest first.
 *
 * Failures: a release that fails again is added again, at the end. Beyond a bound, or without
 * memory, a release is refused. Expired debts are swept out to make room, seldom, because a sweep
 * looks at all debts: when a bound is reached or their number has doubled since the last sweep, and
 * only if the first of them may have expired.
 */
#include "node/debt.h"

#include "base/memory.h"
#include "base/nanos.h"

#include <string.h>

/* The least number of debts that is worth a sweep. */
#define SWEEP_LEAST 64

void debts_init(struct debts *debts, const redlock_allocator *allocator, size_t max_bytes) {
    debts->allocator = allocator;
    debts->count = debts->bytes = 0;
    debts->max_bytes = max_bytes > DEBTS_BYTES_LEAST ? max_bytes : DEBTS_BYTES_LEAST;
    debts->sweep_at = SWEEP_LEAST;
    debts->first_until = NANOS_NEVER;
    STAILQ_INIT(&debts->list);
}

void debts_finish(struct debts *debts) {
    while (debts->count > 0) {
        debts_drop_first(debts);
    }
}

static size_t size_of(const struct owed *owed) {
    size_t size = sizeof(struct debt);
    for (const struct key *key = owed->key; key != NULL; key = key->next) {
        size += sizeof(*key) + key->length + 1;
    }
    return size;
}

static bool has_room(const struct debts *debts, size_t size) {
    return debts->count < DEBTS_MAX && size <= debts->max_bytes &&
           debts->bytes <= debts->max_bytes - size;
}

bool debts_add(struct debts *debts, const struct owed *owed, uint64_t now) {
    size_t size = size_of(owed);
    bool is_due = debts->count >= debts->sweep_at || !has_room(debts, size);
    if (is_due && debts->first_until <= now) {
        debts_drop_expired(debts, now);
        size_t twice = debts->count < SWEEP_LEAST / 2 ? SWEEP_LEAST : 2 * debts->count;
        debts->sweep_at = twice < DEBTS_MAX ? twice : DEBTS_MAX;
    }
    struct debt *debt =
        has_room(debts, size) ? memory_alloc(debts->allocator, sizeof(*debt)) : NULL;
    if (debt == NULL) {
        return false;
    }
    debt->owed = *owed;
    debt->owed.key = key_hold(owed->key);
    memcpy(debt->token, owed->token, sizeof(debt->token));
    debt->owed.token = debt->token;
    debts->first_until = nanos_min(debts->first_until, owed->until);
    STAILQ_INSERT_TAIL(&debts->list, debt, link);
    debts->count++;
    debts->bytes += size;
    return true;
}

void debts_drop_expired(struct debts *debts, uint64_t now) {
    debts->first_until = NANOS_NEVER;
    for (size_t left = debts->count; left > 0; left--) {
        struct debt *debt = STAILQ_FIRST(&debts->list);
        if (debt->owed.until <= now) {
            debts_drop_first(debts);
        } else {
            debts->first_until = nanos_min(debts->first_until, debt->owed.until);
            STAILQ_REMOVE_HEAD(&debts->list, link);
            STAILQ_INSERT_TAIL(&debts->list, debt, link);
        }
    }
}

void debts_drop_first(struct debts *debts) {
    struct debt *debt = STAILQ_FIRST(&debts->list);
    STAILQ_REMOVE_HEAD(&debts->list, link);
    debts->count--;
    debts->bytes -= size_of(&debt->owed);
    key_drop(debt->owed.key);
    memory_free(debts->allocator, debt);
}
