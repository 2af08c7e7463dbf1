/*
 * Checks tokens, the validity of locks, and the notifications to applications. check_sent.c,
 * check_effects.c and check_promises.c check the commands on the wire.
 */
#include "checker.h"

#include "actions.h"
#include "check_load.h"
#include "lock/lock.h"
#include "round/operation.h"
#include "wire/command.h"
#include "wire/fence.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Memory limit of a client: more than a client of a simulated application ever needs. */
#define MEMORY_MAX (8 * 1024 * 1024)

void check_init(struct checker *checker, struct network *network, unsigned keys) {
    *checker = (struct checker){
        .world = network->world, .network = network, .key_count = keys, .memory_max = MEMORY_MAX};
    network->world->checker = checker;
    memset(checker->set_last, 0xff, sizeof(checker->set_last));
    memset(checker->silences, 0xff, sizeof(checker->silences));
    memset(checker->released_last, 0xff, sizeof(checker->released_last)); /* NO_TOKEN */
    LIST_INIT(&checker->holds);
    check_passes_clear(&checker->passes);
}

void check_finish(struct checker *checker) {
    free(checker->tokens);
    for (unsigned i = 0; i < KEYS_MAX; i++) {
        free(checker->fences[i].list);
    }
}

/* ---- tokens ---- */

/* Start of the digits that are a token's number: after those that identify an entry. */
#define NUMBER_AT ENTRY_ID_LENGTH

/* Returns the token, in `text`, of the same request's previous try; NULL if there is none. */
static const struct token *try_before(const struct checker *checker,
                                      const struct event_base *process, const char *text) {
    uint32_t number = check_token_of(checker, text, strnlen(text, 40));
    const struct token *token = number != NO_TOKEN ? &checker->tokens[number] : NULL;
    bool is_mine = token != NULL && token->process == process && token->life == process->life;
    return is_mine && !token->is_over && !token->is_between && token->handovers == 0 ? token : NULL;
}

void check_new_token(struct event_base *process, char text[41]) {
    struct checker *checker = checker_of(process->world);
    if (checker->load != NULL) {
        check_load_token(checker->load, text);
        return;
    }
    if (checker->token_count == checker->token_capacity) {
        checker->token_capacity = checker->token_capacity * 2 + 64;
        checker->tokens =
            realloc(checker->tokens, checker->token_capacity * sizeof(*checker->tokens));
        if (checker->tokens == NULL) {
            abort();
        }
    }
    struct token *token = &checker->tokens[checker->token_count];
    const struct token *before = try_before(checker, process, text);
    *token = (struct token){.process = process,
                            .life = process->life,
                            .key = KEYS_MAX,
                            .first_sent = NEVER,
                            .ticket = before != NULL ? before->ticket : 0,
                            .is_redrawn = before != NULL && before->is_redrawn,
                            .failed = process->failed,
                            .moves = checker->moves[process->index]};
    struct rng *rng = &process->world->rng;
    uint64_t first = rng_next(rng);
    snprintf(token->text, sizeof(token->text), "%016" PRIx64 "%04x%08" PRIx32 "%012" PRIx64, first,
             (unsigned)(rng_next(rng) & 0xffff), checker->token_count, rng_next(rng) >> 16);
    memcpy(text, token->text, sizeof(token->text));
    checker->token_count++;
}

uint32_t check_token_of(const struct checker *checker, const char *text, size_t length) {
    uint32_t number = 0;
    if (length < 40 || (length > 40 && text[40] != '/')) {
        return NO_TOKEN;
    }
    for (unsigned i = 0; i < 8; i++) {
        char c = text[NUMBER_AT + i];
        unsigned digit = (unsigned)(c <= '9' ? c - '0' : c - 'a' + 10);
        number = number << 4 | (digit & 15);
    }
    return number < checker->token_count && memcmp(checker->tokens[number].text + NUMBER_AT,
                                                   text + NUMBER_AT, TOKEN_LENGTH - NUMBER_AT) == 0
               ? number
               : NO_TOKEN;
}

uint32_t check_token_of_lock(const struct checker *checker, const redlock_lock *lock) {
    char text[TOKEN_LENGTH + 1];
    token_unpack(text, lock->token);
    return check_token_of(checker, text, TOKEN_LENGTH);
}

unsigned check_key_of(const struct checker *checker, const struct word *name) {
    unsigned i = 0;
    while (i < checker->key_count && !word_is(name, checker->keys[i])) {
        i++;
    }
    return i;
}

/* ---- holds ---- */

struct hold *check_hold_of(const struct checker *checker, uint32_t token) {
    struct hold *hold;
    LIST_FOREACH(hold, &checker->holds, link) {
        if (hold->token == token) {
            return hold;
        }
    }
    return NULL;
}

uint64_t check_reported_end(const redlock_lock *lock) {
    return lock->lease.state == LEASE_HELD || lock->lease.state == LEASE_RENEWING
               ? lock->lease.holding.validity_end
               : 0;
}

/* ---- what locks report ---- */

bool check_is_listed(uint32_t list, unsigned server) {
    return list >> server & 1;
}

unsigned check_quorum_of(uint32_t list) {
    return (unsigned)__builtin_popcount(list) / 2 + 1;
}

uint64_t check_least(const uint64_t values[KEYS_MAX], uint32_t keys) {
    uint64_t smallest = NEVER;
    for (; keys != 0; keys &= keys - 1) {
        uint64_t value = values[__builtin_ctz(keys)];
        smallest = value < smallest ? value : smallest;
    }
    return smallest;
}

/* Returns the largest value that `rank` of the listed servers reach. */
static uint64_t ranked(const uint64_t *values, uint32_t list, unsigned rank) {
    uint64_t best = 0;
    for (unsigned i = 0; i < SERVERS_MAX; i++) {
        unsigned as_large = 0;
        for (unsigned j = 0; j < SERVERS_MAX; j++) {
            as_large += check_is_listed(list, j) && values[j] >= values[i];
        }
        if (check_is_listed(list, i) && as_large >= rank && values[i] > best) {
            best = values[i];
        }
    }
    return best;
}

bool check_is_valid(const struct hold *hold) {
    const struct event_base *process = hold->process;
    return hold->end > tempo_read(&process->clock, process->world->now);
}

static uint64_t promised_by(const struct token *token, uint32_t list, uint32_t keys,
                            unsigned rank) {
    uint64_t promised[SERVERS_MAX];
    for (unsigned i = 0; i < SERVERS_MAX; i++) {
        promised[i] = check_least(token->promised[i], keys);
    }
    return ranked(promised, list, rank);
}

static void check_promises(struct checker *checker, const struct hold *hold) {
    const struct token *token = &checker->tokens[hold->token];
    uint32_t list = checker->lists[hold->process->index];
    uint64_t best = promised_by(token, list, hold->keys, check_quorum_of(list));
    /* Redlock, step 3: the validity ends no later than the last promise that a quorum reaches. */
    if (hold->end > best + 1000 &&
        !checker->clocks_jump) { /* tolerance for the rounding of a double */
        violate(checker->world, INVARIANT_QUORUM,
                "process %u holds key %u for %" PRIu64
                " us more than a quorum's replies promised (token %" PRIu32 ")",
                hold->process->index, hold->key, (hold->end - best) / 1000, hold->token);
    }
}

/*
 * Checks that a quorum of servers backs a valid lock. A server that grants nothing after a restart
 * still backs all that it had granted before.
 */
void check_backing(struct checker *checker, const struct hold *hold) {
    const struct network *network = checker->network;
    if (!checker->keeps_assumptions || !check_is_valid(hold)) {
        return;
    }
    uint64_t end = tempo_true(&hold->process->clock, hold->end);
    uint32_t list = checker->lists[hold->process->index];
    unsigned backing = 0;
    for (unsigned i = 0; i < network->server_count; i++) {
        const struct server *server = &network->servers[i];
        uint64_t keeps_until = check_kept_until(checker, i, hold->token);
        /* A young or stopped server grants nothing meanwhile; an evicted key is in doubt. */
        backing +=
            check_is_listed(list, i) && (keeps_until >= end || server->young_until >= end ||
                                         check_evicted_until(checker, i, hold->keys) >= end ||
                                         server->down_until > checker->world->now);
    }
    if (backing < check_quorum_of(list)) {
        violate(checker->world, INVARIANT_EXCLUSION,
                "process %u holds key %u, but only %u nodes keep it for so long (token %" PRIu32
                ")",
                hold->process->index, hold->key, backing, hold->token);
    }
}

static void check_alone(struct checker *checker, struct hold *hold) {
    struct hold *other;
    LIST_FOREACH(other, &checker->holds, link) {
        bool is_shared = (other->keys & hold->keys) != 0;
        if (other == hold || !is_shared || !check_is_valid(other) || !check_is_valid(hold)) {
            continue;
        }
        if (other->is_reader && hold->is_reader) {
            hold->was_shared = true;
            continue;
        }
        if (check_is_excused(checker, hold) || check_is_excused(checker, other)) {
            checker->excused++;
        } else if (checker->keeps_assumptions) {
            violate(checker->world, INVARIANT_EXCLUSION,
                    "processes %u and %u both hold key %u (tokens %" PRIu32 " and %" PRIu32 ")",
                    other->process->index, hold->process->index, hold->key, other->token,
                    hold->token);
        } else if (!hold->was_overlapped) {
            TRACE(checker->world, "OVERLAP of processes %u and %u on key %u", other->process->index,
                  hold->process->index, hold->key);
            hold->was_overlapped = true;
            checker->overlaps++;
        }
    }
}

/* Checks that there are no more holders than permits, whichever permits they hold. */
static void check_number(struct checker *checker) {
    const struct hold *hold;
    unsigned count = 0;
    LIST_FOREACH(hold, &checker->holds, link) {
        count += check_is_valid(hold) && !check_is_excused(checker, hold);
    }
    if (checker->permits > 0 && count > checker->permits && checker->keeps_assumptions) {
        violate(checker->world, INVARIANT_PERMITS, "there are %u holders of %u permits", count,
                checker->permits);
    }
}

/*
 * Records the start of a validity. A lock's timer may be late by less than the margin with which
 * its loss is reported: 10 ms, at most 1/8 of the time left.
 */
static void begin_validity(struct hold *hold) {
    const struct event_base *process = hold->process;
    uint64_t left = hold->end - tempo_read(&process->clock, process->world->now);
    hold->is_disturbed = left < 80 * MS || process->lateness > 5 * MS;
}

static void look_at(struct checker *checker, struct hold *hold) {
    uint64_t end = check_reported_end(hold->lock);
    if (end != hold->end) {
        /* A validity that has ended must not come back, whatever answers still arrive. */
        if (end != 0 && hold->is_over && !checker->clocks_jump) {
            violate(checker->world, INVARIANT_REVIVAL,
                    "process %u had lost key %u, and holds it again (token %" PRIu32 ")",
                    hold->process->index, hold->key, hold->token);
        }
        hold->end = end;
        if (end != 0) {
            if (check_is_valid(hold)) { /* otherwise it is over before anybody could read it */
                actions_held(hold, false);
            }
            begin_validity(hold);
            check_number(checker);
            check_promises(checker, hold);
            check_backing(checker, hold);
            check_alone(checker, hold);
        }
    }
    if (!check_is_valid(hold)) {
        hold->is_over = true;
    }
}

void check_process(struct event_base *process, bool was_disturbed) {
    struct checker *checker = checker_of(process->world);
    struct hold *hold;
    if (process->bytes > checker->memory_max) {
        violate(checker->world, INVARIANT_BOUNDS, "process %u has %zu bytes of memory",
                process->index, process->bytes);
    }
    if (was_disturbed) {
        checker->disturbed_at[process->index] = checker->world->now;
    }
    LIST_FOREACH(hold, &checker->holds, link) {
        if (hold->process == process) {
            look_at(checker, hold);
            hold->is_disturbed |= was_disturbed;
        }
    }
}

void check_lists(struct event_base *process, uint32_t list) {
    struct checker *checker = checker_of(process->world);
    const struct hold *hold;
    actions_move(process);
    checker->lists[process->index] = list;
    checker->moves[process->index]++;
    LIST_FOREACH(hold, &checker->holds, link) {
        if (hold->process == process) {
            check_backing(checker, hold);
        }
    }
}

void check_next_list(struct event_base *process, uint32_t list) {
    actions_move(process);
    checker_of(process->world)->next_lists[process->index] = list;
}

/* ---- keys that stay ---- */

/*
 * Records that the keys are kept from others, for the time less the allowance for clocks. A key
 * held by grants in doubt keeps no other client out.
 */
static void record_stay(const struct hold *hold, uint64_t since, uint64_t ms) {
    struct checker *checker = checker_of(hold->process->world);
    uint64_t slack = (uint64_t)((double)(ms * MS) * checker->drift) + 3 * MS;
    uint64_t until = since + ms * MS - slack;
    if (ms * MS > slack && !check_is_excused(checker, hold)) {
        checker->stays[checker->stay_count++ % STAYS_MAX] =
            (struct stay){hold->keys, hold->is_reader, until};
        checker->stayed += until > checker->world->now;
    }
}

void check_stays(const struct hold *hold, uint64_t min_hold_ms) {
    record_stay(hold, hold->began, min_hold_ms);
}

void check_delays(const struct hold *hold, uint64_t lock_delay_ms) {
    if (check_is_valid(hold)) {
        record_stay(hold, tempo_true(&hold->process->clock, hold->end), lock_delay_ms);
    }
}

static void check_nobody_stays(struct checker *checker, const struct hold *hold) {
    for (unsigned i = 0; i < STAYS_MAX && checker->keeps_assumptions; i++) {
        const struct stay *stay = &checker->stays[i];
        bool is_shared = stay->is_reader && hold->is_reader;
        if (!is_shared && (stay->keys & hold->keys) != 0 && stay->until > checker->world->now &&
            !check_is_excused(checker, hold)) {
            violate(checker->world, INVARIANT_STAY,
                    "process %u has key %u, which was to stay for %" PRIu64
                    " us more (token %" PRIu32 ")",
                    hold->process->index, hold->key, (stay->until - checker->world->now) / 1000,
                    hold->token);
        }
    }
}

/* ---- what applications are notified of ---- */

/*
 * Returns whether the library acquired the lock by pushes: in the round of QUEUE itself, or in a
 * RAISE that confirmed them. A lock without a fence has no other reason for a RAISE.
 */
static bool is_by_pushes(const redlock_lock *lock) {
    const struct round *round = &lock->operation->round;
    return round->pushed != 0 || (round->kind == ROUND_RAISE && !lock->lease.terms->fenced);
}

void check_held(struct hold *hold, struct event_base *process, redlock_lock *lock, uint32_t keys,
                redlock_mode mode, uint64_t min_validity) {
    struct checker *checker = checker_of(process->world);
    uint64_t now = tempo_read(&process->clock, checker->world->now);
    uint32_t number = check_token_of_lock(checker, lock);
    checker->acquired++;
    if (number == NO_TOKEN) {
        violate(checker->world, INVARIANT_TOKENS, "a lock with a token of nobody");
        return;
    }
    struct token *token = &checker->tokens[number];
    uint64_t began = lock->operation != NULL ? lock->operation->round.start : lock->lease.asked_at;
    *hold = (struct hold){.process = process,
                          .lock = lock,
                          .key = (unsigned)__builtin_ctz(keys),
                          .keys = keys,
                          .is_reader = mode == REDLOCK_READER,
                          .token = number,
                          .began = tempo_true(&process->clock, began)};
    checker->waiting.taken += !token->is_between && is_by_pushes(lock);
    bool is_handed = token->is_between;
    token->is_between = false;
    if (!token->is_acquired) {
        token->is_acquired = true;
        token->acquired_at = checker->world->now;
        check_votes(checker, hold);
    }
    hold->end = check_reported_end(lock);
    /* Redlock, step 3: success requires a validity above the minimum. */
    if (hold->end <= now || hold->end - now <= min_validity) {
        violate(checker->world, INVARIANT_QUORUM,
                "process %u was notified that it has key %u, but its validity is %" PRIu64
                " us (token %" PRIu32 ")",
                process->index, hold->key, hold->end > now ? (hold->end - now) / 1000 : 0, number);
    }
    check_excuse(checker, hold);
    actions_held(hold, is_handed);
    LIST_INSERT_HEAD(&checker->holds, hold, link);
    begin_validity(hold);
    check_number(checker);
    check_promises(checker, hold);
    check_backing(checker, hold);
    check_alone(checker, hold);
    check_nobody_stays(checker, hold);
    checker->shared += hold->was_shared;
}

unsigned check_permit(struct checker *checker, const redlock_lock *lock) {
    struct word name;
    name.text = redlock_key(lock, &name.length);
    unsigned key = check_key_of(checker, &name);
    if (key == checker->key_count) {
        violate(checker->world, INVARIANT_PERMITS, "a permit with a key of nobody");
        return 0;
    }
    const struct lease *lease = &lock->lease;
    bool is_second = lease->tries == 2 && lease->permit_retries == 1;
    checker->permits_held++;
    checker->permits_second += is_second;
    checker->permits_later += lease->tries > 1 && !is_second;
    return key;
}

/* ---- fences ---- */

static void record_fence(struct fences *fences, const struct fence *fence) {
    if (fences->count == fences->capacity) {
        fences->capacity = fences->capacity * 2 + 64;
        fences->list = realloc(fences->list, fences->capacity * sizeof(*fences->list));
        if (fences->list == NULL) {
            abort();
        }
    }
    fences->list[fences->count++] = *fence;
}

/* Returns whether two fences are of one range, or of ranges that do not overlap. */
static bool are_apart(const struct fence *one, const struct fence *other) {
    uint64_t distance =
        one->first > other->first ? one->first - other->first : other->first - one->first;
    return distance == 0 ? one->token == other->token : distance >= FENCES_IN_RANGE;
}

static void compare_fence(struct checker *checker, const struct hold *hold, unsigned key,
                          const struct fence *fence, uint64_t began_at) {
    const struct fences *fences = &checker->fences[key];
    for (size_t i = 0; i < fences->count; i++) {
        const struct fence *other = &fences->list[i];
        bool is_stale = other->reported_at < began_at && other->number > fence->number;
        if (is_stale || other->number == fence->number || !are_apart(fence, other)) {
            violate(checker->world, INVARIANT_FENCE,
                    "process %u has the fence %" PRIu64 " of key %u, %s %" PRIu64
                    " was given before (token %" PRIu32 ")",
                    hold->process->index, fence->number, key,
                    is_stale                         ? "although"
                    : other->number == fence->number ? "which as"
                                                     : "in whose range",
                    other->number, hold->token);
        }
    }
}

/*
 * Checks that the fences of a client's own handovers grow. Returns the instant from which an
 * acquisition counts: if its fence comes from a range that the client took earlier, another client
 * may have a larger one by now where the assumptions of exclusion do not hold.
 */
static uint64_t check_range(struct checker *checker, const struct hold *hold, uint64_t number,
                            uint64_t began_at) {
    struct token *token = &checker->tokens[hold->token];
    bool is_handed_on = hold->lock->lease.fences_used > 0;
    if (number <= token->fence) {
        violate(checker->world, INVARIANT_FENCE,
                "process %u hands key %u over with the fence %" PRIu64 ", after %" PRIu64
                " (token %" PRIu32 ")",
                hold->process->index, hold->key, number, token->fence, hold->token);
    }
    token->fence = number;
    token->range_asked_at = is_handed_on ? token->range_asked_at : began_at;
    checker->from_ranges += is_handed_on;
    return checker->keeps_assumptions ? began_at : token->range_asked_at;
}

void check_fence(const struct hold *hold, uint64_t began_at) {
    struct checker *checker = checker_of(hold->process->world);
    uint64_t number = redlock_fence(hold->lock);
    bool is_fenced = checker->is_fenced && !hold->is_reader;
    if (is_fenced != (number != 0)) {
        violate(checker->world, INVARIANT_FENCE, "process %u has the fence %" PRIu64 " of key %u",
                hold->process->index, number, hold->key);
    }
    began_at = is_fenced ? check_range(checker, hold, number, began_at) : began_at;
    const struct fence fence = {number, checker->world->now, number - hold->lock->lease.fences_used,
                                hold->token};
    for (uint32_t rest = hold->keys; rest != 0; rest &= rest - 1) {
        unsigned key = (unsigned)__builtin_ctz(rest);
        if (is_fenced && checker->keeps_counters) {
            compare_fence(checker, hold, key, &fence, began_at);
            record_fence(&checker->fences[key], &fence);
            check_gate(checker, hold, key, number);
        }
    }
    checker->fenced += is_fenced;
    checker->raised +=
        hold->lock->operation != NULL && hold->lock->operation->round.kind == ROUND_RAISE;
}

void check_used(struct hold *hold) {
    struct checker *checker = checker_of(hold->process->world);
    const struct hold *other;
    LIST_FOREACH(other, &checker->holds, link) {
        if (other != hold && (other->keys & hold->keys) != 0 && check_is_valid(other) &&
            !check_is_valid(hold) && !hold->was_overlapped &&
            !(hold->is_reader && other->is_reader)) {
            TRACE(checker->world, "OVERLAP: process %u acts on key %u that process %u has",
                  hold->process->index, hold->key, other->process->index);
            hold->was_overlapped = true;
            checker->overlaps++;
        }
    }
}

void check_unheld(struct hold *hold) {
    LIST_REMOVE(hold, link);
}

void check_not_lost(const struct hold *hold) {
    const struct checker *checker = checker_of(hold->process->world);
    if (hold->is_over && !hold->is_disturbed && !checker->clocks_jump) {
        violate(checker->world, INVARIANT_LOSS,
                "process %u was never notified of the loss of key %u (token %" PRIu32 ")",
                hold->process->index, hold->key, hold->token);
    }
}

/*
 * Checks that the loss was reported in time. The loop's lateness is below the margin if the margin
 * is not shortened.
 */
void check_expired(const struct hold *hold) {
    struct checker *checker = checker_of(hold->process->world);
    checker->lost++;
    if (hold->is_over && !hold->is_disturbed && !checker->clocks_jump) {
        violate(checker->world, INVARIANT_LOSS,
                "process %u was notified of the loss of key %u after the validity had ended (token "
                "%" PRIu32 ")",
                hold->process->index, hold->key, hold->token);
    }
}

void check_extended(struct hold *hold, uint64_t asked_at) {
    struct checker *checker = checker_of(hold->process->world);
    look_at(checker, hold);
    uint64_t now = tempo_read(&hold->process->clock, checker->world->now);
    if (hold->end <= now || hold->end < asked_at) {
        violate(
            checker->world, INVARIANT_REVIVAL,
            "process %u was notified that key %u is extended, but it is not valid (token %" PRIu32
            ")",
            hold->process->index, hold->key, hold->token);
    }
}

void check_over(struct event_base *process, const redlock_lock *lock) {
    struct checker *checker = checker_of(process->world);
    uint32_t number = check_token_of_lock(checker, lock);
    if (number != NO_TOKEN) {
        struct token *token = &checker->tokens[number];
        token->is_over = true;
        for (uint32_t rest = token->is_acquired ? token->keys : 0; rest != 0; rest &= rest - 1) {
            checker->released_last[process->index][__builtin_ctz(rest)] = number;
        }
    }
}

/* ---- at the end ---- */

/*
 * Returns whether the key may be left at the server: memory was refused, the client or its process
 * is gone, the key may have left the server, or the SET arrived after its connection had ended.
 */
static bool is_excused(const struct checker *checker, const struct token *token, unsigned server) {
    return token->process->failed != token->failed || token->process->life != token->life ||
           checker->moves[token->process->index] != token->moves || token->is_late[server];
}

static void check_left_token(const struct checker *checker, const struct master *master,
                             unsigned key, const char *text, size_t length) {
    uint32_t number = check_token_of(checker, text, length);
    if (number == NO_TOKEN) {
        return;
    }
    const struct token *token = &checker->tokens[number];
    if (check_hold_of(checker, number) == NULL && !is_excused(checker, token, master->index)) {
        violate(checker->world, INVARIANT_EXPIRY,
                "node %u still has key %u of a request that has ended (token %" PRIu32 ")",
                master->index, key, number);
    }
}

/* Checks that a key outlives its readers by 1 ms at most. */
static void check_left_readers(struct checker *checker, struct master *master, unsigned key,
                               int64_t expires_ms) {
    const struct store_key *readers = check_beside(checker, master, key, READERS_SUFFIX);
    for (unsigned i = 0; readers != NULL && i < readers->set.count; i++) {
        const struct member *member = &readers->set.list[i];
        if (member->score >= master_now_ms(master)) {
            check_left_token(checker, master, key, member->name, member->length);
        }
    }
    bool was_evicted =
        check_evicted_until(checker, master->index, UINT32_C(1) << key) > checker->world->now;
    if (check_alive(checker, master, key) == 0 && expires_ms > master_now_ms(master) + 1 &&
        !was_evicted) { /* without its list the key waits for its expiry */
        violate(checker->world, INVARIANT_EXPIRY, "node %u still shares key %u with nobody",
                master->index, key);
    }
}

/*
 * Checks that an entry is not left over because its client did not leave the queue. A server that
 * refused the LEAVE is sent it again only while it may have the key, as any grant is then released.
 */
static void check_left_entry(const struct checker *checker, const struct master *master,
                             unsigned key, const char *text, size_t length) {
    uint32_t number = check_token_of(checker, text, length);
    bool was_asked = number != NO_TOKEN && checker->tokens[number].released_on[master->index] != 0;
    if (!was_asked && !checker->has_caps) {
        check_left_token(checker, master, key, text, length);
    }
}

static void check_leftover(struct checker *checker, struct master *master, unsigned key) {
    master->store.db = checker->db;
    const struct store_key *found =
        master_find(master, checker->keys[key], strlen(checker->keys[key]));
    if (check_is_shared(found)) {
        check_left_readers(checker, master, key, found->expires_ms);
    } else if (found != NULL && found->type == STORE_STRING) {
        check_left_token(checker, master, key, found->value, found->value_length);
    }
    check_entries(checker, master, key, check_left_entry);
}

void check_leftovers(struct checker *checker) {
    if (checker->clocks_jump) {
        return; /* a client that considers a TTL over does not send the release again */
    }
    for (unsigned i = 0; i < checker->network->server_count; i++) {
        for (unsigned key = 0; key < checker->key_count; key++) {
            check_leftover(checker, &checker->network->servers[i].master, key);
        }
    }
}
