#include "release.h"

#include "batch.h"
#include "flight.h"
#include "io/clock.h"

void release_unattended(struct context *context, struct key *key, const char *token, uint32_t nodes,
                        uint64_t now, uint64_t until) {
    struct flight_plan plan = {.kind = ROUND_SETTLE,
                               .key = key,
                               .token = token,
                               .now = now,
                               .may_hold = nodes,
                               .keep_until = until};
    struct flight *flight = flight_create(context, FLIGHT_UNATTENDED, &plan);
    if (flight == NULL) {
        log_line(&context->log, REDLOCK_LOG_WARN,
                 "lock %s: no memory to release it; its TTL frees it", key->bytes);
        return;
    }
    batch_add(context, SCRIPT_RELEASE, nodes, flight);
    flight_drop(flight);
}

void release_debts(struct node *node) {
    struct context *context = node->context;
    uint64_t now = clock_now();
    struct debts due;
    debts_init(&due, &context->allocator);
    debts_take(&node->debts, &due);
    while (due.count > 0) {
        const struct debt *debt = STAILQ_FIRST(&due.list);
        if (debt->until > now) {
            release_unattended(context, debt->key, debt->token, UINT32_C(1) << node->index, now,
                               debt->until);
        }
        debts_drop_first(&due);
    }
    context_wake(context);
}
