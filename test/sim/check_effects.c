/*
 * Checks the effects of commands at servers: which token has a key, until when, and which gets it
 * next.
 */
#include "actions.h"
#include "check_load.h"
#include "checker.h"
#include "parsed_call.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Checks that a key of ours never replaces another one. */
static void check_free(struct checker *checker, struct master *master, uint32_t number,
                       unsigned key) {
    uint32_t *last = &checker->set_last[master->index][key];
    bool is_another = *last != NO_TOKEN && *last != number;
    bool is_shared = is_another && checker->tokens[number].is_reader &&
                     checker->tokens[*last].is_reader && check_listed(checker, master, *last) != 0;
    if (is_another && !is_shared && !checker->server_clocks_jump &&
        checker->tokens[*last].keeps_until[master->index][key] > checker->world->now) {
        violate(checker->world, INVARIANT_EXCLUSION,
                "at node %u token %" PRIu32 " took the place of token %" PRIu32, master->index,
                number, *last);
    }
    *last = number;
}

void check_ttl(struct checker *checker, const struct master *master, uint32_t number,
               int64_t expires_ms) {
    const struct token *token = &checker->tokens[number];
    int64_t left_ms = expires_ms - master_now_ms(master) - checker->set_back_ms[master->index];
    int64_t asked = (int64_t)checker->asked_ttl_ms[token->process->index][token->key];
    if (expires_ms < 0 ||
        (left_ms > asked && !checker->server_clocks_jump && !checker->clocks_jump)) {
        violate(checker->world, INVARIANT_EXPIRY,
                "node %u is to keep a key for longer than its application asked (token %" PRIu32
                ")",
                master->index, number);
    }
}

/* Returns whether the token has the key now; reports until when by the server's clock. */
static bool has_it(const struct checker *checker, struct master *master, uint32_t number,
                   const struct store_key *key, int64_t *expires_ms) {
    if (checker->tokens[number].is_reader) {
        *expires_ms = check_listed(checker, master, number);
        return *expires_ms != 0;
    }
    *expires_ms = key != NULL ? key->expires_ms : 0;
    return key != NULL && key->type == STORE_STRING &&
           check_token_of(checker, key->value, key->value_length) == number;
}

/* Records the expiry of a token's key; also its instant if a command has just set the expiry. */
static const struct expiry *record_expiry(const struct checker *checker, struct token *token,
                                          struct master *master, unsigned index, bool is_new,
                                          int64_t expires_ms) {
    struct expiry *expiry = &token->expiries[master->index][index];
    if (is_new || expiry->at_ms != expires_ms) {
        *expiry = (struct expiry){
            .at_ms = expires_ms,
            .lasts_ms = expires_ms - master_now_ms(master),
            .set_at = tempo_read(&token->process->clock, checker->world->now),
        };
    }
    return expiry;
}

bool check_record_effect(struct checker *checker, struct master *master, const struct word *name,
                         uint32_t number, bool is_late, struct effect *effect) {
    struct token *token = &checker->tokens[number];
    unsigned index = check_key_of(checker, name);
    const struct store_key *key = master_find(master, name->text, name->length);
    if (index == checker->key_count) {
        return false; /* the key was unknown when the command was sent, and was reported then */
    }
    int64_t expires_ms;
    if (!has_it(checker, master, number, key, &expires_ms)) {
        token->keeps_until[master->index][index] = 0;
        const struct hold *hold = check_hold_of(checker, number);
        if (hold != NULL) {
            check_backing(checker, hold);
        }
        return false;
    }
    bool is_new = key->command == master->store.commands;
    int64_t left_ms = expires_ms - master_now_ms(master);
    check_ttl(checker, master, number, expires_ms);
    if (is_new) {
        check_free(checker, master, number, index);
        token->is_late[master->index] = is_late;
    }
    bool was_granted = is_new;
    if (token->is_reader) { /* the key may have been there before */
        was_granted = token->keeps_until[master->index][index] <= checker->world->now;
        token->is_late[master->index] |= is_late;
    }
    token->keeps_until[master->index][index] = master_keeps_until(master, expires_ms);
    const struct expiry *expiry = record_expiry(checker, token, master, index, is_new, expires_ms);
    *effect = (struct effect){
        .token = number,
        .key = index,
        .is_new = was_granted,
        .was_kept = !is_new,
        .doubtful_until = check_doubtful_until(checker, master->index, index),
        .left_ms = left_ms,
        .lasts_ms = expiry->lasts_ms,
        .set_at = expiry->set_at,
    };
    TRACE(checker->world, "node %u: key %.*s has token %" PRIu32 " for %lld ms%s", master->index,
          (int)name->length, name->text, number, (long long)effect->left_ms, is_new ? ", new" : "");
    return true;
}

static void record_parsed_call(const struct link *link, const struct parsed_call *call,
                               bool is_kept, struct effect *effects, unsigned *count) {
    struct checker *checker = checker_of(link->network->world);
    uint32_t number = check_token_of(checker, call->value->text, call->value->length);
    for (unsigned i = 0; i < call->count && number != NO_TOKEN; i++) {
        struct effect *effect = &effects[*count];
        *count += check_record_effect(checker, &link->server->master, &call->names[i], number,
                                      link->conn == NULL, effect);
        effect->was_kept |= is_kept;
    }
}

/* Records that a token no longer has its key. The call that releases it may pass the key on. */
static void record_released(const struct link *link, const struct parsed_call *call) {
    struct checker *checker = checker_of(link->network->world);
    struct master *master = &link->server->master;
    uint32_t number = check_token_of(checker, call->value->text, call->value->length);
    unsigned index = check_key_of(checker, &call->names[0]);
    int64_t expires_ms;
    if (number == NO_TOKEN || index == checker->key_count) {
        return;
    }
    const struct store_key *key = master_find(master, call->names[0].text, call->names[0].length);
    if (!has_it(checker, master, number, key, &expires_ms)) {
        checker->tokens[number].keeps_until[master->index][index] = 0;
    }
}

/*
 * Checks that a key with waiters was not freed, or left without notifying one of them; and that a
 * key given to a waiter without notifying it was requested in the same call.
 */
static void check_passed_on(const struct link *link, const struct form *form,
                            const struct parsed_call *call) {
    struct checker *checker = checker_of(link->network->world);
    uint32_t number = check_token_of(checker, call->value->text, call->value->length);
    unsigned key = check_key_of(checker, &call->names[0]);
    if (number != NO_TOKEN && key < checker->key_count) {
        check_freed(checker, &link->server->master, number, key);
        check_announced(checker, &link->server->master, number, key);
        if (!parsed_call_is_queue(form)) {
            check_given(checker, &link->server->master, number, key);
        }
    }
}

/* Checks that readers do not wait for a waiter that has left. */
static void check_head(const struct link *link, const struct word *name) {
    struct checker *checker = checker_of(link->network->world);
    unsigned key = check_key_of(checker, name);
    if (key < checker->key_count) {
        check_let_in(checker, &link->server->master, key);
    }
}

/* Records whether a call requests several entries, and whether it is about several keys. */
static void record_extent(struct passes *passes, const struct words *words,
                          const struct form *form) {
    struct call_position at = parsed_call_first(words, form);
    const struct word *first = &words->word[at.key];
    struct parsed_call call;
    unsigned askers = 0;
    passes->is_joint = false;
    while (parsed_call_next(words, form, &at, &call)) {
        askers += parsed_call_is_queue(form) && !call.releases;
        passes->is_joint |= call.count > 1 || call.names->length != first->length ||
                            memcmp(call.names->text, first->text, first->length) != 0;
    }
    passes->is_mixed = askers > 1;
}

/* Checks the effects of a call that releases permits, before its other effects are recorded. */
static void check_permit_releases(const struct link *link, const struct words *words,
                                  const struct form *form) {
    struct checker *checker = checker_of(link->network->world);
    struct master *master = &link->server->master;
    struct call_position at = parsed_call_first(words, form);
    struct parsed_call call;
    while (parsed_call_next(words, form, &at, &call)) {
        uint32_t number = check_token_of(checker, call.value->text, call.value->length);
        unsigned key = check_key_of(checker, &call.names[0]);
        if (number != NO_TOKEN && key < checker->key_count) {
            check_permit_freed(checker, master, number, key);
        }
        if (!word_is(call.ttl, "0")) { /* the ticket */
            check_permit_left(checker, master, call.value, call.ttl);
        }
        record_released(link, &call);
    }
}

/* Returns whether a parsed call leaves the queue. */
static bool leaves(const struct form *form, const struct parsed_call *call) {
    return form->script == SCRIPT_LEAVE || form->script == SCRIPT_SHARE_LEAVE ||
           (form->script == SCRIPT_QUEUE && call->releases);
}

/* Checks a parsed call that leaves the queue, unless the server refused it. */
static void check_leave(const struct link *link, const struct form *form,
                        const struct parsed_call *call, bool is_done) {
    record_released(link, call);
    if (is_done) {
        check_left(checker_of(link->network->world), &link->server->master, call->value,
                   &call->names[0]);
    }
    if (is_done && form->script != SCRIPT_SHARE_LEAVE) {
        check_head(link, &call->names[0]);
    }
}

/*
 * Checks the parsed calls of a call that may pass keys on, before its other effects are recorded.
 */
static void check_passing(const struct link *link, const struct words *words,
                          const struct form *form, const struct reply *reply) {
    if (form->script == SCRIPT_PERMIT_RELEASE && reply->type != REPLY_ERROR) {
        check_permit_releases(link, words, form);
    }
    bool is_done = reply->type != REPLY_ERROR;
    struct call_position at = parsed_call_first(words, form);
    struct parsed_call call;
    while (form->script != SCRIPT_PERMIT_RELEASE && is_done &&
           parsed_call_next(words, form, &at, &call)) {
        if (call.releases) {
            check_passed_on(link, form, &call);
        }
    }
    at = parsed_call_first(words, form);
    while (parsed_call_next(words, form, &at, &call)) {
        if (leaves(form, &call)) {
            check_leave(link, form, &call, is_done);
        }
    }
    record_extent(&checker_of(link->network->world)->passes, words, form);
}

/* Counts the entries in an answer: "h<ms>q<waiters ahead>". */
static void count_entries(struct checker *checker, enum script script, const struct reply *reply) {
    static const enum waiting_queue queues[SCRIPT_COUNT] = {[SCRIPT_QUEUE_SET] = WAITING_SEVERAL,
                                                            [SCRIPT_SHARE_QUEUE] = WAITING_READERS,
                                                            [SCRIPT_QUEUE_PERMIT] =
                                                                WAITING_PERMITS};
    for (size_t i = 0; reply->type == REPLY_STRING && i < reply->length; i++) {
        checker->waiting.queued[queues[script]] += reply->text[i] == 'q';
    }
}

/*
 * Checks the effects of a call that requested an entry: it sets the flag for releases, and keeps
 * the order.
 */
static void check_queued(const struct link *link, const struct parsed_call *call,
                         const struct effect *effects, unsigned count) {
    struct checker *checker = checker_of(link->network->world);
    struct master *master = &link->server->master;
    uint32_t number = check_token_of(checker, call->value->text, call->value->length);
    for (unsigned i = 0; i < call->count && call->asks_for_entry; i++) {
        unsigned key = check_key_of(checker, &call->names[i]);
        if (key < checker->key_count) {
            check_flag(checker, master, call->value, key);
            check_asks_again(checker, master, number, key);
        }
    }
    for (unsigned i = 0; i < count && !checker->passes.is_mixed; i++) {
        if (effects[i].is_new) {
            checker->passes.taker = effects[i].token;
            check_turn(checker, master, effects[i].token, effects[i].key);
        }
    }
}

/* Checks the effects of a call that took a permit for a waiter, or for another request. */
static void check_permit_call(const struct link *link, const struct words *words,
                              const struct parsed_call *call, const struct effect *effects,
                              unsigned count) {
    struct checker *checker = checker_of(link->network->world);
    struct master *master = &link->server->master;
    unsigned key = check_key_of(checker, &call->names[0]);
    if (call->asks_for_entry && key < checker->key_count) {
        check_flag(checker, master, call->value, key);
    }
    if (count > 0 && effects[0].is_new && word_is(&words->word[2], "1")) {
        check_permit_turn(checker, master, effects[0].token, call->value->text,
                          call->ticket != NULL);
    }
}

static void record_parsed_calls(const struct link *link, const struct words *words,
                                const struct form *form, bool was_refused, struct effect *effects,
                                unsigned *count) {
    struct call_position at = parsed_call_first(words, form);
    struct parsed_call call;
    while (parsed_call_next(words, form, &at, &call)) {
        unsigned before = *count;
        record_parsed_call(link, &call, script_takes(form->script) || form->is_reader, effects,
                           count);
        if (was_refused) {
            continue;
        }
        if (form->script == SCRIPT_QUEUE_PERMIT || form->script == SCRIPT_PERMIT) {
            check_permit_call(link, words, &call, &effects[before], *count - before);
        } else if (call.ticket != NULL && !call.releases) {
            check_queued(link, &call, &effects[before], *count - before);
        }
    }
}

static struct effect *effects_of(const struct link *link, const struct words *words,
                                 const struct reply *reply, unsigned *count) {
    struct checker *checker = checker_of(link->network->world);
    bool is_set = word_is(&words->word[0], "SET") && words->count >= 3;
    const struct form *form = is_set ? NULL : parsed_call_form(words);
    *count = 0;
    if (checker->load != NULL) {
        return check_load_effects(checker->load, link, words, count);
    }
    if (link->db != checker->db || (!is_set && form == NULL)) {
        return NULL; /* no key of ours is there */
    }
    if (form != NULL && checker->has_readers && reply->type != REPLY_ERROR) {
        check_shared_call(checker, &link->server->master, words, form);
    }
    struct effect *effects = calloc(words->count, sizeof(*effects));
    if (effects == NULL) {
        abort();
    }
    if (is_set) {
        record_parsed_call(
            link,
            &(struct parsed_call){.names = &words->word[1], .count = 1, .value = &words->word[2]},
            false, effects, count);
    } else {
        if (parsed_call_is_queue(form)) {
            count_entries(checker, form->script, reply);
        }
        check_passing(link, words, form, reply);
        record_parsed_calls(link, words, form, reply->type == REPLY_ERROR, effects, count);
    }
    if (checker->has_readers) {
        check_readers(checker);
    }
    return effects;
}

struct effect *check_effects(struct link *link, const struct words *words,
                             const struct reply *reply, unsigned *count) {
    struct effect *effects = effects_of(link, words, reply, count);
    check_record_passes(checker_of(link->network->world), &link->server->master);
    actions_ran(link, words);
    return effects;
}
