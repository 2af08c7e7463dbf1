#include "release.h"

#include "batch.h"
#include "flight.h"
#include "io/clock.h"

#include <string.h>

enum script release_script(const struct key *key, uint64_t stay_until, uint64_t now) {
    if (key->mode == REDLOCK_READER) {
        return SCRIPT_SHARE_END;
    }
    return now < stay_until ? SCRIPT_STAY : SCRIPT_RELEASE;
}

static bool release_for(struct context *context, const struct owed *owed, uint32_t nodes,
                        uint64_t now, struct flight_listener listener) {
    struct flight_plan plan = {.kind = ROUND_SETTLE,
                               .key = owed->key,
                               .token = owed->token,
                               .now = now,
                               .may_hold = nodes,
                               .keep_until = owed->until,
                               .stay_until = owed->stay_until};
    struct flight *flight = flight_create(context, listener, &plan);
    if (flight == NULL) {
        log_line(&context->log, REDLOCK_LOG_WARN,
                 "lock %s: no memory to release it; its TTL frees it", owed->key->bytes);
        return false;
    }
    batch_add(context, release_script(owed->key, owed->stay_until, now), nodes, flight);
    flight_drop(flight);
    return true;
}

void release_unattended(struct context *context, const struct owed *owed, uint32_t nodes,
                        uint64_t now) {
    release_for(context, owed, nodes, now, FLIGHT_UNATTENDED);
}

/* ---- debts ---- */

/* One payment has no more calls: a turn is not to take long. */
#define PAYMENT_CALLS_MAX 64

/* More than a key's release takes beside its name: the token, and the headers of all. */
#define RELEASE_BYTES 128

/* How much may still be sent, and what the last call of each script has. */
struct payment {
    uint32_t calls;
    size_t bytes;
    struct {
        unsigned keys;
        size_t bytes;
    } last[SCRIPT_COUNT];
};

/* Half of what is free: the rest is for those who want locks. */
static void payment_init(struct payment *payment, const struct node *node) {
    struct node_room room = node_room(node);
    *payment =
        (struct payment){.calls = room.commands / 2 + room.commands % 2, .bytes = room.bytes / 2};
    if (payment->calls > PAYMENT_CALLS_MAX) {
        payment->calls = PAYMENT_CALLS_MAX;
    }
}

static size_t length_of(const struct context *context, const struct key *first) {
    size_t length = 0;
    for (const struct key *key = first; key != NULL; key = key->next) {
        size_t names = key->mode == REDLOCK_READER ? 2 * (size_t)key->length : key->length;
        length += names + RELEASE_BYTES + strlen(context->owner);
    }
    return length;
}

/* Counts a release in, unless it goes beyond what may be sent. */
static bool payment_takes(struct payment *payment, const struct context *context,
                          enum script script, const struct key *key) {
    unsigned keys = payment->last[script].keys;
    size_t bytes = payment->last[script].bytes;
    size_t length = length_of(context, key);
    bool is_new_call = keys == 0 || batch_is_full(context, keys, bytes);
    if ((is_new_call && payment->calls == 0) || length > payment->bytes) {
        return false;
    }
    payment->calls -= is_new_call;
    payment->bytes -= length;
    payment->last[script].keys = is_new_call ? key->count : keys + key->count;
    payment->last[script].bytes = is_new_call ? length : bytes + length;
    return true;
}

static void on_vote(void *owner, bool decided, redlock_vote vote) {
    (void)decided;
    node_paid(owner, vote);
}

static void pay_first(struct node *node, uint64_t now) {
    const struct owed *owed = &STAILQ_FIRST(&node->debts.list)->owed;
    struct flight_listener listener = {.owner = node, .on_vote = on_vote};
    node->payments++;
    if (!release_for(node->context, owed, UINT32_C(1) << node->index, now, listener)) {
        node->payments--;
    }
    debts_drop_first(&node->debts);
}

void release_debts(struct node *node) {
    struct context *context = node->context;
    uint64_t now = clock_now();
    struct payment payment;
    bool has_room = true;
    payment_init(&payment, node);
    bool is_first = payment.calls > 0; /* one that is longer than half of the room is sent alone */
    while (has_room && node->debts.count > 0) {
        const struct owed *owed = &STAILQ_FIRST(&node->debts.list)->owed;
        enum script script = release_script(owed->key, owed->stay_until, now);
        if (owed->until <= now) {
            debts_drop_first(&node->debts);
        } else if (payment_takes(&payment, context, script, owed->key) || is_first) {
            pay_first(node, now);
            is_first = false;
        } else {
            has_room = false;
        }
    }
    context_wake(context);
}
