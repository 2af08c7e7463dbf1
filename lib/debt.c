#include "debt.h"

#include "base/memory.h"

#include <string.h>

void debts_init(struct debts *debts, const redlock_allocator *allocator) {
    debts->allocator = allocator;
    debts->count = 0;
    STAILQ_INIT(&debts->list);
}

void debts_finish(struct debts *debts) {
    while (debts->count > 0) {
        debts_drop_first(debts);
    }
}

bool debts_add(struct debts *debts, struct key *key, const char *token, uint64_t until,
               uint64_t now) {
    debts_drop_expired(debts, now);
    struct debt *debt =
        debts->count < DEBTS_MAX ? memory_alloc(debts->allocator, sizeof(*debt)) : NULL;
    if (debt == NULL) {
        return false;
    }
    debt->key = key_hold(key);
    memcpy(debt->token, token, sizeof(debt->token));
    debt->until = until;
    STAILQ_INSERT_TAIL(&debts->list, debt, link);
    debts->count++;
    return true;
}

void debts_drop_expired(struct debts *debts, uint64_t now) {
    while (debts->count > 0 && STAILQ_FIRST(&debts->list)->until <= now) {
        debts_drop_first(debts);
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
    key_drop(debt->key);
    memory_free(debts->allocator, debt);
}
