/*
 * Checks the library's answers about keys of other clients, a resource's decisions about fences,
 * and the notifications to holders whose client is closed.
 */
#include "checker.h"

#include "lock/lock.h"
#include "wire/fence.h"

#include <inttypes.h>
#include <stdlib.h>

/* ---- the end of a client ---- */

static struct token *token_of(const redlock_lock *lock, struct checker *checker) {
    uint32_t number = check_token_of_lock(checker, lock);
    return number != NO_TOKEN ? &checker->tokens[number] : NULL;
}

void check_closed(const struct hold *hold) {
    checker_of(hold->process->world)->tokens[hold->token].is_notification_due = true;
}

void check_notified(struct event_base *process, const redlock_lock *lock) {
    struct token *token = token_of(lock, checker_of(process->world));
    if (token != NULL) {
        token->is_notification_due = false;
    }
}

/* ---- inspections ---- */

/* Returns the first fence of the newest range of which any was reported. */
static uint64_t newest_range(const struct checker *checker, unsigned key) {
    const struct fences *fences = &checker->fences[key];
    uint64_t newest = 0;
    for (size_t i = 0; i < fences->count; i++) {
        newest = fences->list[i].first > newest ? fences->list[i].first : newest;
    }
    return newest;
}

/*
 * Returns a hold of the key by a process that needs a quorum of the nodes that this process asks.
 */
static uint32_t any_holder(const struct checker *checker, const struct event_base *process,
                           unsigned key) {
    const struct hold *hold;
    LIST_FOREACH(hold, &checker->holds, link) {
        if ((hold->keys >> key & 1) && !hold->is_over && check_is_valid(hold) &&
            checker->lists[hold->process->index] == checker->lists[process->index]) {
            return hold->token;
        }
    }
    return NO_TOKEN;
}

void check_asks(struct look *look, struct event_base *process, unsigned key, uint64_t fence) {
    const struct checker *checker = checker_of(process->world);
    *look = (struct look){.key = key,
                          .token = any_holder(checker, process, key),
                          .fence = fence,
                          .newest = newest_range(checker, key),
                          .asked_at = checker->world->now,
                          .moves = checker->moves[process->index]};
}

/*
 * Checks that an inspection saw a lock that was held from before the question until now: the
 * answers of a quorum must show it.
 */
static void check_not_missed(struct checker *checker, const struct look *look,
                             const struct event_base *process, const redlock_view *view) {
    const struct hold *hold = look->token != NO_TOKEN ? check_hold_of(checker, look->token) : NULL;
    if (hold == NULL || hold->is_over || !check_is_valid(hold) || !checker->keeps_assumptions ||
        checker->lists[hold->process->index] != checker->lists[process->index] ||
        checker->moves[process->index] != look->moves ||
        check_is_doubted(checker, checker->lists[process->index], look->asked_at)) {
        return;
    }
    if (!view->held || (view->readers > 0) != hold->is_reader) {
        violate(checker->world, INVARIANT_LOOKS,
                "process %u reads that key %u is held by %s, but process %u holds it%s (token "
                "%" PRIu32 ")",
                process->index, look->key,
                !view->held         ? "nobody"
                : view->readers > 0 ? "readers"
                                    : "one alone",
                hold->process->index, hold->is_reader ? " as a reader" : "", hold->token);
    }
}

static bool have_all_answered(const redlock_view *view) {
    for (size_t i = 0; i < view->node_count; i++) {
        if (!view->nodes[i].answered) {
            return false;
        }
    }
    return true;
}

void check_seen(const struct look *look, struct event_base *process, const redlock_view *view) {
    struct checker *checker = checker_of(process->world);
    checker->looks++;
    check_not_missed(checker, look, process, view);
    if (checker->keeps_counters && have_all_answered(view) && view->fence < look->newest) {
        violate(checker->world, INVARIANT_LOOKS,
                "process %u reads that %" PRIu64 " is the newest fence of key %u, but %" PRIu64
                " had been reported",
                process->index, view->fence, look->key, look->newest);
    }
}

/* ---- fences ---- */

/* Returns the number of servers whose counters exceed the fence; counters never go back. */
static unsigned count_beyond(struct checker *checker, uint32_t list, const struct look *look) {
    unsigned beyond = 0;
    for (unsigned i = 0; i < checker->network->server_count; i++) {
        struct master *master = &checker->network->servers[i].master;
        master->store.db = checker->db;
        const struct store_key *counter = check_beside(checker, master, look->key, COUNTER_SUFFIX);
        bool is_beyond =
            /* NUL-terminated by calloc */
            counter != NULL && fence_first(strtoull(counter->value, NULL, 10)) > look->fence;
        beyond += check_is_listed(list, i) && is_beyond;
    }
    return beyond;
}

void check_compared(const struct look *look, struct event_base *process, redlock_status status) {
    struct checker *checker = checker_of(process->world);
    uint32_t list = checker->lists[process->index];
    checker->looks++;
    if (!checker->keeps_counters) {
        return;
    }
    if (status == REDLOCK_OK && look->newest > look->fence) {
        violate(checker->world, INVARIANT_LOOKS,
                "process %u reads that the fence %" PRIu64 " of key %u is the newest, but "
                "%" PRIu64 " had been reported",
                process->index, look->fence, look->key, look->newest);
    } else if (status == REDLOCK_ELOST &&
               count_beyond(checker, list, look) < check_quorum_of(list)) {
        violate(checker->world, INVARIANT_LOOKS,
                "process %u reads that the fence %" PRIu64
                " of key %u is not the newest, but no quorum is beyond it",
                process->index, look->fence, look->key);
    }
}

/* Admits holders at the resource's gate in the order of their notifications. */
void check_gate(struct checker *checker, const struct hold *hold, unsigned key, uint64_t number) {
    if (!redlock_gate_admit(&checker->gates[key], number) && checker->keeps_assumptions) {
        violate(checker->world, INVARIANT_FENCE,
                "process %u has the fence %" PRIu64
                " of key %u, whose resource has accepted %" PRIu64 " (token %" PRIu32 ")",
                hold->process->index, number, key, checker->gates[key].fence, hold->token);
    }
}
