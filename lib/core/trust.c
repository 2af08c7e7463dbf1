#include "core/trust.h"

#include "base/nanos.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The grain of comparisons: clocks are read in whole us, and keys expire in whole ms. */
#define CLOCK_GRAIN ((int64_t)(2 * NANOS_PER_MS))

/* The bound on a wall clock's error: synchronized clocks are closer, wrong ones further off. */
#define WALL_SLACK ((int64_t)(1000 * NANOS_PER_MS))

/*
 * The longest time between two heartbeats for which a new replication id without a second one is
 * harmless. Such an id comes with the first replica, but also after a failback (a master was a
 * replica for a moment), once the server has been without replicas for more than repl-backlog-ttl
 * seconds. So it hides no failback since the last heartbeat if repl-backlog-ttl is 12 or more (or
 * 0, never). Longer than the gap of an idle client's heartbeats: otherwise all idle clients would
 * distrust a master that gets its first replica.
 */
#define HARMLESS_GAP ((uint64_t)(12000 * NANOS_PER_MS))

static uint32_t bit_of(enum trust_topic topic) {
    return UINT32_C(1) << topic;
}

static bool is_guarded(const struct trust *trust) {
    return trust->terms.guards != REDLOCK_GUARDS_OFF;
}

void trust_init(struct trust *trust, const struct trust_terms *terms) {
    *trust = (struct trust){.terms = *terms};
}

void trust_connected(struct trust *trust) {
    trust->answered = trust->refused = 0;
    trust->is_beating = false;
}

static bool is_waived(const struct trust *trust, enum trust_fault fault) {
    return trust->terms.is_durable &&
           (fault == TRUST_RESTARTED || fault == TRUST_UNWATCHED || fault == TRUST_FORGETFUL);
}

/* Records at `at` that, by this fault, the node may have lost keys. */
static void record_loss(struct trust *trust, enum trust_fault fault, uint64_t at) {
    /* A fault that is over or waived takes no grant back. */
    if (trust->until[fault] > at && is_guarded(trust) && !is_waived(trust, fault)) {
        trust->lost_at = at;
    }
}

static void answer(struct trust *trust, enum trust_topic topic, uint64_t at) {
    trust->answered |= bit_of(topic);
    trust->refused &= ~bit_of(topic);
    trust->heard_at = at;
}

/* ---- restarts ---- */

/* Returns a lower bound, on our clock, of a duration measured by the server's clock. */
static uint64_t by_our_clock(const struct trust *trust, uint64_t theirs) {
    return theirs - (uint64_t)((double)theirs * trust->terms.drift);
}

/*
 * Returns a lower bound of the server's uptime. Both its start and its end are cut to whole
 * seconds, so one may be missing. An uptime that reaches back before the last answer of the
 * previous run is wrong, because a clock jumped, and counts as 0.
 */
static uint64_t certain_uptime(const struct trust *trust, uint64_t uptime_s, uint64_t at) {
    uint64_t seconds = nanos_sub(nanos_min(uptime_s, UINT32_MAX), 1);
    uint64_t uptime = by_our_clock(trust, nanos_from_ms(seconds * 1000));
    bool lies = trust->run_id[0] != '\0' && uptime > at - trust->heard_at;
    return lies ? 0 : uptime;
}

void trust_server(struct trust *trust, const char *run_id, uint64_t uptime_s, uint64_t at) {
    /* Redlock, delayed restarts: a new run counts after max_ttl, when lost locks have expired. */
    if (strncmp(trust->run_id, run_id, TRUST_RUN_ID_MAX) != 0) {
        uint64_t uptime = certain_uptime(trust, uptime_s, at);
        trust->until[TRUST_RESTARTED] = nanos_add(at, nanos_sub(trust->terms.max_ttl, uptime));
        if (trust->run_id[0] != '\0') { /* it may have granted keys in the previous run */
            record_loss(trust, TRUST_RESTARTED, at);
        }
        /* The marker of the new run is judged afresh. */
        trust->last_us = 0;
        snprintf(trust->run_id, sizeof(trust->run_id), "%s", run_id);
    }
    answer(trust, TRUST_SERVER, at);
}

/* ---- roles ---- */

void trust_role(struct trust *trust, bool is_master, uint64_t at) {
    /* Replication is asynchronous: the keys that its master granted last may be missing. */
    if (trust->is_replica && is_master) {
        trust->until[TRUST_PROMOTED] = nanos_add(at, trust->terms.max_ttl);
    }
    if (!trust->is_replica && !is_master) {
        trust->lost_at = at; /* the memory is now another server's, whatever the guards */
    }
    trust->is_replica = !is_master;
    answer(trust, TRUST_ROLE, at);
}

/* ---- clock and memory ---- */

static void take_reading(struct trust *trust, int64_t low, int64_t high, uint64_t at) {
    trust->has_clock = true;
    trust->clock_low = low;
    trust->clock_high = high;
    trust->clock_at = at;
}

/*
 * Returns how far the node's clock may have moved ahead or back against ours in `passed`. A
 * validity of ttl * (1 - drift) by our clock is safe if the node's clock counts no more than ttl
 * meanwhile.
 */
static int64_t allowance(const struct trust *trust, uint64_t passed) {
    return (int64_t)((double)passed * trust->terms.drift / (1 - trust->terms.drift));
}

/* Handles a new reading. Returns whether it fits into the range that earlier readings allow now. */
static bool check_clock(struct trust *trust, const struct trust_beat *beat) {
    int64_t time = (int64_t)(beat->time_us * NANOS_PER_US);
    /* The clock was read at any time in between. */
    int64_t aged = allowance(trust, beat->received_at - beat->sent_at);
    int64_t low = time - (int64_t)beat->received_at - aged;
    int64_t high = time - (int64_t)beat->sent_at + aged;
    /* The first reading is the baseline, so it proves nothing. */
    if (!trust->has_clock) {
        take_reading(trust, low, high, beat->received_at);
        return true;
    }
    uint64_t passed = nanos_sub(beat->received_at, trust->clock_at);
    /* The range of earlier readings, widened by the drift since. */
    int64_t least = trust->clock_low - allowance(trust, passed);
    int64_t most = trust->clock_high + allowance(trust, passed);
    int64_t beyond = low > most ? low - most : high < least ? high - least : 0;
    /* Keys expire by this clock, so a jump may have ended some early. A new baseline begins. */
    if (beyond > CLOCK_GRAIN || beyond < -CLOCK_GRAIN) {
        trust->clock_moved = beyond;
        trust->clock_took = passed;
        trust->until[TRUST_CLOCK] = nanos_add(beat->received_at, trust->terms.max_ttl);
        record_loss(trust, TRUST_CLOCK, beat->received_at);
        take_reading(trust, low, high, beat->received_at);
        return false;
    }
    /* Marzullo's intersection: the clock is in both ranges. */
    if (beyond == 0) {
        least = low > least ? low : least;
        most = high < most ? high : most;
    }
    take_reading(trust, least, most, beat->received_at);
    return true;
}

/*
 * Records the replication id. If the memory may be a replica's, the script has begun the marker
 * again (beat.lua). A change of the id is a sign of that, too, if it was not watched, or if another
 * client has begun a later marker, which may be older than the change.
 */
static void record_lineage(struct trust *trust, const struct trust_beat *beat, bool is_known) {
    bool is_another =
        trust->lineage[0] != '\0' && strncmp(trust->lineage, beat->lineage, TRUST_RUN_ID_MAX) != 0;
    bool was_watched = nanos_sub(beat->received_at, trust->beaten_at) <= HARMLESS_GAP;
    /* A marker that this heartbeat has begun is as young as can be. */
    bool is_later = trust->last_us != 0 && beat->age_us > 0;
    /* Without a heartbeat in between, the node may have been a replica for a moment. */
    if (is_another && (is_known ? !was_watched : is_later)) {
        trust->until[TRUST_UNWATCHED] = nanos_add(beat->received_at, trust->terms.max_ttl);
        record_loss(trust, TRUST_UNWATCHED, beat->received_at);
    }
    snprintf(trust->lineage, sizeof(trust->lineage), "%s", beat->lineage);
}

/*
 * Records when the memory of the node will be old enough. Of heartbeats about the same memory the
 * earliest instant counts: each is a proof, and drift makes later ones weaker.
 */
static void record_memory(struct trust *trust, const struct trust_beat *beat) {
    uint64_t *until = &trust->until[TRUST_FORGETFUL];
    /* Less 1 us, because age_us is cut to whole ones. */
    uint64_t age = by_our_clock(trust, nanos_sub(beat->age_us, 1) * NANOS_PER_US);
    uint64_t proven = nanos_add(beat->received_at, nanos_sub(trust->terms.max_ttl, age));
    uint64_t first_us = nanos_sub(beat->time_us, beat->age_us);
    bool is_known = trust->last_us != 0 && first_us == trust->first_us;
    /* Each heartbeat proves an instant by which all lost locks have expired: one is enough. */
    *until = is_known ? nanos_min(*until, proven) : proven;
    /* Another marker than before: this memory may lack keys that the node had granted. */
    if (trust->last_us != 0 && !is_known) {
        record_loss(trust, TRUST_FORGETFUL, beat->received_at);
    }
    if (beat->lineage != NULL) {
        record_lineage(trust, beat, is_known);
    }
    trust->first_us = first_us;
    trust->last_us = beat->last_us;
}

/*
 * Returns the earliest instant at which the server can have run the heartbeat, after its clock was
 * checked: in a long queue of commands this is later than the sending.
 */
static uint64_t ran_at(const struct trust *trust, const struct trust_beat *beat) {
    int64_t earliest = (int64_t)(beat->time_us * NANOS_PER_US) - trust->clock_high;
    int64_t least = (int64_t)beat->sent_at;
    int64_t most = (int64_t)beat->received_at;
    return (uint64_t)(earliest < least ? least : earliest > most ? most : earliest);
}

bool trust_beat(struct trust *trust, const struct trust_beat *beat) {
    record_memory(trust, beat);
    bool is_steady = check_clock(trust, beat);
    /* Heartbeats overlap: the one that ran last proves the newest state. */
    uint64_t ran = ran_at(trust, beat);
    trust->beaten_at = trust->is_beating ? nanos_max(trust->beaten_at, ran) : ran;
    trust->is_beating = true;
    answer(trust, TRUST_BEAT, beat->received_at);
    return is_steady;
}

uint64_t trust_key_stands_until(const struct trust *trust, uint64_t expires_ms, uint64_t time_us,
                                uint64_t now) {
    if (!trust->has_clock) {
        return 0;
    }
    int64_t ahead = trust->clock_high + allowance(trust, nanos_sub(now, trust->clock_at));
    int64_t latest = (int64_t)now + ahead; /* the latest that the node's clock can be */
    /* Ahead of what drift allows: the clock has jumped, and its expiries cannot be converted. */
    if ((int64_t)(time_us * NANOS_PER_US) > latest + CLOCK_GRAIN) {
        return 0;
    }
    /* Lower bounds throughout: a waiter relies on the key for that long. */
    uint64_t expires = nanos_min(nanos_from_ms(expires_ms), INT64_MAX / 2); /* in the year 2116 */
    int64_t left = (int64_t)expires - latest;
    return left <= CLOCK_GRAIN ? 0
                               : now + by_our_clock(trust, (uint64_t)left) - (uint64_t)CLOCK_GRAIN;
}

void trust_time(struct trust *trust, uint64_t time_us, uint64_t sent_at, uint64_t received_at,
                int64_t wall_ahead) {
    int64_t time = (int64_t)(time_us * NANOS_PER_US);
    int64_t least = time - (int64_t)received_at;
    int64_t most = time - (int64_t)sent_at;
    /* The wall clock fits if it is within a second of the range that the answer allows. */
    bool is_right = wall_ahead >= least - WALL_SLACK && wall_ahead <= most + WALL_SLACK;
    trust->time_ahead = is_right ? wall_ahead : least + (most - least) / 2;
    trust->has_time = !is_guarded(trust); /* heartbeats measure the clock better */
}

bool trust_clock(const struct trust *trust, int64_t *ahead) {
    int64_t middle = trust->clock_low + (trust->clock_high - trust->clock_low) / 2;
    *ahead = trust->has_clock ? middle : trust->time_ahead;
    return trust->has_clock || trust->has_time;
}

/* ---- refusals ---- */

void trust_refused(struct trust *trust, enum trust_topic topic, bool is_forbidden,
                   const char *why) {
    assert(topic < TRUST_TOPIC_COUNT);
    /* Lenient guards waive a question that the user has no right to ask, and nothing else. */
    if (is_forbidden && trust->terms.guards == REDLOCK_GUARDS_LENIENT) {
        trust->answered |= bit_of(topic);
        trust->is_beating = trust->is_beating && topic != TRUST_BEAT;
        return;
    }
    static const char *const questions[TRUST_TOPIC_COUNT] = {
        [TRUST_SERVER] = "INFO server",
        [TRUST_ROLE] = "INFO replication",
        [TRUST_BEAT] = "the beat",
    };
    static const char *const needs[TRUST_TOPIC_COUNT] = {
        [TRUST_SERVER] = " (its user needs +info)",
        [TRUST_ROLE] = " (its user needs +info)",
        [TRUST_BEAT] = " (its user needs +time and the key " REDLOCK_MARKER_KEY ")",
    };
    struct text text;
    text_init(&text, trust->refusal, sizeof(trust->refusal));
    text_append(&text, "%s is refused%s: ", questions[topic], is_forbidden ? needs[topic] : "");
    text_append_foreign(&text, why, strlen(why));
    trust->refused |= bit_of(topic);
    trust->is_forbidden = is_forbidden;
}

/* ---- the verdict ---- */

/* Returns a mask of the topics that the node must have answered. */
static uint32_t required(const struct trust *trust) {
    return is_guarded(trust) ? bit_of(TRUST_SERVER) | bit_of(TRUST_ROLE) | bit_of(TRUST_BEAT) : 0;
}

/* Returns a fault that does not end by itself, or TRUST_NO_FAULT. */
static enum trust_fault standing_fault(const struct trust *trust) {
    /* Quorums need independent nodes: one server must not vote twice. */
    if (trust->original != NULL) {
        return TRUST_DUPLICATE;
    }
    /* A replica's keys are its master's. */
    if (trust->is_replica) {
        return TRUST_REPLICA;
    }
    if (trust->refused & required(trust)) {
        return TRUST_REFUSED;
    }
    return required(trust) & ~trust->answered ? TRUST_NOT_ASKED : TRUST_NO_FAULT;
}

bool trust_is_heard(const struct trust *trust) {
    uint32_t identity = bit_of(TRUST_SERVER) | bit_of(TRUST_ROLE);
    return (identity & ~(trust->answered | trust->refused)) == 0;
}

static bool ages(const struct trust *trust) {
    return is_guarded(trust) && trust->is_beating;
}

uint64_t trust_fresh_until(const struct trust *trust) {
    return ages(trust) ? nanos_add(trust->beaten_at, trust->terms.max_age) : NANOS_NEVER;
}

/* Returns the fault, except for age. */
static struct trust_view find_fault(const struct trust *trust, uint64_t now) {
    struct trust_view view = {standing_fault(trust), 0};
    if (view.fault != TRUST_NO_FAULT) {
        return view;
    }
    for (unsigned i = TRUST_CLOCK; i <= TRUST_FORGETFUL && is_guarded(trust); i++) {
        enum trust_fault fault = (enum trust_fault)i;
        /* Of several faults the one that lasts longest is reported. */
        if (trust->until[fault] > nanos_max(now, view.until) && !is_waived(trust, fault)) {
            view.fault = fault;
            view.until = trust->until[fault];
        }
    }
    return view;
}

struct trust_view trust_judge(const struct trust *trust, uint64_t at) {
    struct trust_view view = find_fault(trust, at);
    /* Age: the last heartbeat proves the state at its own time, which is too long ago. */
    if (view.fault == TRUST_NO_FAULT && at > trust_fresh_until(trust)) {
        view.fault = TRUST_STALE;
    }
    return view;
}

struct trust_view trust_look(const struct trust *trust, uint64_t asked_at, uint64_t now) {
    struct trust_view view = find_fault(trust, now);
    if (view.fault == TRUST_NO_FAULT && ages(trust) &&
        now > nanos_add(asked_at, trust->terms.max_age)) {
        view.fault = TRUST_STALE;
    }
    return view;
}

/* ---- in words ---- */

void trust_describe(const struct trust *trust, enum trust_fault fault, struct text *text) {
    switch (fault) {
    case TRUST_NO_FAULT:
        break;
    case TRUST_NOT_ASKED:
        text_append(text, "it has not said yet who it is");
        break;
    case TRUST_REFUSED:
        text_append(text, "%s", trust->refusal);
        break;
    case TRUST_DUPLICATE:
        text_append(text, "it is the same server as %s", trust->original);
        break;
    case TRUST_REPLICA:
        text_append(text, "it is a replica");
        break;
    case TRUST_CLOCK:
        text_append(text,
                    "its clock moved by %" PRId64 " ms against ours within %" PRIu64
                    " ms, beyond what drift allows",
                    trust->clock_moved / (int64_t)NANOS_PER_MS, nanos_to_ms(trust->clock_took));
        break;
    case TRUST_RESTARTED:
        text_append(text, "it was restarted");
        break;
    case TRUST_PROMOTED:
        text_append(text, "it was a replica until lately");
        break;
    case TRUST_UNWATCHED:
        text_append(text, "its replication id changed while we did not look");
        break;
    case TRUST_STALE:
        text_append(text, "it is slow: it has answered no heartbeat for too long");
        break;
    case TRUST_FORGETFUL:
    default: /* there is no other fault */
        text_append(text, "its memory is new: it was emptied, or no client came before");
        break;
    }
}
