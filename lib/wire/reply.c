#include "wire/reply.h"

#include <string.h>

enum reply_error reply_classify(const struct reply *reply) {
    static const struct {
        const char *prefix;
        enum reply_error meaning;
    } known[] = {
        {"NOSCRIPT", REPLY_ERROR_NO_SCRIPT},
        {"LOADING", REPLY_ERROR_TRY_LATER},
        {"BUSY", REPLY_ERROR_TRY_LATER},
        {"MISCONF", REPLY_ERROR_TRY_LATER},
        {"OOM", REPLY_ERROR_TRY_LATER},
        {"MASTERDOWN", REPLY_ERROR_TRY_LATER},
        {"CLUSTERDOWN", REPLY_ERROR_TRY_LATER},
        {"TRYAGAIN", REPLY_ERROR_TRY_LATER},
        {"NOREPLICAS", REPLY_ERROR_TRY_LATER},
        {"ERR max number of clients", REPLY_ERROR_TRY_LATER},
        {"NOAUTH", REPLY_ERROR_MISCONFIGURED},
        {"WRONGPASS", REPLY_ERROR_MISCONFIGURED},
        {"NOPERM", REPLY_ERROR_MISCONFIGURED},
        {"READONLY", REPLY_ERROR_MISCONFIGURED},
        {"MOVED", REPLY_ERROR_MISCONFIGURED},
        {"ASK", REPLY_ERROR_MISCONFIGURED},
        {"CROSSSLOT", REPLY_ERROR_MISCONFIGURED},
        {"WRONGTYPE", REPLY_ERROR_MISCONFIGURED},
        {"DENIED", REPLY_ERROR_MISCONFIGURED},
        {"ERR invalid password", REPLY_ERROR_MISCONFIGURED},
        {"ERR AUTH", REPLY_ERROR_MISCONFIGURED},
        {"ERR Client sent AUTH", REPLY_ERROR_MISCONFIGURED},
        {"ERR DB index", REPLY_ERROR_MISCONFIGURED},
        {"ERR SELECT", REPLY_ERROR_MISCONFIGURED},
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        size_t length = strlen(known[i].prefix);
        if (reply->length >= length && memcmp(reply->text, known[i].prefix, length) == 0) {
            return known[i].meaning;
        }
    }
    return REPLY_ERROR_UNKNOWN;
}

bool reply_is_status(const struct reply *reply, const char *text) {
    return reply->type == REPLY_STATUS && reply->length == strlen(text) &&
           memcmp(reply->text, text, reply->length) == 0;
}

struct reply_outcome reply_to_set(const struct reply *reply) {
    struct reply_outcome outcome = {REDLOCK_VOTE_ERROR, 0};
    if (reply->type == REPLY_NIL) {
        outcome.vote = REDLOCK_VOTE_DENIED;
    } else if (reply_is_status(reply, "OK")) {
        outcome.vote = REDLOCK_VOTE_GRANTED;
    }
    return outcome;
}

static bool vote_of_letter(char letter, redlock_vote *vote) {
    switch (letter) {
    case 'y':
        *vote = REDLOCK_VOTE_GRANTED;
        return true;
    case 'm':
        *vote = REDLOCK_VOTE_MISSING;
        return true;
    case 'h':
        *vote = REDLOCK_VOTE_DENIED;
        return true;
    case 'p':
        *vote = REDLOCK_VOTE_NO_EXPIRY;
        return true;
    case 't':
        *vote = REDLOCK_VOTE_WRONG_TYPE;
        return true;
    default:
        return false;
    }
}

bool reply_to_script(const struct reply *reply, struct reply_outcome *outcomes, unsigned count) {
    if (reply->type != REPLY_STRING) {
        return false;
    }
    const char *p = reply->text;
    const char *end = p + reply->length;
    for (unsigned i = 0; i < count; i++) {
        if (p == end || !vote_of_letter(*p, &outcomes[i].vote)) {
            return false;
        }
        uint64_t ttl_ms = 0;
        bool has_ttl = *p++ == 'h';
        if (has_ttl && (p == end || *p < '0' || *p > '9')) {
            return false;
        }
        for (; has_ttl && p < end && *p >= '0' && *p <= '9'; p++) {
            ttl_ms = ttl_ms * 10 + (uint64_t)(*p - '0');
            ttl_ms = ttl_ms > UINT32_MAX ? UINT32_MAX : ttl_ms;
        }
        outcomes[i].other_ttl_ms = (uint32_t)ttl_ms;
    }
    return p == end;
}
