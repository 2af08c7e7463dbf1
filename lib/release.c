#include "release.h"

#include "batch.h"
#include "flight.h"
#include "io/clock.h"

enum script release_script(const struct key *key, uint64_t stay_until, uint64_t now) {
    if (key->mode == REDLOCK_READER) {
        return SCRIPT_SHARE_END;
    }
    return now < stay_until ? SCRIPT_STAY : SCRIPT_RELEASE;
}

void release_unattended(struct context *context, const struct owed *owed, uint32_t nodes,
                        uint64_t now) {
    struct flight_plan plan = {.kind = ROUND_SETTLE,
                               .key = owed->key,
                               .token = owed->token,
                               .now = now,
                               .may_hold = nodes,
                               .keep_until = owed->until,
                               .stay_until = owed->stay_until};
    struct flight *flight = flight_create(context, FLIGHT_UNATTENDED, &plan);
    if (flight == NULL) {
        log_line(&context->log, REDLOCK_LOG_WARN,
                 "lock %s: no memory to release it; its TTL frees it", owed->key->bytes);
        return;
    }
    batch_add(context, release_script(owed->key, owed->stay_until, now), nodes, flight);
    flight_drop(flight);
}

void release_debts(struct node *node) {
    struct context *context = node->context;
    uint64_t now = clock_now();
    struct debts due;
    debts_init(&due, &context->allocator);
    debts_take(&node->debts, &due);
    while (due.count > 0) {
        const struct owed *owed = &STAILQ_FIRST(&due.list)->owed;
        if (owed->until > now) {
            release_unattended(context, owed, UINT32_C(1) << node->index, now);
        }
        debts_drop_first(&due);
    }
    context_wake(context);
}
