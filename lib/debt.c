#include "debt.h"

#include "base/memory.h"
#include "base/nanos.h"

#include <string.h>

/* Fewer than this are not worth a sweep. */
#define SWEEP_LEAST 64

void debts_init(struct debts *debts, const redlock_allocator *allocator) {
    debts->allocator = allocator;
    debts->count = 0;
    debts->sweep_at = SWEEP_LEAST;
    debts->first_until = NANOS_NEVER;
    STAILQ_INIT(&debts->list);
}

void debts_finish(struct debts *debts) {
    while (debts->count > 0) {
        debts_drop_first(debts);
    }
}

bool debts_add(struct debts *debts, const struct owed *owed, uint64_t now) {
    if (debts->count >= debts->sweep_at && debts->first_until <= now) {
        debts_drop_expired(debts, now);
        size_t twice = debts->count < SWEEP_LEAST / 2 ? SWEEP_LEAST : 2 * debts->count;
        debts->sweep_at = twice < DEBTS_MAX ? twice : DEBTS_MAX;
    }
    struct debt *debt =
        debts->count < DEBTS_MAX ? memory_alloc(debts->allocator, sizeof(*debt)) : NULL;
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

void debts_take(struct debts *debts, struct debts *taken) {
    STAILQ_CONCAT(&taken->list, &debts->list);
    taken->count = debts->count;
    debts->count = 0;
}

void debts_drop_first(struct debts *debts) {
    struct debt *debt = STAILQ_FIRST(&debts->list);
    STAILQ_REMOVE_HEAD(&debts->list, link);
    debts->count--;
    key_drop(debt->owed.key);
    memory_free(debts->allocator, debt);
}
