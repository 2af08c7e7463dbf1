#include "actions_client.h"

#include "actions_log.h"
#include "chance.h"
#include "parsed_call.h"

#include "lock/lock.h"
#include "lock/pushes.h"
#include "node/node.h"
#include "wire/push.h"
#include "wire/token.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static struct {
    int log;
    bool (*is_held)(const char *token, void *arg);
    void *arg;
} logged = {.log = -1};

static void append(uint64_t at_ns, enum frame_kind kind, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void append(uint64_t at_ns, enum frame_kind kind, const char *format, ...) {
    char text[256];
    va_list values;
    int length;

    if (logged.log < 0) {
        return;
    }
    va_start(values, format);
    length = vsnprintf(text, sizeof(text), format, values);
    va_end(values);
    if (frame_write(logged.log, at_ns, kind, text, (size_t)length) != 0) {
        perror("redlock-chaos: cannot write the log of actions");
        _exit(EXIT_FAILURE);
    }
}

void actions_client_begin(int log, bool (*is_held)(const char *token, void *arg), void *arg) {
    logged.log = log;
    logged.is_held = is_held;
    logged.arg = arg;
}

bool actions_client_has_token(const redlock_lock *lock, const char *token) {
    char own[TOKEN_LENGTH + 1];

    token_unpack(own, lock->token);
    return strcmp(own, token) == 0;
}

/* Returns a lock's key, and its token, as the log has them: keys are numbers. */
static const char *name_of(const redlock_lock *lock) {
    static char name[64];
    char token[TOKEN_LENGTH + 1];

    token_unpack(token, lock->token);
    snprintf(name, sizeof(name), "%s %s", lock->key->bytes + strlen(KEY_PREFIX), token);
    return name;
}

/* Returns a mask of the nodes that the lock counts; 0: it was handed over. */
static uint32_t votes_of(const redlock_lock *lock) {
    const struct round *round = lock->operation != NULL ? &lock->operation->round : NULL;

    if (round == NULL || round->verdict == ROUND_OPEN) {
        return 0;
    }
    /* A renewal that has failed counts once late grants complete its quorum. */
    uint32_t late = round->verdict == ROUND_NO ? round_voters(round, REDLOCK_VOTE_LATE) : 0;
    return round_voters(round, REDLOCK_VOTE_GRANTED) | late;
}

void actions_client_hold(const redlock_lock *lock, uint64_t at_ns, uint64_t until_ns) {
    append(at_ns, FRAME_HOLD, "%s %llu %" PRIu32, name_of(lock), (unsigned long long)until_ns,
           votes_of(lock));
}

void actions_client_part(const redlock_lock *lock) {
    append(boottime_ns(), FRAME_PART, "%s", name_of(lock));
}

/* ---- renewals ---- */

typedef void decide(struct lease *lease, const struct round *round, uint64_t now,
                    struct lease_update *update);

decide __real_hold_decided, __wrap_hold_decided, __real_hold_late_votes, __wrap_hold_late_votes;

/* Logs a validity that votes prolong: those of a round that has a verdict, or later ones. */
static void watch(decide *real, struct lease *lease, const struct round *round, uint64_t now,
                  struct lease_update *update) {
    uint64_t end = lease->holding.validity_end;

    real(lease, round, now, update);
    if (lease->holding.validity_end > end) {
        const char *bytes = (const char *)lease - offsetof(redlock_lock, lease);

        actions_client_hold((const redlock_lock *)(const void *)bytes, now,
                            lease->holding.validity_end);
    }
}

void __wrap_hold_decided(struct lease *lease, const struct round *round, uint64_t now,
                         struct lease_update *update) {
    watch(__real_hold_decided, lease, round, now, update);
}

void __wrap_hold_late_votes(struct lease *lease, const struct round *round, uint64_t now,
                            struct lease_update *update) {
    watch(__real_hold_late_votes, lease, round, now, update);
}

/* ---- commands ---- */

/* What a command is sent to, and when its client read the clock. */
struct sending {
    const struct node *node;
    uint64_t sent_at;
};

static void append_call(const struct words *words, const struct form *form,
                        const struct parsed_call *call, void *arg) {
    const struct sending *sending = arg;
    const struct word *key = &call->names[0];
    const size_t prefix = strlen(KEY_PREFIX);
    char token[TOKEN_LENGTH + 1];
    char kind = parsed_call_asks(form, call);
    long long ttl_ms = 0;

    (void)words;
    snprintf(token, sizeof(token), "%.*s", (int)call->value->length, call->value->text);
    if (kind != '\0' && word_number(call->ttl, &ttl_ms)) {
        append(sending->sent_at, FRAME_SEND, "%.*s %s %c %lld %u", (int)(key->length - prefix),
               key->text + prefix, token, kind, ttl_ms, sending->node->index);
    } else if (call->releases && !logged.is_held(token, logged.arg)) {
        append(boottime_ns(), FRAME_GIVE_UP, "%.*s %s", (int)(key->length - prefix),
               key->text + prefix, token);
    }
}

bool __real_uplink_send(struct uplink *uplink, struct conn_request *request, const char *data,
                        size_t length);
bool __wrap_uplink_send(struct uplink *uplink, struct conn_request *request, const char *data,
                        size_t length);

bool __wrap_uplink_send(struct uplink *uplink, struct conn_request *request, const char *data,
                        size_t length) {
    static struct words words;

    if (logged.log >= 0 && request->load_class != LOAD_OWN &&
        words_read(&words, data, length) == length) {
        /* Of all uplinks, only those of nodes send commands for locks. */
        struct sending sending = {(const struct node *)uplink, request->sent_at};

        parsed_call_each(&words, append_call, &sending);
    }
    return __real_uplink_send(uplink, request, data, length);
}

/* ---- pushes ---- */

void __real_pushes_take(struct locks *locks, struct node *node, const char *text, size_t length);
void __wrap_pushes_take(struct locks *locks, struct node *node, const char *text, size_t length);

void __wrap_pushes_take(struct locks *locks, struct node *node, const char *text, size_t length) {
    const size_t prefix = strlen(KEY_PREFIX);
    struct push push;

    if (logged.log >= 0 && push_read(text, length, &push) && push.expires_ms > 0) {
        append(boottime_ns(), FRAME_PUSHED, "%.*s %.*s %u %llu", (int)(push.key_length - prefix),
               push.key + prefix, TOKEN_LENGTH, push.token, node->index,
               (unsigned long long)push.expires_ms);
    }
    __real_pushes_take(locks, node, text, length);
}
