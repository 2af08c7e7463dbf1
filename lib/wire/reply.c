#include "wire/reply.h"

#include "wire/fence.h"

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
        {"NOAUTH", REPLY_ERROR_NO_ACCESS},
        {"WRONGPASS", REPLY_ERROR_NO_ACCESS},
        {"NOPERM", REPLY_ERROR_NO_ACCESS},
        {"READONLY", REPLY_ERROR_MISCONFIGURED},
        {"MOVED", REPLY_ERROR_MISCONFIGURED},
        {"ASK", REPLY_ERROR_MISCONFIGURED},
        {"CROSSSLOT", REPLY_ERROR_MISCONFIGURED},
        {"WRONGTYPE", REPLY_ERROR_MISCONFIGURED},
        {"DENIED", REPLY_ERROR_NO_ACCESS},
        {"ERR invalid password", REPLY_ERROR_NO_ACCESS},
        {"ERR AUTH", REPLY_ERROR_NO_ACCESS},
        {"ERR Client sent AUTH", REPLY_ERROR_NO_ACCESS},
        {"ERR Protocol error: unauthenticated", REPLY_ERROR_NO_ACCESS},
        {"ERR DB index", REPLY_ERROR_NO_ACCESS},
        {"ERR SELECT", REPLY_ERROR_NO_ACCESS},
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        size_t length = strlen(known[i].prefix);
        if (reply->length >= length && memcmp(reply->text, known[i].prefix, length) == 0) {
            return known[i].meaning;
        }
    }
    return REPLY_ERROR_UNKNOWN;
}

bool reply_denies_access(const char *text) {
    const struct reply reply = {.type = REPLY_ERROR, .text = text, .length = strlen(text)};
    return reply_classify(&reply) == REPLY_ERROR_NO_ACCESS || reply_lacks_right(&reply);
}

bool reply_lacks_right(const struct reply *reply) {
    /* How refusals read from inside a script: in Redis 7.0, and in later versions. */
    return reply_is_forbidden(reply) ||
           (reply->type == REPLY_ERROR &&
            (strstr(reply->text, "executing the script can't") != NULL ||
             strstr(reply->text, "ACL failure") != NULL));
}

bool reply_is_status(const struct reply *reply, const char *text) {
    return reply->type == REPLY_STATUS && reply->length == strlen(text) &&
           memcmp(reply->text, text, reply->length) == 0;
}

struct reply_outcome reply_to_set(const struct reply *reply) {
    struct reply_outcome outcome = {.vote = REDLOCK_VOTE_ERROR};
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
    case 'c':
        *vote = REDLOCK_VOTE_ERROR;
        return true;
    default:
        return false;
    }
}

/* Moves `p` past a number and returns the number, at most `most`. No digits count as 0. */
static uint64_t take_number(const char **p, const char *end, uint64_t most) {
    uint64_t number = 0;
    for (; *p < end && **p >= '0' && **p <= '9'; (*p)++) {
        uint64_t digit = (uint64_t)(**p - '0');
        number = number > (most - digit) / 10 ? most : number * 10 + digit;
    }
    return number;
}

/* Reads a counter. Out of range, it is an error of its own lock alone, not of the whole call. */
static void read_fence(const char **p, const char *end, struct reply_outcome *outcome) {
    uint64_t fence = take_number(p, end, FENCE_MAX + 1);
    if (fence > 0 && fence <= FENCE_MAX) {
        outcome->fence = fence;
    } else {
        outcome->vote = REDLOCK_VOTE_ERROR;
    }
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/* Reads the map of free permits. Without a map no permit counts as free. */
static void read_map(const char **p, const char *end, struct reply_outcome *outcome) {
    if (*p == end || **p != 'f') {
        return;
    }
    outcome->free = ++*p;
    while (*p < end && (is_digit(**p) || (**p >= 'a' && **p <= 'f'))) {
        ++*p;
    }
    outcome->free_length = (uint32_t)(*p - outcome->free);
}

/* Reads the waiter's queue entry, or that the user has no right to the queue, if either is there.
 */
static void read_entry(const char **p, const char *end, struct reply_outcome *outcome) {
    if (*p < end && **p == 'x') {
        ++*p;
        outcome->lacks_right = true;
    } else if (*p < end && **p == 'q') {
        ++*p;
        outcome->has_entry = true;
        outcome->ahead = (uint32_t)take_number(p, end, UINT32_MAX);
        outcome->is_foreign = *p < end && **p == 'w';
        *p += outcome->is_foreign;
    }
}

/* Reads an item without the '+' that may follow any item. Returns false when it is malformed. */
static bool read_vote(const char **p, const char *end, enum script script,
                      struct reply_outcome *outcome) {
    *outcome = (struct reply_outcome){0};
    if (*p == end || !vote_of_letter(*(*p)++, &outcome->vote)) {
        return false;
    }
    bool may_have_fence = script_counts(script);
    if (outcome->vote == REDLOCK_VOTE_GRANTED) {
        if (may_have_fence && *p < end && is_digit(**p)) {
            read_fence(p, end, outcome);
        }
        return true;
    }
    if (outcome->vote == REDLOCK_VOTE_DENIED) {
        const char *digits = *p;
        outcome->other_ttl_ms = (uint32_t)take_number(p, end, UINT32_MAX);
        if (*p == digits) {
            return false;
        }
    }
    if (script_infos[script].reports_free) {
        read_map(p, end, outcome);
    }
    if (script_sources[script].has_channel && outcome->vote == REDLOCK_VOTE_DENIED) {
        read_entry(p, end, outcome);
    }
    return true;
}

static bool read_outcome(const char **p, const char *end, enum script script,
                         struct reply_outcome *outcome) {
    if (!read_vote(p, end, script, outcome)) {
        return false;
    }
    if (*p < end && **p == '+') {
        outcome->is_unfinished = true;
        ++*p;
    }
    return true;
}

bool reply_is_unfinished(const struct reply *reply) {
    return memchr(reply->text, '+', reply->length) != NULL;
}

bool reply_says_free(const struct reply_outcome *outcome, uint32_t permit) {
    if (permit / 4 >= outcome->free_length) {
        return false;
    }
    char digit = outcome->free[permit / 4];
    unsigned bits = (unsigned)(is_digit(digit) ? digit - '0' : digit - 'a' + 10);
    return bits >> permit % 4 & 1;
}

bool reply_to_script(const struct reply *reply, enum script script, struct reply_outcome *outcomes,
                     unsigned count) {
    if (reply->type != REPLY_STRING) {
        return false;
    }
    const char *p = reply->text;
    const char *end = p + reply->length;
    for (unsigned i = 0; i < count; i++) {
        if (!read_outcome(&p, end, script, &outcomes[i])) {
            return false;
        }
    }
    return p == end;
}

/*
 * Returns whether one key's outcome is worse than another's. Errors are worse than keys that are no
 * locks, then come denied, missing and granted keys. Of two DENIED the longer TTL is worse; of two
 * GRANTED the larger counter.
 */
static bool is_worse(const struct reply_outcome *one, const struct reply_outcome *than) {
    static const unsigned char badness[] = {
        [REDLOCK_VOTE_GRANTED] = 0,   [REDLOCK_VOTE_MISSING] = 1,    [REDLOCK_VOTE_DENIED] = 2,
        [REDLOCK_VOTE_NO_EXPIRY] = 3, [REDLOCK_VOTE_WRONG_TYPE] = 4, [REDLOCK_VOTE_ERROR] = 5,
    };
    unsigned by = badness[one->vote];
    unsigned to = badness[than->vote];
    bool is_more = one->other_ttl_ms > than->other_ttl_ms || one->fence > than->fence;
    return by > to || (by == to && is_more);
}

const struct reply_outcome *reply_combine(const struct reply_outcome *outcomes, unsigned count) {
    const struct reply_outcome *worst = outcomes;
    for (unsigned i = 1; i < count; i++) {
        worst = is_worse(&outcomes[i], worst) ? &outcomes[i] : worst;
    }
    return worst;
}

/* Reads `count` numbers below 2^53, separated by one blank. Returns false for anything else. */
static bool read_numbers(const char *p, const char *end, uint64_t *numbers, unsigned count) {
    for (unsigned i = 0; i < count; i++) {
        const char *start = p;
        numbers[i] = 0;
        for (; p < end && *p >= '0' && *p <= '9' && p - start < 16; p++) {
            numbers[i] = numbers[i] * 10 + (uint64_t)(*p - '0');
        }
        bool is_last = i + 1 == count;
        if (p == start || numbers[i] >= UINT64_C(1) << 53 ||
            !(is_last ? p == end : p < end && *p == ' ')) {
            return false;
        }
        p++;
    }
    return true;
}

/* Moves `p` past `count` numbers below 2^53, each followed by a blank. */
static bool take_numbers(const char **p, const char *end, uint64_t *numbers, unsigned count) {
    for (unsigned i = 0; i < count; i++) {
        const char *blank = memchr(*p, ' ', (size_t)(end - *p));
        if (blank == NULL || !read_numbers(*p, blank, &numbers[i], 1)) {
            return false;
        }
        *p = blank + 1;
    }
    return true;
}

/*
 * Moves `p` past a word and the `stop` that ends it (0: the word goes up to the end), and copies
 * the word with a NUL. Returns false when it is empty or too long.
 */
static bool take_word(const char **p, const char *end, char stop, char *word, size_t capacity) {
    const char *behind = stop == '\0' ? end : memchr(*p, stop, (size_t)(end - *p));
    if (behind == NULL || behind == *p || (size_t)(behind - *p) >= capacity) {
        return false;
    }
    memcpy(word, *p, (size_t)(behind - *p));
    word[behind - *p] = '\0';
    *p = behind + (stop != '\0');
    return true;
}

/* Moves `p` past a ticket and a value, each followed by a blank. */
static bool take_waiter(const char **p, const char *end, struct reply_waiter *waiter) {
    if (!take_numbers(p, end, &waiter->ticket, 1)) {
        return false;
    }
    const char *blank = memchr(*p, ' ', (size_t)(end - *p));
    if (blank == NULL || blank == *p || blank - *p > REPLY_WAITER_MAX) {
        return false;
    }
    waiter->value = *p;
    waiter->length = (size_t)(blank - *p);
    *p = blank + 1;
    return true;
}

static uint32_t up_to_32_bits(uint64_t number) {
    return number < UINT32_MAX ? (uint32_t)number : UINT32_MAX;
}

bool reply_to_inspect(const struct reply *reply, struct reply_view *view) {
    static const char letters[] = "fhptc"; /* in the order of reply_view_kind */
    if (reply->type != REPLY_STRING || reply->length < 2 || reply->text[1] != ' ') {
        return false;
    }
    const char *p = reply->text + 2;
    const char *end = reply->text + reply->length;
    const char *letter = memchr(letters, reply->text[0], sizeof(letters) - 1);
    uint64_t numbers[5];
    if (letter == NULL || !take_numbers(&p, end, numbers, 5) || numbers[4] > numbers[3] ||
        numbers[4] > REDLOCK_MAX_QUEUE_OWNERS) {
        return false;
    }
    *view = (struct reply_view){.kind = (enum reply_view_kind)(letter - letters),
                                .ttl_ms = numbers[0],
                                .fence = numbers[1],
                                .readers = up_to_32_bits(numbers[2]),
                                .queue_length = up_to_32_bits(numbers[3]),
                                .named = (uint32_t)numbers[4]};
    for (uint32_t i = 0; i < view->named; i++) {
        if (!take_waiter(&p, end, &view->waiters[i])) {
            return false;
        }
    }
    view->value = p;
    view->length = (size_t)(end - p);
    return true;
}

bool reply_to_beat(const struct reply *reply, struct reply_beat *beat) {
    uint64_t numbers[3];
    if (reply->type != REPLY_STRING) { /* other types may have no text at all */
        return false;
    }
    const char *p = reply->text;
    const char *end = p + reply->length;
    if (!take_numbers(&p, end, numbers, 3)) {
        return false;
    }
    *beat = (struct reply_beat){numbers[0], numbers[1], numbers[2], "", ""};
    return take_word(&p, end, ' ', beat->role, sizeof(beat->role)) &&
           take_word(&p, end, '\0', beat->id, sizeof(beat->id));
}

bool reply_info(const struct reply *reply, const char *field, char *value, size_t capacity) {
    if (reply->type != REPLY_STRING) {
        return false;
    }
    size_t length = strlen(field);
    const char *end = reply->text + reply->length;
    for (const char *line = reply->text; line < end;) {
        const char *next = memchr(line, '\n', (size_t)(end - line));
        size_t rest = (size_t)((next != NULL ? next : end) - line);
        if (rest > length && memcmp(line, field, length) == 0 && line[length] == ':') {
            size_t size = rest - length - 1;
            size -= size > 0 && line[rest - 1] == '\r';
            size = size < capacity ? size : capacity - 1;
            memcpy(value, line + length + 1, size);
            value[size] = '\0';
            return true;
        }
        line += rest + 1;
    }
    return false;
}
