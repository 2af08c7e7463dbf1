/*
 * Checks the commands that a client sends: their order, keys, tokens and TTLs, and the heartbeats.
 */
#include "actions.h"
#include "check_load.h"
#include "checker.h"
#include "parsed_call.h"

#include <inttypes.h>

/* Checks that the node is sent a release of this process before a later SET of the key. */
static void check_order(struct checker *checker, const struct link *link, unsigned key) {
    const struct event_base *process = link->process;
    unsigned server = link->server->master.index;
    uint32_t number = checker->released_last[process->index][key];
    const struct token *last = number != NO_TOKEN ? &checker->tokens[number] : NULL;
    if (last != NULL && last->life == process->life && last->failed == process->failed &&
        last->set_on[server] == link->number && last->released_on[server] != link->number &&
        !checker->has_caps && !checker->has_duplicate) {
        violate(checker->world, INVARIANT_EXPIRY,
                "process %u sends node %u a SET before the release of token %" PRIu32,
                process->index, server, number);
    }
}

/* Returns a mask of the parsed call's keys; 0 when one of them is unknown. */
static uint32_t keys_of(const struct checker *checker, const struct parsed_call *call) {
    uint32_t keys = 0;
    for (unsigned i = 0; i < call->count; i++) {
        unsigned key = check_key_of(checker, &call->names[i]);
        if (key == checker->key_count) {
            return 0;
        }
        keys |= UINT32_C(1) << key;
    }
    return keys;
}

static void check_asked(const struct checker *checker, const struct event_base *process,
                        const struct token *token, const struct parsed_call *call) {
    long long asked = 0;
    word_number(call->ttl, &asked);
    long long least = call->ticket != NULL ? 0 : 1; /* a waiter may only enter the queue */
    bool is_more = (uint64_t)asked > checker->asked_ttl_ms[process->index][token->key] &&
                   !checker->clocks_jump;
    if (asked < least || is_more) {
        violate(checker->world, INVARIANT_EXPIRY,
                "process %u asks for a longer TTL than its application", process->index);
    }
}

static void take_sent(struct checker *checker, const struct link *link,
                      const struct parsed_call *call) {
    struct world *world = checker->world;
    struct event_base *process = link->process;
    uint32_t number = check_token_of(checker, call->value->text, call->value->length);
    uint32_t keys = keys_of(checker, call);
    uint64_t now = tempo_read(&process->clock, world->now);
    if (number == NO_TOKEN || keys == 0) {
        violate(world, INVARIANT_TOKENS, "process %u sent a SET with a token or key of nobody",
                process->index);
        return;
    }
    struct token *token = &checker->tokens[number];
    token->is_reader = call->is_reader;
    TRACE(world, "process %u sends SET keys %" PRIx32 " token %" PRIu32, process->index, keys,
          number);
    /* An entry may be requested before the key's release, which then passes the key on. */
    for (uint32_t rest = call->asks_for_entry ? 0 : keys; rest != 0; rest &= rest - 1) {
        check_order(checker, link, (unsigned)__builtin_ctz(rest));
    }
    bool was_sent = token->set_on[link->server->master.index] != 0;
    token->set_on[link->server->master.index] = link->number;
    if (token->first_sent == NEVER) {
        token->first_sent = now;
        token->key = (unsigned)__builtin_ctz(keys);
        token->keys = keys;
    }
    /* Each try has its own token; only a repeated call or a top-up may send it again. */
    if (token->keys != keys || token->process != process) {
        violate(world, INVARIANT_TOKENS, "token %" PRIu32 " is used for another key", number);
    } else if (token->first_sent != now && !token->is_acquired && was_sent && !call->may_repeat) {
        violate(world, INVARIANT_TOKENS, "token %" PRIu32 " is used for another try", number);
    } else if (token->is_over || token->is_given_up) {
        /* Its release may be repeated, and would delete the key. */
        violate(world, INVARIANT_TOKENS, "token %" PRIu32 " is used after its end", number);
    }
    if (call->asks_for_entry) {
        check_ticket(checker, number, call->ticket);
    }
    const struct hold *hold = check_hold_of(checker, number);
    /* A top-up supports a valid lock: it must not revive a lost one. */
    if (token->is_acquired && !token->is_between &&
        (hold == NULL || check_reported_end(hold->lock) == 0)) {
        violate(world, INVARIANT_REVIVAL, "process %u tops up key %u, which it has lost",
                process->index, token->key);
    }
    check_asked(checker, process, token, call);
}

static void set_sent(struct checker *checker, const struct link *link, const struct words *words) {
    static const struct word none = {"", 0};
    struct parsed_call call = {
        .names = &words->word[1], .count = 1, .value = &words->word[2], .ttl = &none};
    for (unsigned i = 3; i + 1 < words->count; i++) {
        call.ttl = word_is(&words->word[i], "PX") ? &words->word[i + 1] : call.ttl;
    }
    take_sent(checker, link, &call);
}

/* Records the releases of a call. */
static void releases_sent(struct checker *checker, const struct link *link,
                          const struct words *words, const struct form *form) {
    struct call_position at = parsed_call_first(words, form);
    struct parsed_call call;
    while (parsed_call_next(words, form, &at, &call)) {
        uint32_t number = check_token_of(checker, call.value->text, call.value->length);
        if (!call.releases || number == NO_TOKEN) {
            continue;
        }
        struct token *token = &checker->tokens[number];
        token->released_on[link->server->master.index] = link->number;
        token->is_given_up |= check_hold_of(checker, number) == NULL && !token->is_notification_due;
        /* A close notifies the holder first, which must stop before another client has the key. */
        if (token->is_notification_due && token->life == link->process->life) {
            violate(checker->world, INVARIANT_LOSS,
                    "process %u releases key %u before its holder was notified of the close (token "
                    "%" PRIu32 ")",
                    link->process->index, token->key, number);
        }
    }
}

static void takes_sent(struct checker *checker, const struct link *link, const struct words *words,
                       const struct form *form) {
    struct call_position at = parsed_call_first(words, form);
    struct parsed_call call;
    if (parsed_call_is_queue(form)) {
        check_channel(checker, link, &words->word[at.key_end]);
    }
    releases_sent(checker, link, words, form);
    while (parsed_call_next(words, form, &at, &call)) {
        if (call.releases) {
            continue;
        }
        take_sent(checker, link, &call);
        uint32_t number = check_token_of(checker, call.value->text, call.value->length);
        if (call.asks_for_entry && number != NO_TOKEN) {
            check_asks_for_entry(checker, number, &words->word[at.key_end]);
        }
    }
}

/*
 * Checks that a token's keys are released together: otherwise other clients would wait for the rest
 * without being served.
 */
static void check_whole(const struct checker *checker, const struct link *link, uint32_t number,
                        uint32_t released) {
    if (number != NO_TOKEN && (checker->tokens[number].keys & ~released) != 0) {
        violate(checker->world, INVARIANT_EXPIRY,
                "process %u sends node %u the release of some keys, and not of others, of token "
                "%" PRIu32,
                link->process->index, link->server->master.index, number);
    }
}

/* Checks that the keys of a token are adjacent in a call. */
static void check_whole_releases(const struct checker *checker, const struct link *link,
                                 const struct words *words, const struct form *form) {
    struct call_position at = parsed_call_first(words, form);
    struct parsed_call call;
    uint32_t last = NO_TOKEN, released = 0;
    while (parsed_call_next(words, form, &at, &call)) {
        uint32_t number = check_token_of(checker, call.value->text, call.value->length);
        if (number != last) {
            check_whole(checker, link, last, released);
            released = 0;
        }
        last = number;
        released |= keys_of(checker, &call);
    }
    check_whole(checker, link, last, released);
}

/* Returns `at` or, if it is later, the last instant at which the link's process could not run. */
static uint64_t undisturbed_since(const struct checker *checker, const struct link *link,
                                  uint64_t at) {
    uint64_t disturbed_at = checker->disturbed_at[link->process->index];
    return at > disturbed_at ? at : disturbed_at;
}

/* Returns whether a command takes or renews a key. */
static bool needs_beat(const struct words *words, const struct form *form) {
    if (form == NULL) {
        return word_is(&words->word[0], "SET");
    }
    return script_takes(form->script) || form->script == SCRIPT_RENEW ||
           form->script == SCRIPT_RENEW_FENCED || form->script == SCRIPT_SHARE_RENEW;
}

/*
 * Checks that a node is asked for its clock, or answers, in the last second before it is asked to
 * take or renew a key, however full its queue is, and within the gap of keep-alives before any
 * other command. (Excused are processes that could not run, those with a wrong clock, by which
 * heartbeats are due, and connections that have yet to answer one.)
 */
static void check_beaten(const struct checker *checker, struct link *link,
                         const struct words *words, const struct form *form) {
    uint64_t now = checker->world->now;
    const struct event_base *process = link->process;
    uint64_t since = undisturbed_since(checker, link, link->beaten_at);
    uint64_t most = needs_beat(words, form) ? checker->beat_gap : checker->keep_alive_gap;
    if (check_is_beat(words)) {
        link->beaten_at = now;
    } else if (checker->has_guards && !checker->clocks_jump && now - since > most &&
               link->is_beating && process->failed == 0 &&
               checker->is_closing[process->index] != process->life + 1) {
        violate(checker->world, INVARIANT_LIVENESS,
                "process %u has not asked node %u for its clock for %" PRIu64 " ms", process->index,
                link->server->master.index, (now - since) / MS);
    }
}

void check_resting(const struct checker *checker, const struct network *network) {
    uint64_t now = checker->world->now;
    const struct link *link;
    TAILQ_FOREACH(link, &network->links, all_link) {
        const struct event_base *process = link->process;
        uint64_t since = undisturbed_since(checker, link, link->beaten_at);
        if (link->conn == NULL || process->failed > 0 || checker->clocks_jump) {
            continue;
        }
        /* A client whose list is being changed is not idle. */
        if (checker->closes_idle && checker->next_lists[process->index] == 0) {
            violate(checker->world, INVARIANT_BOUNDS,
                    "process %u is idle, but still connected to node %u", process->index,
                    link->server->master.index);
        } else if (link->channel[0] != '\0') {
            violate(checker->world, INVARIANT_BOUNDS,
                    "process %u is idle, but still has a channel at node %u", process->index,
                    link->server->master.index);
        } else if (checker->has_guards && link->is_beating &&
                   now - since > checker->keep_alive_gap) {
            violate(checker->world, INVARIANT_LIVENESS,
                    "process %u is idle, and has not asked node %u for its clock for %" PRIu64
                    " ms",
                    process->index, link->server->master.index, (now - since) / MS);
        }
    }
}

/*
 * Checks that a client resumes at once a call that stopped at the bound of its entries, with the
 * next command that it can send to that node. (Excused are full queues, and processes that lack
 * memory or could not run.)
 */
static void check_goes_on(const struct checker *checker, struct link *link,
                          const struct form *form) {
    uint64_t now = checker->world->now;
    const struct event_base *process = link->process;
    uint64_t since = undisturbed_since(checker, link, link->stopped_at);
    if (form != NULL && form->script == SCRIPT_PASS) {
        link->stopped_at = 0;
    } else if (link->stopped_at != 0 && now - since > 100 * MS && !checker->has_caps &&
               process->failed == 0 && checker->is_closing[process->index] != process->life + 1) {
        violate(checker->world, INVARIANT_LIVENESS,
                "process %u does not go on at node %u, where a call stopped %" PRIu64 " ms ago",
                process->index, link->server->master.index, (now - link->stopped_at) / MS);
    }
}

bool check_is_beat(const struct words *words) {
    return parsed_call_is_of(words, SCRIPT_BEAT);
}

void check_sent(struct link *link, const char *data, size_t length) {
    struct checker *checker = checker_of(link->network->world);
    if (checker->load != NULL) {
        check_load_sent(checker->load, link, data, length);
        return;
    }
    struct words words;
    if (words_read(&words, data, length) != length) {
        violate(checker->world, INVARIANT_BOUNDS, "process %u sent a broken command",
                link->process->index);
        return;
    }
    const struct form *form = parsed_call_form(&words);
    actions_sent(link, &words);
    check_beaten(checker, link, &words, form);
    check_goes_on(checker, link, form);
    if (word_is(&words.word[0], "SET")) {
        set_sent(checker, link, &words);
    } else if (form != NULL && script_takes(form->script)) {
        takes_sent(checker, link, &words, form);
    } else if (form != NULL && parsed_call_is_release(form->script)) {
        releases_sent(checker, link, &words, form);
        check_whole_releases(checker, link, &words, form);
    }
}
