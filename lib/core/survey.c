#include "core/survey.h"

#include "base/text.h"
#include "wire/fence.h"

#include <string.h>

#define TOKEN_DIGITS 40

/* Writes the owner in a value, the part after the token, as text. */
static void write_owner(char owner[SURVEY_OWNER_MAX + 1], const char *bytes, size_t length) {
    struct text text;
    text_init(&text, owner, SURVEY_OWNER_MAX + 1);
    /* Values of foreign clients name no owner. */
    if (length > TOKEN_DIGITS && bytes[TOKEN_DIGITS] == '/') {
        text_append_foreign(&text, bytes + TOKEN_DIGITS + 1, length - TOKEN_DIGITS - 1);
    }
}

void survey_record_value(struct survey_answer *answer, const char *bytes, size_t length) {
    answer->length = length;
    memcpy(answer->value, bytes, length < SURVEY_VALUE_MAX ? length : SURVEY_VALUE_MAX);
    write_owner(answer->owner, bytes, length);
}

void survey_record_waiter(struct survey_entries *entries, uint64_t ticket, const char *bytes,
                          size_t length) {
    struct survey_waiter *waiter = &entries->waiters[entries->count++];
    waiter->ticket = ticket;
    waiter->length = length < SURVEY_VALUE_MAX ? length : SURVEY_VALUE_MAX;
    memcpy(waiter->value, bytes, waiter->length);
}

/* Compares the lengths, and as much of the values as was kept. */
static bool is_same_value(const struct survey_answer *a, const struct survey_answer *b) {
    size_t kept = a->length < SURVEY_VALUE_MAX ? a->length : SURVEY_VALUE_MAX;
    return a->length == b->length && memcmp(a->value, b->value, kept) == 0;
}

/* Returns a mask of the nodes of the list whose answer is `state`. */
static uint32_t in_state(const struct survey *survey, uint32_t list, enum survey_state state) {
    uint32_t mask = 0;
    /* Each step clears the lowest bit of the mask. */
    for (uint32_t rest = list; rest != 0; rest &= rest - 1) {
        uint32_t node = (uint32_t)__builtin_ctz(rest);
        mask |= (uint32_t)(survey->answers[node].state == state) << node;
    }
    return mask;
}

static uint32_t count_nodes(uint32_t mask) {
    return (uint32_t)__builtin_popcount(mask);
}

/* Returns a mask of the nodes of the list that hold the same value as `node`. */
static uint32_t fellows(const struct survey *survey, uint32_t list, uint32_t node) {
    uint32_t mask = 0;
    for (uint32_t rest = in_state(survey, list, SURVEY_HELD); rest != 0; rest &= rest - 1) {
        uint32_t other = (uint32_t)__builtin_ctz(rest);
        bool is_same = is_same_value(&survey->answers[other], &survey->answers[node]);
        mask |= (uint32_t)is_same << other;
    }
    return mask;
}

/* Returns the node of the list whose value most nodes hold. */
static uint32_t leader(const struct survey *survey, uint32_t list) {
    uint32_t best = 0;
    uint32_t most = 0;
    for (uint32_t rest = in_state(survey, list, SURVEY_HELD); rest != 0; rest &= rest - 1) {
        uint32_t node = (uint32_t)__builtin_ctz(rest);
        uint32_t size = count_nodes(fellows(survey, list, node));
        best = size > most ? node : best;
        most = size > most ? size : most;
    }
    return best;
}

static uint64_t ttl_of(const struct survey_answer *answer) {
    return answer->ttl_ms;
}

static uint64_t fence_of(const struct survey_answer *answer) {
    return answer->fence;
}

static uint64_t readers_of(const struct survey_answer *answer) {
    return answer->readers;
}

static uint64_t queue_length_of(const struct survey_answer *answer) {
    return answer->queue_length;
}

/* Returns the largest number that at least `needed` of the nodes have reached; 0: there is none. */
static uint64_t reached(const struct survey *survey, uint32_t nodes, uint32_t needed,
                        uint64_t (*number_of)(const struct survey_answer *)) {
    uint64_t best = 0;
    for (uint32_t rest = nodes; rest != 0; rest &= rest - 1) {
        uint64_t number = number_of(&survey->answers[__builtin_ctz(rest)]);
        uint32_t as_large = 0;
        for (uint32_t others = nodes; others != 0; others &= others - 1) {
            as_large += number_of(&survey->answers[__builtin_ctz(others)]) >= number;
        }
        /* Reached by a quorum, not just claimed by a minority. */
        best = as_large >= needed && number > best ? number : best;
    }
    return best;
}

struct survey_verdict survey_decide(const struct survey *survey) {
    uint32_t list = survey->lists.now;
    uint32_t needed = quorum_of(count_nodes(list));
    uint32_t node = leader(survey, list);
    uint32_t held = in_state(survey, list, SURVEY_HELD);
    uint32_t holders = held != 0 ? fellows(survey, list, node) : 0;
    uint32_t silent = count_nodes(in_state(survey, list, SURVEY_SILENT));
    bool is_held = count_nodes(holders) >= needed;
    return (struct survey_verdict){
        /* The silent nodes can neither undo a quorum nor complete one that lacks more of them. */
        .is_certain = is_held || count_nodes(holders) + silent < needed,
        .is_held = is_held,
        .node = node,
        /* The lock lasts for as long as a quorum keeps it, not for its longest TTL. */
        .ttl_ms = reached(survey, holders, needed, ttl_of),
        /* A fence is only given out once a quorum of counters has reached it. */
        .fence = fence_first(reached(survey, list, needed, fence_of)),
        .readers = (uint32_t)reached(survey, holders, needed, readers_of),
    };
}

/* ---- waiters ---- */

/* Compares two waiters as nodes do, by ticket and value. Returns 0 if they are the same. */
static int compare(const struct survey_waiter *a, const struct survey_waiter *b) {
    if (a->ticket != b->ticket) {
        return a->ticket < b->ticket ? -1 : 1;
    }
    int order = memcmp(a->value, b->value, a->length < b->length ? a->length : b->length);
    return order != 0 ? order : (a->length > b->length) - (a->length < b->length);
}

/* Returns the number of the nodes that name the waiter. */
static uint32_t count_naming(const struct survey *survey, uint32_t list,
                             const struct survey_waiter *waiter) {
    uint32_t nodes = 0;
    for (uint32_t rest = list; rest != 0; rest &= rest - 1) {
        const struct survey_entries *entries = &survey->entries[__builtin_ctz(rest)];
        bool is_named = false;
        for (uint32_t i = 0; i < entries->count; i++) {
            is_named = is_named || compare(&entries->waiters[i], waiter) == 0;
        }
        nodes += is_named;
    }
    return nodes;
}

/* Returns the next waiter after `last` (NULL: the first) that a quorum of the list names. */
static const struct survey_waiter *next_in_queue(const struct survey *survey, uint32_t list,
                                                 const struct survey_waiter *last) {
    const struct survey_waiter *next = NULL;
    for (uint32_t rest = list; rest != 0; rest &= rest - 1) {
        const struct survey_entries *entries = &survey->entries[__builtin_ctz(rest)];
        for (uint32_t i = 0; i < entries->count; i++) {
            const struct survey_waiter *waiter = &entries->waiters[i];
            /* The smallest ticket after `last` that a quorum names. */
            if ((last == NULL || compare(waiter, last) > 0) &&
                (next == NULL || compare(waiter, next) < 0) &&
                count_naming(survey, list, waiter) >= quorum_of(count_nodes(list))) {
                next = waiter;
            }
        }
    }
    return next;
}

void survey_waiters(const struct survey *survey, struct survey_queue *queue) {
    uint32_t list = survey->lists.now;
    const struct survey_waiter *waiter = NULL;
    uint64_t length = reached(survey, list, quorum_of(count_nodes(list)), queue_length_of);
    queue->owner_count = 0;
    while (queue->owner_count < REDLOCK_MAX_QUEUE_OWNERS &&
           (waiter = next_in_queue(survey, list, waiter)) != NULL) {
        write_owner(queue->owners[queue->owner_count++], waiter->value, waiter->length);
    }
    /* Three nodes with two entries each can name three waiters, each of them twice. */
    queue->length = length > queue->owner_count ? (uint32_t)length : queue->owner_count;
}

/* ---- fences ---- */

/* Compares the fence with one list. To take the lock, a client needs a quorum of each list. */
static redlock_status check_list(const struct survey *survey, uint32_t list, uint64_t fence) {
    uint32_t needed = quorum_of(count_nodes(list));
    uint32_t silent = count_nodes(in_state(survey, list, SURVEY_SILENT));
    uint32_t beyond = 0;
    for (uint32_t rest = list; rest != 0; rest &= rest - 1) {
        uint64_t counter = survey->answers[__builtin_ctz(rest)].fence;
        /* A range that begins beyond the fence is a later acquisition's. */
        beyond += fence_first(counter) > fence;
    }
    /* A later holder may have been given a fence that this quorum has reached. */
    if (beyond >= needed) {
        return REDLOCK_ELOST;
    }
    /* No quorum can be beyond it, whatever the silent nodes have. */
    return beyond + silent < needed ? REDLOCK_OK : REDLOCK_ENOQUORUM;
}

redlock_status survey_check_fence(const struct survey *survey, uint64_t fence) {
    redlock_status now = check_list(survey, survey->lists.now, fence);
    redlock_status next =
        survey->lists.next == 0 ? REDLOCK_OK : check_list(survey, survey->lists.next, fence);
    /* When in doubt the fence is refused: one list that is beyond it is enough. */
    bool is_lost = now == REDLOCK_ELOST || next == REDLOCK_ELOST;
    bool is_newest = now == REDLOCK_OK && next == REDLOCK_OK;
    return is_lost ? REDLOCK_ELOST : is_newest ? REDLOCK_OK : REDLOCK_ENOQUORUM;
}
