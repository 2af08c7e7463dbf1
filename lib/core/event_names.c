#include "core/event_names.h"

const char *event_round_name(enum round_kind round) {
    static const char *const names[] = {
        [ROUND_ACQUIRE] = "acquire", [ROUND_QUEUE] = "queue",     [ROUND_RAISE] = "raise",
        [ROUND_RENEW] = "renew",     [ROUND_RELEASE] = "release", [ROUND_DIAGNOSE] = "diagnose",
    };
    return names[round];
}

const char *event_verdict_name(enum round_verdict verdict) {
    static const char *const names[] = {
        [ROUND_OPEN] = "open", [ROUND_YES] = "yes", [ROUND_GONE] = "gone", [ROUND_NO] = "no"};
    return names[verdict];
}

const char *event_vote_name(redlock_vote vote) {
    static const char *const names[] = {
        [REDLOCK_VOTE_NONE] = "none",
        [REDLOCK_VOTE_GRANTED] = "granted",
        [REDLOCK_VOTE_DENIED] = "denied",
        [REDLOCK_VOTE_WRONG_TYPE] = "wrong type",
        [REDLOCK_VOTE_NO_EXPIRY] = "no expiry",
        [REDLOCK_VOTE_MISSING] = "missing",
        [REDLOCK_VOTE_ERROR] = "error",
        [REDLOCK_VOTE_TIMEOUT] = "timeout",
        [REDLOCK_VOTE_UNREACHABLE] = "unreachable",
        [REDLOCK_VOTE_REFUSED] = "refused",
        [REDLOCK_VOTE_BROKEN] = "broken",
        [REDLOCK_VOTE_UNTRUSTED] = "untrusted",
        [REDLOCK_VOTE_LATE] = "late",
    };
    return names[vote];
}
