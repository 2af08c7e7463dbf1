#include "core/lease_state.h"

#define TO(state) (1u << LEASE_##state)

const uint16_t lease_moves[LEASE_OVER + 1] = {
    [LEASE_STARTING] = TO(ACQUIRING) | TO(QUEUED) | TO(OVER),
    [LEASE_ACQUIRING] = TO(ACQUIRING) | TO(RAISING) | TO(QUEUED) | TO(BACKOFF) | TO(DIAGNOSING) |
                        TO(HELD) | TO(OVER),
    [LEASE_QUEUED] =
        TO(ACQUIRING) | TO(RAISING) | TO(BACKOFF) | TO(DIAGNOSING) | TO(HELD) | TO(OVER),
    [LEASE_RAISING] = TO(RAISING) | TO(BACKOFF) | TO(DIAGNOSING) | TO(HELD) | TO(OVER),
    [LEASE_BACKOFF] = TO(ACQUIRING) | TO(OVER),
    [LEASE_DIAGNOSING] = TO(OVER),
    [LEASE_HELD] = TO(HELD) | TO(RENEWING) | TO(LOST) | TO(RELEASING),
    [LEASE_RENEWING] = TO(HELD) | TO(RENEWING) | TO(LOST) | TO(RELEASING),
    [LEASE_LOST] = TO(RELEASING),
    [LEASE_RELEASING] = TO(OVER),
    [LEASE_OVER] = 0,
};

const char *lease_state_name(enum lease_state state) {
    static const char *const names[] = {"starting", "acquiring",  "raising", "queued",
                                        "backoff",  "diagnosing", "held",    "renewing",
                                        "lost",     "releasing",  "over"};
    return names[state];
}

void lease_set_state(struct lease *lease, enum lease_state state) {
    assert(lease_moves[lease->state] >> state & 1);
    bool was_held = lease_is_held(lease);
    lease->state = (uint8_t)state;
    if (lease->terms->watchdog && lease_is_held(lease) != was_held) {
        (was_held ? ticks_remove : ticks_add)(lease->terms->ticks);
    }
}

/*
 * Returns the time until silent nodes are looked at. A watchdog's renewal may take half of the time
 * that is left; an application waits for anything else, even an extension.
 */
static uint64_t patience_of(const struct lease *lease, uint64_t now, uint64_t usable_until) {
    /* Half, so that a second renewal still has time if this one fails. */
    return lease_is_watchdog_renewing(lease) ? nanos_sub(usable_until, now) / 2
                                             : lease->terms->patience->least;
}

void lease_await(struct lease *lease, uint64_t now, uint64_t usable_until) {
    uint64_t patience = patience_of(lease, now, usable_until);
    lease->wake_at = nanos_add(now, nanos_min(patience, nanos_sub(usable_until, now)));
}

void lease_send(struct lease *lease, enum round_kind kind, uint64_t now, uint64_t usable_until,
                struct lease_update *update) {
    update->send = true;
    update->round = kind;
    update->ttl = lease->ttl;
    update->usable_until = usable_until;
    lease_await(lease, now, usable_until);
}
