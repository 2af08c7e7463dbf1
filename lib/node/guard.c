/*
 * The happy path: guard_connected asks for the server's run_id and uptime, its role and its memory
 * policy, and sends the first beat; guard_beat sends another one. Beats report the role, too; if
 * they do not (guards off, no INFO in scripts), INFO asks for it as often. Each answer goes into
 * the trust, and a change of the verdict emits an event.
 *
 * Failures: a refused question (ACL, an error) is a fault until it is answered. A server that
 * answers READONLY is asked for its role, at most once a second, since it may answer READONLY
 * again. A beat whose script the server lacks is sent once more: with the text or, on a connection
 * that is not UP yet, when the script has been loaded. Without answers the trust ages until it is
 * stale.
 */
#include "node/guard.h"

#include "base/nanos.h"
#include "core/backoff.h"
#include "core/event.h"
#include "core/options.h"
#include "io/clock.h"
#include "node/uplink.h"
#include "wire/command.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Room for a number of seconds, or the name of a role or policy. */
#define VALUE_MAX 32

static bool has_beats(const struct guard *guard) {
    return guard->trust.terms.guards != REDLOCK_GUARDS_OFF;
}

static void on_guard_reply(struct conn_request *request, void *owner, const struct reply *reply);

void guard_init(struct guard *guard, struct uplink *uplink,
                void (*on_identity)(struct guard *guard), void (*on_sound)(struct guard *guard)) {
    const redlock_options *options = &uplink->context->options;
    struct trust_terms terms = {
        .guards = options->guards,
        .is_durable = uplink->uri.is_durable,
        .max_ttl = nanos_from_ms(options->max_ttl_ms),
        .max_age = options_max_age(options, GUARD_BEAT_NANOS),
        .drift = options->drift,
    };
    guard->uplink = uplink;
    guard->on_identity = on_identity;
    guard->on_sound = on_sound;
    trust_init(&guard->trust, &terms);
    for (unsigned i = 0; i < GUARD_ASKED_MAX; i++) {
        struct guard_asked *asked = &guard->asked[i];
        asked->request.on_reply = on_guard_reply;
        asked->request.load_class = LOAD_OWN;
        asked->guard = guard;
        asked->question = (enum guard_question)(i < GUARD_BEAT ? i : GUARD_BEAT);
        asked->eval = (struct eval){.script = SCRIPT_BEAT};
    }
}

/* ---- the verdict ---- */

static struct trust_view judge(const struct guard *guard, uint64_t at) {
    if (at < guard->sound_until) { /* the common case, without all of trust_judge */
        return (struct trust_view){TRUST_NO_FAULT, 0};
    }
    return trust_judge(&guard->trust, at);
}

/* Returns when the oldest beat without an answer was sent; NANOS_NEVER: there is none. */
static uint64_t unanswered_since(const struct guard *guard) {
    uint64_t since = NANOS_NEVER;
    for (unsigned i = GUARD_BEAT; i < GUARD_ASKED_MAX; i++) {
        const struct guard_asked *beat = &guard->asked[i];
        since = beat->is_pending ? nanos_min(since, beat->request.sent_at) : since;
    }
    return since;
}

static struct trust_view look(const struct guard *guard, uint64_t now) {
    return trust_look(&guard->trust, unanswered_since(guard), now);
}

struct trust_view guard_look(const struct guard *guard) {
    return look(guard, clock_now());
}

struct trust_view guard_judge(const struct guard *guard) {
    return judge(guard, uplink_heard_at(guard->uplink));
}

struct trust_view guard_judge_push(const struct guard *guard) {
    return judge(guard, clock_now());
}

uint64_t guard_distrust_ms(const struct trust_view *view) {
    return view->until == 0 ? 0 : nanos_to_ms(nanos_sub(view->until, clock_now())) + 1;
}

const char *guard_why(struct guard *guard, const struct trust_view *view) {
    struct text text;
    text_init(&text, guard->why, sizeof(guard->why));
    trust_describe(&guard->trust, view->fault, &text);
    return guard->why;
}

/* Emits an event if the verdict differs from that of the last event. */
static void emit_verdict(struct guard *guard, const struct trust_view *view, uint64_t now) {
    const struct events *events = &guard->uplink->context->events;
    bool is_sound = view->fault == TRUST_NO_FAULT;
    /* Not judged yet on this connection, or the last event said the same. */
    if (view->fault == TRUST_NOT_ASKED || is_sound != guard->was_reported) {
        return;
    }
    guard->was_reported = !is_sound;
    if (is_sound) {
        EMIT(events, node_trusted, .node = guard->uplink->name);
    } else {
        EMIT(events, node_distrusted, .node = guard->uplink->name, .why = guard_why(guard, view),
             .ends = view->until != 0, .ends_in = nanos_sub(view->until, now));
    }
}

void guard_look_again(struct guard *guard) {
    struct context *context = guard->uplink->context;
    uint64_t now = clock_now();
    bool has_counted = guard->has_counted;
    struct trust_view view = look(guard, now);
    bool is_sound = view.fault == TRUST_NO_FAULT;
    /* Trust: rounds under way take back grants from before this time (review_grants). */
    context->lost_at = nanos_max(context->lost_at, guard->trust.lost_at);
    context->masters_ahead_until = 0; /* a clock may be better known: compute the lead again */
    guard->sound_until = is_sound ? trust_fresh_until(&guard->trust) : 0;
    guard->has_counted = is_sound && trust_is_heard(&guard->trust);
    emit_verdict(guard, &view, now);
    if (guard->has_counted && !has_counted) {
        guard->on_sound(guard);
    }
}

/* ---- asking ---- */

static bool ask_server(struct guard *guard, struct guard_asked *asked, uint64_t now, unsigned count,
                       const char *const *words) {
    struct bytes *scratch = &guard->uplink->context->scratch;
    bytes_clear(scratch);
    command_words(scratch, count, words);
    asked->request.sent_at = now;
    asked->request.length = scratch->length;
    asked->is_pending = !scratch->failed &&
                        uplink_send(guard->uplink, &asked->request, scratch->data, scratch->length);
    return asked->is_pending;
}

/* Asks a question, unless it is under way already. Returns false if it could not be sent. */
static bool ask_info(struct guard *guard, enum guard_question question, const char *section,
                     uint64_t now) {
    struct guard_asked *asked = &guard->asked[question];
    return asked->is_pending || ask_server(guard, asked, now, 2, (const char *[]){"INFO", section});
}

static bool ask_role(struct guard *guard, uint64_t now) {
    guard->asked_role_at = now;
    return ask_info(guard, GUARD_REPLICATION, "replication", now);
}

/* Returns a beat that is not under way, or NULL. */
static struct guard_asked *spare_beat(struct guard *guard) {
    struct guard_asked *beat = &guard->asked[GUARD_BEAT];
    struct guard_asked *end = &guard->asked[GUARD_ASKED_MAX];
    while (beat < end && beat->is_pending) {
        beat++;
    }
    return beat < end ? beat : NULL;
}

static bool ask_beat(struct guard *guard, uint64_t now) {
    const struct trust *trust = &guard->trust;
    bool knows_run = (trust->answered & 1U << TRUST_SERVER) != 0;
    char last[24], first[24];
    struct guard_asked *beat = spare_beat(guard);
    if (beat == NULL) {
        return false;
    }
    snprintf(last, sizeof(last), "%" PRIu64, trust->last_us);
    snprintf(first, sizeof(first), "%" PRIu64, trust->first_us);
    beat->eval.texted = 0;
    bool with_text = eval_takes_text(&beat->eval, guard->uplink, 0);
    guard->has_sent_text |= with_text;
    const char *command = with_text ? "EVAL" : "EVALSHA";
    const char *script = with_text ? script_text(SCRIPT_BEAT) : script_sha(SCRIPT_BEAT);
    /* Trust: the script compares the marker with what we know, and begins it anew if it differs. */
    if (!ask_server(guard, beat, now, 8,
                    (const char *[]){command, script, "1", REDLOCK_MARKER_KEY, last, first,
                                     trust->lineage, knows_run ? trust->run_id : ""})) {
        eval_not_sent(&beat->eval, guard->uplink, 0);
        return false;
    }
    return true;
}

/* Draws the time of the keep-alive: the clients of a fleet may all have connected at once. */
static void record_beat(struct guard *guard, uint64_t now) {
    struct context *context = guard->uplink->context;
    uint64_t gap = guard_gap(context->shortest_ttl);
    guard->beaten_at = now;
    guard->gap = gap - backoff_draw(&context->seed, gap / 4);
}

void guard_connected(struct guard *guard, uint64_t now) {
    /* Trust: the connection may lead to another server, or to another run of it. */
    guard->sound_until = 0;
    guard->has_counted = false;
    guard->unbeaten = 0;
    guard->is_role_beaten = guard->has_sent_text = guard->is_beat_due = false;
    record_beat(guard, now);
    trust_connected(&guard->trust);
    if (!ask_info(guard, GUARD_SERVER, "server", now) || !ask_role(guard, now) ||
        !ask_info(guard, GUARD_MEMORY, "memory", now) ||
        (has_beats(guard) && !ask_beat(guard, now))) {
        uplink_drop(guard->uplink, "out of memory");
    }
}

void guard_up(struct guard *guard, uint64_t now) {
    if (guard->is_beat_due) {
        guard->is_beat_due = false;
        guard_beat(guard, now);
        context_wake(guard->uplink->context);
    }
}

void guard_beat(struct guard *guard, uint64_t now) {
    uint32_t refused = has_beats(guard) ? guard->trust.refused : 0;
    if (refused & 1U << TRUST_SERVER) {
        ask_info(guard, GUARD_SERVER, "server", now);
    }
    /* Trust: a master may become a replica at any time. */
    if (!guard->is_role_beaten || refused & 1U << TRUST_ROLE) {
        ask_role(guard, now);
    }
    guard->unbeaten = 0;
    if (!has_beats(guard) || ask_beat(guard, now)) {
        record_beat(guard, now); /* a beat that could not be sent stays due */
    }
}

/* ---- answers ---- */

/*
 * Reads a number of digits alone; returns false for any other text. Redis reports a negative uptime
 * if its clock was set back after its start.
 */
static bool read_info_number(const char *text, uint64_t *number) {
    size_t length = strspn(text, "0123456789");
    *number = strtoull(text, NULL, 10); /* ULLONG_MAX if it is too large */
    return length > 0 && text[length] == '\0';
}

/* Reads the server's clock from an answer: without beats, tickets are drawn by it. */
static void take_server_time(struct guard *guard, const struct guard_asked *asked,
                             const struct reply *reply, uint64_t now) {
    char text[VALUE_MAX];
    uint64_t time_us;
    if (reply_info(reply, "server_time_usec", text, sizeof(text)) &&
        read_info_number(text, &time_us) && time_us < UINT64_C(1) << 53) {
        trust_time(&guard->trust, time_us, asked->request.sent_at, now, clock_wall_ahead());
    }
}

static void on_server(struct guard *guard, const struct reply *reply, uint64_t now) {
    char run_id[TRUST_RUN_ID_MAX + 1];
    char uptime[VALUE_MAX];
    if (!reply_info(reply, "run_id", run_id, sizeof(run_id)) || run_id[0] == '\0' ||
        !reply_info(reply, "uptime_in_seconds", uptime, sizeof(uptime))) {
        trust_refused(&guard->trust, TRUST_SERVER, false,
                      "the answer has no run_id or no uptime_in_seconds");
        return;
    }
    uint64_t uptime_s;
    bool is_another = strcmp(run_id, guard->trust.run_id) != 0;
    bool is_known = read_info_number(uptime, &uptime_s);
    /* Trust: with an unknown uptime the server counts as just started. */
    trust_server(&guard->trust, run_id, is_known ? uptime_s : 0, now);
    if (is_another) {
        guard->on_identity(guard);
    }
}

static void on_replication(struct guard *guard, const struct reply *reply, uint64_t now) {
    char role[VALUE_MAX];
    if (reply_info(reply, "role", role, sizeof(role))) {
        trust_role(&guard->trust, strcmp(role, "master") == 0, now);
    } else {
        trust_refused(&guard->trust, TRUST_ROLE, false, "the answer has no role");
    }
}

static void on_memory(struct guard *guard, const struct reply *reply) {
    char policy[VALUE_MAX];
    if (!guard->has_warned && reply_info(reply, "maxmemory_policy", policy, sizeof(policy)) &&
        strcmp(policy, "noeviction") != 0) {
        guard->has_warned = true;
        EMIT(&guard->uplink->context->events, node_evicts, .node = guard->uplink->name,
             .policy = policy);
    }
}

static void on_beat(struct guard *guard, const struct guard_asked *asked, const struct reply *reply,
                    uint64_t now) {
    struct reply_beat said;
    if (!reply_to_beat(reply, &said)) {
        trust_refused(&guard->trust, TRUST_BEAT, false, "an answer that makes no sense");
        return;
    }
    struct trust_beat beat = {.sent_at = asked->request.sent_at,
                              .received_at = now,
                              .time_us = said.time_us,
                              .age_us = said.age_us,
                              .last_us = said.last_us,
                              .lineage = strcmp(said.id, "-") != 0 ? said.id : NULL};
    guard->is_role_beaten = strcmp(said.role, "-") != 0;
    if (guard->is_role_beaten) {
        trust_role(&guard->trust, strcmp(said.role, "master") == 0, now);
    }
    if (!trust_beat(&guard->trust, &beat)) {
        guard->was_reported = false; /* a clock jump is an event even if the node is distrusted */
    }
}

static void on_question_refused(struct guard *guard, enum guard_question question,
                                const struct reply *reply, uint64_t now) {
    static const enum trust_topic topics[GUARD_QUESTION_COUNT] = {
        [GUARD_SERVER] = TRUST_SERVER,
        [GUARD_REPLICATION] = TRUST_ROLE,
        [GUARD_BEAT] = TRUST_BEAT,
    };
    trust_refused(&guard->trust, topics[question], reply_lacks_right(reply), reply->text);
    /* INFO may be answered READONLY, too: ask for the role at most once a beat. */
    if (strstr(reply->text, "READONLY") != NULL &&
        nanos_sub(now, guard->asked_role_at) >= GUARD_BEAT_NANOS) {
        ask_role(guard, now);
        context_wake(guard->uplink->context);
    }
}

/*
 * Sends a beat again, with the script's text, or when the handshake is over (guard_up). Returns
 * false if that was not needed, or not possible.
 */
static bool send_beat_again(struct guard *guard, const struct guard_asked *asked,
                            const struct reply *reply, uint64_t now) {
    /* NOSCRIPT comes after a start or SCRIPT FLUSH, and says nothing about the marker. */
    if (asked->question != GUARD_BEAT ||
        !eval_is_asked_again(&asked->eval, guard->uplink, 0, reply)) {
        return false;
    }
    if (uplink_search(guard->uplink, SCRIPT_BEAT)) {
        guard->is_beat_due = true;
        return true;
    }
    context_wake(guard->uplink->context);
    return ask_beat(guard, now);
}

static void take_guard_answer(struct guard *guard, const struct guard_asked *asked,
                              const struct reply *reply, uint64_t now) {
    enum guard_question question = asked->question;
    if (question == GUARD_MEMORY) { /* a refusal of this question is no fault */
        on_memory(guard, reply);
    } else if (reply->type == REPLY_ERROR) {
        on_question_refused(guard, question, reply, now);
    } else if (question == GUARD_SERVER) {
        take_server_time(guard, asked, reply, now);
        on_server(guard, reply, now);
    } else if (question == GUARD_REPLICATION) {
        on_replication(guard, reply, now);
    } else {
        on_beat(guard, asked, reply, now);
    }
}

static void on_guard_reply(struct conn_request *request, void *owner, const struct reply *reply) {
    struct guard_asked *asked = (struct guard_asked *)request;
    struct guard *guard = asked->guard;
    (void)owner;
    uint64_t now = clock_now();
    guard->has_counted &= look(guard, now).fault == TRUST_NO_FAULT; /* it may have been stale */
    asked->is_pending = false;
    if (reply == NULL) {
        return;
    }
    if (!send_beat_again(guard, asked, reply, now)) {
        take_guard_answer(guard, asked, reply, now);
        guard_look_again(guard);
    }
}
