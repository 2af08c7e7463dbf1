/*
 * The happy path: payment_send takes debts from the front, and makes each a round of its own; the
 * calls of release scripts are shared by many. Each vote is reported to the node (node_paid), which
 * has the rest paid behind the last one. The bounds on a payment keep half of the node's room free
 * for locks, and a turn short.
 *
 * Failures: a release that fails again becomes a debt again (flight.c), and so does one without
 * memory for its round (send.c). A first release that is longer than half of the room is sent
 * alone, so that it does not stay in the way of the others.
 */
#include "round/payment.h"

#include "io/clock.h"
#include "wire/command.h"

#include <string.h>

/* The most calls of a payment, so that a turn does not take long. */
#define PAYMENT_CALLS_MAX 64

/* An upper bound on the bytes of one key's release beside its names: the token, and all headers. */
#define RELEASE_BYTES 128

/* The calls and bytes that may still be sent, and the load of the last call of each script. */
struct payment {
    uint32_t calls;
    size_t bytes;
    struct {
        unsigned keys;
        size_t bytes;
    } last[SCRIPT_COUNT];
};

/* Begins a payment that may take half of the free room: the rest is for locks. */
static void payment_init(struct payment *payment, const struct node *node) {
    struct node_room room = node_room(node);
    *payment =
        (struct payment){.calls = room.commands / 2 + room.commands % 2, .bytes = room.bytes / 2};
    if (payment->calls > PAYMENT_CALLS_MAX) {
        payment->calls = PAYMENT_CALLS_MAX;
    }
}

/* Returns an upper bound on the bytes that the release of a list of keys adds to a call. */
static size_t length_of(const struct rounds *rounds, enum script script, const struct key *first) {
    size_t owner = strlen(rounds->flights.context->owner);
    size_t length = 0;
    for (const struct key *key = first; key != NULL; key = key->next) {
        length += script_names(script) * (size_t)key->length + RELEASE_BYTES + owner;
    }
    return length;
}

/* Counts a release in. Returns false if the release goes beyond the calls or bytes left. */
static bool payment_takes(struct payment *payment, const struct rounds *rounds, enum script script,
                          const struct key *key) {
    unsigned keys = payment->last[script].keys;
    size_t bytes = payment->last[script].bytes;
    size_t length = length_of(rounds, script, key);
    bool is_new_call = keys == 0 || batches_are_full(&rounds->batches, keys, bytes);
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

static void pay_first(struct rounds *rounds, struct node *node, uint64_t now) {
    const struct owed *owed = &STAILQ_FIRST(&node->debts.list)->owed;
    struct flight_listener listener = {.owner = node, .on_vote = on_vote};
    node->payments++;
    if (!round_send_release(rounds, listener, owed, node_bit(node), now)) {
        node->payments--;
    }
    debts_drop_first(&node->debts);
}

void payment_send(struct rounds *rounds, struct node *node) {
    uint64_t now = clock_now();
    struct payment payment;
    bool has_room = true;
    payment_init(&payment, node);
    bool is_first = payment.calls > 0; /* a release longer than half of the room is sent alone */
    while (has_room && node->debts.count > 0) {
        const struct owed *owed = &STAILQ_FIRST(&node->debts.list)->owed;
        enum script script = round_release_script(owed->kind, owed->ticket, owed->stay_until, now);
        if (owed->until <= now) {
            debts_drop_first(&node->debts);
        } else if (payment_takes(&payment, rounds, script, owed->key) || is_first) {
            pay_first(rounds, node, now);
            is_first = false;
        } else {
            has_room = false;
        }
    }
    context_wake(rounds->flights.context);
}
