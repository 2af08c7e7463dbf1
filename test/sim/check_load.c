/*
 * Compares the commands sent, executed and answered with the notifications to applications.
 *
 * A renewal is identified by the connections over which it was sent: answers come in order, so the
 * answer to the latest renewal is the one after which none is pending. A request that raises its
 * counter or confirms its entry sends a renewal's command, too: such a round is part of the
 * acquisition, and does not count among the renewals that must be spread.
 */
#include "check_load.h"

#include "lock/lock.h"
#include "wire/script.h"

#include <inttypes.h>
#include <stdlib.h>

/* 1/10 s. */
#define TENTH (100 * MS)

/* Maximum lateness of the application's timer. */
#define TICK_LATE (20 * MS)

/* Units of work for each request of a burst: making requests takes time, too. */
#define WORK_OF_REQUEST 40

/* Maximum time for which one occurrence may block the loop. */
#define OCCURRENCE_MOST (10 * MS)

/*
 * Memory limits: of a client apart from its locks; and of each lock, which may take twice as much
 * while calls wait for missing or overloaded nodes.
 */
#define MEMORY_BASE (4 * 1024 * 1024)
#define MEMORY_OF_LOCK 4096

void check_load_token(struct load_world *load, char text[41]) {
    struct rng *rng = &load->world.rng;
    snprintf(text, 41, "%08" PRIx32 "%016" PRIx64 "%016" PRIx64, load->token_count++, rng_next(rng),
             rng_next(rng));
}

static unsigned quorum_in(const struct load_world *load) {
    return load->plan.nodes / 2 + 1;
}

/* ---- calls ---- */

static bool is_renewal(const struct words *words) {
    return words->count > 3 && (word_is(&words->word[1], script_sha(SCRIPT_RENEW)) ||
                                word_is(&words->word[1], script_text(SCRIPT_RENEW)) ||
                                word_is(&words->word[1], script_sha(SCRIPT_RENEW_FENCED)) ||
                                word_is(&words->word[1], script_text(SCRIPT_RENEW_FENCED)));
}

/* The locks of a renewal: one key each, or a key and a counter. */
struct renewed {
    const struct word *keys, *arguments;
    unsigned count, keys_each, arguments_each;
};

static struct renewed read_renewal(const struct words *words) {
    long long keys = 0;
    bool is_fenced = word_is(&words->word[1], script_sha(SCRIPT_RENEW_FENCED)) ||
                     word_is(&words->word[1], script_text(SCRIPT_RENEW_FENCED));
    word_number(&words->word[2], &keys);
    unsigned each = is_fenced ? 2 : 1;
    return (struct renewed){.keys = &words->word[3],
                            .arguments = &words->word[3 + keys],
                            .count = (unsigned)keys / each,
                            .keys_each = each,
                            .arguments_each = is_fenced ? 4 : 2};
}

/* Finds the lock of a key "crowd<process>:<index>". */
static struct crowd_lock *lock_of(struct load_world *load, const struct word *key) {
    unsigned process = (unsigned)(key->text[5] - '0');
    unsigned index = 0;
    for (size_t i = 7; i < key->length; i++) {
        index = index * 10 + (unsigned)(key->text[i] - '0');
    }
    return &load->crowds[process].locks[index];
}

/* ---- how long things take ---- */

/* Returns the time within which a running loop reads a message that has arrived. */
static uint64_t reading_time(const struct load_world *load) {
    return 50 * MS + (uint64_t)load->plan.locks * 100 * load->plan.cost;
}

/* Returns the maximum time to reconnect and to renew all locks. */
static uint64_t return_time(const struct load_world *load) {
    const struct load_plan *plan = &load->plan;
    return (plan->options.stall_timeout_ms + 2 * plan->options.reconnect_delay_max_ms + 100) * MS +
           3 * plan->crowds * plan->locks * plan->key_time + reading_time(load);
}

/* Returns the work of the application's own burst of requests, which takes time. */
static uint64_t asked_work(const struct crowd *crowd) {
    return crowd_asks(crowd) * WORK_OF_REQUEST * crowd->process.cost;
}

/* ---- how often, and when ---- */

static double renewals_a_tenth(const struct load_world *load) {
    return (double)load->plan.locks * 300 / (double)load->plan.ttl_ms;
}

/* Returns the maximum of renewals in 1/10 s; a tick of the smaller crowd may come beside others. */
static double most_in_a_tenth(const struct load_world *load, uint64_t from) {
    return 3 * renewals_a_tenth(load) + (from < load->ticks_until ? SCRIPT_MAX_KEYS : 20);
}

static void check_spread(const struct crowd *crowd) {
    const struct load_world *load = crowd->load;
    double most = most_in_a_tenth(load, crowd->tenth * TENTH);
    for (unsigned i = 0; i < load->plan.nodes; i++) {
        if (crowd->sent_to[i] > most && crowd->steady_from <= crowd->tenth * TENTH) {
            violate(
                crowd->process.world, INVARIANT_STORM,
                "process %u sent node %u %u renewals in a tenth of a second, and %.0f are usual",
                crowd->process.index, i, crowd->sent_to[i], renewals_a_tenth(load));
        }
    }
}

/*
 * Returns whether the loop or a server has just come back, so that missed renewals are made at
 * once.
 */
static bool catches_up(const struct crowd *crowd) {
    const struct load_world *load = crowd->load;
    uint64_t away_until = crowd->process.away_until;
    uint64_t since = load->back_at > away_until ? load->back_at : away_until;
    return crowd->tenth * TENTH < since + return_time(load) + TENTHS * TENTH;
}

/*
 * Returns the maximum of renewals in a second: twice the usual number, however many nodes are
 * missing.
 */
static double most_in_a_second(const struct crowd *crowd) {
    const struct load_world *load = crowd->load;
    double usual = renewals_a_tenth(load) * TENTHS * load->plan.nodes;
    bool is_steady = crowd->steady_from + TENTHS * TENTH <= crowd->tenth * TENTH;
    double at_once = catches_up(crowd) ? (double)load->plan.locks * load->plan.nodes : 0;
    return (is_steady ? usual * 1.5 : usual * 2 + at_once) + 50 * load->plan.nodes;
}

static void check_rate(const struct crowd *crowd) {
    const struct load_world *load = crowd->load;
    unsigned sum = 0;
    for (unsigned i = 0; i < TENTHS; i++) {
        sum += crowd->sent[i];
    }
    if (sum > most_in_a_second(crowd)) {
        violate(crowd->process.world, INVARIANT_STORM,
                "process %u sent %u renewals in a second, and %.0f are usual", crowd->process.index,
                sum, renewals_a_tenth(load) * TENTHS * load->plan.nodes);
    }
}

/* Closes the tenths of a second that are over. */
static void pass_time(struct crowd *crowd) {
    uint64_t tenth = crowd->process.world->now / TENTH;
    for (unsigned i = 0; i < TENTHS && crowd->tenth < tenth; i++) {
        check_spread(crowd);
        check_rate(crowd);
        crowd->tenth++;
        crowd->sent[crowd->tenth % TENTHS] = 0;
        memset(crowd->sent_to, 0, sizeof(crowd->sent_to));
    }
    crowd->tenth = tenth;
}

void check_load_disturbed(struct load_world *load, struct crowd *crowd, uint64_t until) {
    uint64_t interval = load->plan.ttl_ms * MS / 3;
    uint64_t steady_from = until + 2 * interval + 2 * TENTH;
    crowd->steady_from = crowd->steady_from > steady_from ? crowd->steady_from : steady_from;
}

/* Returns the maximum number of consecutive failed renewals of a lock that stays valid. */
static unsigned failures_most(const struct load_world *load) {
    unsigned failures = 4;
    for (uint64_t left = load->plan.ttl_ms * 2 / 3; left > 5; left = left * 5 / 8) {
        failures++;
    }
    return failures;
}

/* ---- what is sent ---- */

/*
 * Checks that a new renewal begins within one interval of the acquisition, or of the start of the
 * last renewal if a quorum granted it; and if nothing disturbed the client since and shortly
 * before.
 */
static void check_in_time(const struct crowd_lock *lock) {
    const struct crowd *crowd = lock->crowd;
    const struct renewal *renewal = &lock->renewal;
    uint64_t interval = crowd->load->plan.ttl_ms * MS / 3;
    uint64_t last = renewal->began_at == 0   ? renewal->since
                    : renewal->quorum_at > 0 ? renewal->began_at
                                             : 0;
    /* The process's clock may be slow. */
    uint64_t latest = last + interval + interval / 50 + TICK_LATE + asked_work(crowd);
    bool is_calm = crowd->steady_from <= last && crowd->process.away_until <= latest;
    if (last > 0 && lock->state != CROWD_ASKS && is_calm && crowd->process.began_at > latest) {
        violate(crowd->process.world, INVARIANT_RENEWAL,
                "process %u renewed lock %u %" PRIu64 " us after 1/3 of the TTL",
                crowd->process.index, lock->index,
                (crowd->process.began_at - last - interval) / 1000);
    }
}

static void renewal_sent(struct crowd_lock *lock, const struct link *link) {
    struct crowd *crowd = lock->crowd;
    struct renewal *renewal = &lock->renewal;
    unsigned server = link->server->master.index;
    if (renewal->began_at != crowd->process.began_at) {
        check_in_time(lock);
        renewal->began_at = crowd->process.began_at;
        renewal->asked = renewal->granted = 0;
        renewal->quorum_at = 0;
        renewal->unsuccessful++;
    }
    renewal->asked |= UINT32_C(1) << server;
    if (renewal->open[server].link != link->number) {
        renewal->open[server].link = link->number;
        renewal->open[server].count = 0;
    }
    renewal->open[server].count++;
    if (lock->state != CROWD_ASKS) {
        crowd->sent[crowd->tenth % TENTHS]++;
        crowd->sent_to[server]++;
    }
    if (renewal->unsuccessful > failures_most(crowd->load) &&
        renewal->since > crowd->load->back_at) {
        violate(crowd->process.world, INVARIANT_STORM,
                "lock %u was renewed %u times without result", lock->index, renewal->unsuccessful);
    }
}

static unsigned locks_in(const struct words *words) {
    long long keys = 1;
    if (words->count > 2 && word_is(&words->word[0], "EVALSHA")) {
        word_number(&words->word[2], &keys);
    }
    return (unsigned)keys;
}

void check_load_sent(struct load_world *load, const struct link *link, const char *data,
                     size_t length) {
    struct words words;
    if (words_read(&words, data, length) != length) {
        violate(&load->world, INVARIANT_BOUNDS, "process %u sent a broken command",
                link->process->index);
        return;
    }
    link->process->work += WORK_OF_COMMAND + locks_in(&words) * WORK_OF_LOCK;
    if (!is_renewal(&words)) {
        return;
    }
    struct renewed renewed = read_renewal(&words);
    pass_time(&load->crowds[link->process->index]);
    for (unsigned i = 0; i < renewed.count; i++) {
        renewal_sent(lock_of(load, &renewed.keys[i * renewed.keys_each]), link);
    }
}

/* ---- effects at servers ---- */

struct effect *check_load_effects(struct load_world *load, const struct link *link,
                                  const struct words *words, unsigned *count) {
    (void)load;
    *count = 0;
    if (!is_renewal(words)) {
        return NULL;
    }
    struct renewed renewed = read_renewal(words);
    struct effect *effects = calloc(renewed.count, sizeof(*effects));
    if (effects == NULL) {
        abort();
    }
    for (unsigned i = 0; i < renewed.count; i++) {
        const struct word *name = &renewed.keys[i * renewed.keys_each];
        const struct word *token = &renewed.arguments[i * renewed.arguments_each];
        const struct store_key *key = master_find(&link->server->master, name->text, name->length);
        effects[i].token = lock_of(load, name)->index;
        effects[i].was_kept =
            key != NULL && key->value_length >= 40 && memcmp(key->value, token->text, 40) == 0;
    }
    *count = renewed.count;
    return effects;
}

/* ---- what arrives ---- */

static void answer_arrived(struct crowd_lock *lock, const struct link *link, bool is_granted) {
    struct renewal *renewal = &lock->renewal;
    const struct load_world *load = lock->crowd->load;
    unsigned server = link->server->master.index;
    if (renewal->open[server].link != link->number || --renewal->open[server].count > 0 ||
        !is_granted || !(renewal->asked >> server & 1)) {
        return;
    }
    renewal->granted |= UINT32_C(1) << server;
    if ((unsigned)__builtin_popcount(renewal->granted) >= quorum_in(load) &&
        renewal->quorum_at == 0) {
        renewal->quorum_at = renewal->since = load->world.now;
        renewal->unsuccessful = 0;
    }
}

void check_load_arrived(struct load_world *load, const struct link *link,
                        const struct message *message) {
    const struct answer *answer;
    struct crowd *crowd = &load->crowds[link->process->index];
    STAILQ_FOREACH(answer, &message->answers, link) {
        for (unsigned i = 0; i < answer->effect_count; i++) {
            const struct effect *effect = &answer->effects[i];
            answer_arrived(&crowd->locks[effect->token], link, effect->was_kept);
        }
    }
}

/* ---- turns, and memory ---- */

void check_load_process(struct event_base *process, bool was_disturbed) {
    const struct load_world *load = process->world->checker->load;
    const struct crowd *crowd = &load->crowds[process->index];
    const struct load_plan *plan = &load->plan;
    bool is_calm = crowd->steady_from <= process->world->now;
    size_t each = is_calm ? MEMORY_OF_LOCK : 2 * MEMORY_OF_LOCK;
    size_t most = MEMORY_BASE + (plan->locks + plan->contenders) * each;
    uint64_t took = process->work * process->cost;
    if (took > OCCURRENCE_MOST + asked_work(crowd) && process->away_until < process->began_at &&
        !was_disturbed) {
        violate(process->world, INVARIANT_WORK, "process %u kept its loop for %" PRIu64 " us",
                process->index, took / 1000);
    }
    if (process->bytes > most && crowd_asks(crowd) == 0) {
        violate(process->world, INVARIANT_BOUNDS, "process %u has %zu bytes for %u locks",
                process->index, process->bytes, plan->locks);
    }
}

/* ---- requests that wait for room ---- */

/* Time after which a running loop has begun a request whose time is over. */
static uint64_t start_late(const struct crowd *crowd) {
    return TICK_LATE + asked_work(crowd);
}

void check_load_began(const struct crowd_lock *lock, const redlock_lock *handle) {
    const struct lease *lease = &handle->lease;
    if (lock->wait > 0 && lease->asked_at > lease->begun_at + lock->wait) {
        violate(lock->crowd->process.world, INVARIANT_BOUNDS,
                "request %u has begun a try %" PRIu64 " us after the end of its time", lock->index,
                (lease->asked_at - lease->begun_at - lock->wait) / 1000);
    }
}

void check_load_failed(const struct crowd_lock *lock, const redlock_lock *handle) {
    const struct lease *lease = &handle->lease;
    bool is_over = lock->wait > 0 && lease->completed_at >= lease->begun_at + lock->wait;
    if (!is_over || lease->tries > 0) {
        violate(lock->crowd->process.world, INVARIANT_LIVENESS, "lock %u was not acquired: %s",
                lock->index, redlock_explain(handle));
    }
}

/*
 * Checks that the requests of a burst begin in their order, as the nodes have room, and that none
 * waits for room beyond the end of its time.
 */
static void check_starts(const struct crowd *crowd) {
    uint64_t now = crowd->process.world->now;
    const struct crowd_lock *waiting = NULL; /* the first one */
    for (unsigned i = 0; i < crowd->asked; i++) {
        const struct crowd_lock *lock = &crowd->locks[i];
        bool waits = lock->state == CROWD_ASKS && lock->lock->lease.state == LEASE_STARTING;
        if (!waits && waiting != NULL && lock->start_by == 0) {
            violate(crowd->process.world, INVARIANT_ORDER, "request %u has begun before request %u",
                    lock->index, waiting->index);
        } else if (waits && lock->start_by != 0 && now > lock->start_by + start_late(crowd)) {
            violate(crowd->process.world, INVARIANT_LIVENESS,
                    "request %u still waits for room, %" PRIu64 " us after the end of its time",
                    lock->index, (now - lock->start_by) / 1000);
        }
        waiting = waits && waiting == NULL ? lock : waiting;
    }
}

void check_load_tick(const struct crowd *crowd, uint64_t due) {
    const struct event_base *process = &crowd->process;
    uint64_t from = due > process->away_until ? due : process->away_until;
    uint64_t now = process->world->now;
    if (now > from + TICK_LATE + asked_work(crowd)) {
        violate(process->world, INVARIANT_WORK,
                "a timer of process %u was run %" PRIu64 " us after it was due", process->index,
                (now - from) / 1000);
    }
    if (crowd->load->plan.is_distant && crowd->asking > 0 && process->world->violated == 0) {
        check_starts(crowd);
    }
}

/* ---- losses ---- */

/* Returns whether a quorum granted the latest renewal in time for the loop to see it. */
static bool was_renewed(const struct crowd_lock *lock) {
    const struct load_world *load = lock->crowd->load;
    const struct renewal *renewal = &lock->renewal;
    const struct event_base *process = &lock->crowd->process;
    uint64_t now = load->world.now;
    uint64_t useful = load->plan.ttl_ms * MS * 98 / 100;
    return renewal->quorum_at != 0 && renewal->quorum_at + reading_time(load) < now &&
           process->away_until + reading_time(load) < now &&
           renewal->began_at + useful > now + 20 * MS;
}

/*
 * Returns whether a quorum of servers was reachable for long enough. A server that is back may have
 * no room for all renewals at once, and those that it refused are tried again after 1/20 of the
 * TTL.
 */
static bool was_renewable(const struct crowd *crowd) {
    const struct load_world *load = crowd->load;
    uint64_t now = nanos_sub(load->world.now, load->plan.ttl_ms * MS / 16);
    unsigned up = 0;
    for (unsigned i = 0; i < load->plan.nodes; i++) {
        up += load->up_since[i] != NEVER && load->up_since[i] + return_time(load) < now;
    }
    return up >= quorum_in(load) && crowd->process.away_until + return_time(load) < now;
}

void check_load_lost(const struct crowd_lock *lock, redlock_status status) {
    const struct crowd *crowd = lock->crowd;
    const struct load_world *load = crowd->load;
    const char *why = status != REDLOCK_EEXPIRED        ? "no key is gone"
                      : !load->plan.has_majority_faults ? "a quorum was there all the time"
                      : was_renewed(lock)               ? "a quorum had renewed it"
                      : was_renewable(crowd)            ? "a quorum was there for long enough"
                                                        : NULL;
    if (why != NULL) {
        violate(crowd->process.world, INVARIANT_RENEWAL, "process %u lost lock %u (%s), but %s",
                crowd->process.index, lock->index, redlock_status_name(status), why);
    }
}

/* ---- statuses ---- */

static redlock_status expected_status(const redlock_node_report *reports, size_t count) {
    size_t quorum = count / 2 + 1;
    size_t granted = 0, denied = 0, failed = 0;
    for (size_t i = 0; i < count; i++) {
        switch (reports[i].vote) {
        case REDLOCK_VOTE_GRANTED:
            granted++;
            break;
        case REDLOCK_VOTE_DENIED:
            denied++;
            break;
        case REDLOCK_VOTE_NONE:
            break;
        default:
            failed++;
            break;
        }
    }
    return granted >= quorum                        ? REDLOCK_EEXPIRED
           : denied > 0 && count - failed >= quorum ? REDLOCK_EHELD
                                                    : REDLOCK_ENOQUORUM;
}

void check_load_status(const struct crowd *crowd, const redlock_lock *lock, redlock_status status) {
    redlock_node_report reports[SERVERS_MAX];
    size_t count = redlock_report(lock, reports, SERVERS_MAX);
    redlock_status expected = expected_status(reports, count);
    if (status != expected) {
        violate(crowd->process.world, INVARIANT_CALLBACKS, "a request ended with %s, and was %s",
                redlock_status_name(status), redlock_explain(lock));
    }
}

/* ---- the end ---- */

static unsigned keys_left(const struct crowd *crowd, struct master *master) {
    const struct load_plan *plan = &crowd->load->plan;
    unsigned left = 0;
    for (unsigned i = 0; i < plan->locks + plan->contenders + 1; i++) {
        char name[32];
        int length = snprintf(name, sizeof(name), "crowd%u:%u", crowd->process.index, i);
        master->store.db = 0;
        const struct store_key *key = master_find(master, name, (size_t)length);
        left += key != NULL && key->value_length == 40;
    }
    return left;
}

void check_load_closed(const struct crowd *crowd) {
    struct load_world *load = crowd->load;
    for (unsigned i = 0; i < load->plan.nodes; i++) {
        unsigned left =
            load->up_since[i] != NEVER && load->up_since[i] + return_time(load) < crowd->closing_at
                ? keys_left(crowd, &load->network.servers[i].master)
                : 0;
        if (left > 0) {
            violate(&load->world, INVARIANT_EXPIRY,
                    "process %u closed its client, and left %u keys at node %u",
                    crowd->process.index, left, i);
        }
    }
}
