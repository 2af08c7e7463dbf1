/*
 * Checks the commands on the wire: which commands a client may send, what servers did, and what
 * their grants promise.
 */
#include "check_load.h"
#include "checker.h"

#include "wire/push.h"
#include "wire/script.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/*
 * Returns whether the command calls the script, by its SHA-1 or with its text. The texts are long:
 * they are compared only where there is one.
 */
static bool calls(const struct words *words, enum script script) {
    if (words->count <= 3) {
        return false;
    }
    return word_is(&words->word[0], "EVALSHA")
               ? word_is(&words->word[1], script_sha(script))
               : word_is(&words->word[0], "EVAL") && word_is(&words->word[1], script_text(script));
}

bool check_is_beat(const struct words *words) {
    return calls(words, SCRIPT_BEAT);
}

static const struct form *form_of(const struct words *words) {
    static const struct form forms[] = {
        {SCRIPT_RELEASE, 1, 1, false, 0},      {SCRIPT_RENEW, 1, 2, false, 0},
        {SCRIPT_STAY, 1, 2, false, 0},         {SCRIPT_PERMIT, 1, 5, false, 0},
        {SCRIPT_TAKE, 0, 7, false, 0},         {SCRIPT_KEEP, 2, 4, false, 0},
        {SCRIPT_SHARE, 3, 3, true, 0},         {SCRIPT_SHARE_KEEP, 2, 2, true, 0},
        {SCRIPT_SHARE_END, 2, 1, true, 0},     {SCRIPT_WRITE, 3, 3, false, 0},
        {SCRIPT_WRITE_FENCED, 4, 5, false, 0}, {SCRIPT_QUEUE, 1, 6, false, 1},
        {SCRIPT_LEAVE, 1, 2, false, 0},
    };
    for (unsigned i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        if (calls(words, forms[i].script)) {
            return &forms[i];
        }
    }
    return NULL;
}

/* ---- what is sent ---- */

/* Checks that a release of this process goes to the node before a later SET of the key. */
static void check_order(struct checker *checker, const struct link *link, unsigned key) {
    const struct event_base *process = link->process;
    unsigned server = link->server->master.index;
    uint32_t number = checker->released_last[process->index][key];
    const struct token *last = number != NO_TOKEN ? &checker->tokens[number] : NULL;
    if (last != NULL && last->life == process->life && last->failed == process->failed &&
        last->set_on[server] == link->number && last->released_on[server] != link->number &&
        !checker->has_caps && !checker->has_twin) {
        violate(checker->world, INVARIANT_EXPIRY,
                "process %u sends node %u a SET before the release of token %" PRIu32,
                process->index, server, number);
    }
}

/* The part of a SET, or of a script call, that is about one lock. */
struct claim {
    const struct word *names; /* its keys */
    unsigned count;
    const struct word *value, *ttl;
    const struct word *ticket; /* NULL: none */
    bool is_reader;
    bool asks_for_place;
    bool may_repeat; /* whether the call was refused, and may be repeated */
};

/* Returns a mask of the claim's keys; 0 when one of them is unknown. */
static uint32_t keys_of(const struct checker *checker, const struct claim *claim) {
    uint32_t keys = 0;
    for (unsigned i = 0; i < claim->count; i++) {
        unsigned key = check_key_of(checker, &claim->names[i]);
        if (key == checker->key_count) {
            return 0;
        }
        keys |= UINT32_C(1) << key;
    }
    return keys;
}

static void check_asked(const struct checker *checker, const struct event_base *process,
                        const struct token *token, const struct word *ttl) {
    long long asked = 0;
    word_number(ttl, &asked);
    bool is_more = (uint64_t)asked > checker->asked_ttl_ms[process->index][token->key] &&
                   !checker->clocks_jump;
    if (asked <= 0 || is_more) {
        violate(checker->world, INVARIANT_EXPIRY,
                "process %u asks for a longer TTL than its application", process->index);
    }
}

static void take_sent(struct checker *checker, const struct link *link, const struct claim *claim) {
    struct world *world = checker->world;
    struct event_base *process = link->process;
    uint32_t number = check_token_of(checker, claim->value->text, claim->value->length);
    uint32_t keys = keys_of(checker, claim);
    uint64_t now = tempo_read(&process->clock, world->now);
    if (number == NO_TOKEN || keys == 0) {
        violate(world, INVARIANT_TOKENS, "process %u sent a SET with a token or key of nobody",
                process->index);
        return;
    }
    struct token *token = &checker->tokens[number];
    token->is_reader = claim->is_reader;
    TRACE(world, "process %u sends SET keys %" PRIx32 " token %" PRIu32, process->index, keys,
          number);
    for (uint32_t rest = keys; rest != 0; rest &= rest - 1) {
        check_order(checker, link, (unsigned)__builtin_ctz(rest));
    }
    bool was_sent = token->set_on[link->server->master.index] != 0;
    token->set_on[link->server->master.index] = link->number;
    if (token->first_sent == NEVER) {
        token->first_sent = now;
        token->key = (unsigned)__builtin_ctz(keys);
        token->keys = keys;
    }
    if (token->keys != keys || token->process != process) {
        violate(world, INVARIANT_TOKENS, "token %" PRIu32 " is used for another key", number);
    } else if (token->first_sent != now && !token->is_acquired && was_sent && !claim->may_repeat) {
        violate(world, INVARIANT_TOKENS, "token %" PRIu32 " is used for another try", number);
    } else if (token->is_over) {
        violate(world, INVARIANT_TOKENS, "token %" PRIu32 " is used after its end", number);
    }
    if (claim->asks_for_place) {
        check_ticket(checker, number, claim->ticket);
    }
    const struct hold *hold = check_hold_of(checker, number);
    if (token->is_acquired && !token->is_between &&
        (hold == NULL || check_claimed_end(hold->lock) == 0)) {
        violate(world, INVARIANT_REVIVAL, "process %u tops up key %u, which it has lost",
                process->index, token->key);
    }
    check_asked(checker, process, token, claim->ttl);
}

static void set_sent(struct checker *checker, const struct link *link, const struct words *words) {
    static const struct word none = {"", 0};
    struct claim claim = {
        .names = &words->word[1], .count = 1, .value = &words->word[2], .ttl = &none};
    for (unsigned i = 3; i + 1 < words->count; i++) {
        claim.ttl = word_is(&words->word[i], "PX") ? &words->word[i + 1] : claim.ttl;
    }
    take_sent(checker, link, &claim);
}

/* The place of the next lock in a call: EVALSHA sha count key... argument... */
struct place {
    unsigned key, argument, key_end;
};

static struct place first_place(const struct words *words, const struct form *form) {
    long long keys = 0;
    word_number(&words->word[2], &keys);
    unsigned end = 3 + (unsigned)keys;
    return (struct place){.key = 3, .argument = end + form->leading, .key_end = end};
}

/*
 * Reads the next lock's claim. Returns false when there is none left. SCRIPT_TAKE tells how many
 * keys a lock has, and whether it has counters.
 */
static bool next_claim(const struct words *words, const struct form *form, struct place *at,
                       struct claim *claim) {
    const struct word *arguments = &words->word[at->argument];
    long long count = 1;
    if (at->key >= at->key_end || at->argument + form->arguments > words->count ||
        (form->keys == 0 && !word_number(&arguments[2], &count))) {
        return false;
    }
    *claim = (struct claim){.names = &words->word[at->key],
                            .count = (unsigned)count,
                            .value = &arguments[0],
                            .ttl = &arguments[1],
                            .ticket = form->script == SCRIPT_QUEUE ? &arguments[5] : NULL,
                            .is_reader = form->is_reader,
                            .asks_for_place =
                                form->script == SCRIPT_QUEUE && words->word[at->key_end].length > 0,
                            .may_repeat = true};
    bool has_counters = form->keys == 0 && word_is(&arguments[3], "1");
    at->key += form->keys != 0 ? form->keys : (unsigned)count * (has_counters ? 2 : 1);
    at->argument += form->arguments;
    return true;
}

static void takes_sent(struct checker *checker, const struct link *link, const struct words *words,
                       const struct form *form) {
    struct place at = first_place(words, form);
    struct claim claim;
    if (form->script == SCRIPT_QUEUE) {
        check_channel(checker, link, &words->word[at.key_end]);
    }
    while (next_claim(words, form, &at, &claim)) {
        take_sent(checker, link, &claim);
    }
}

static void script_sent(struct checker *checker, const struct link *link,
                        const struct words *words) {
    for (unsigned i = 3; i < words->count; i++) {
        uint32_t number = check_token_of(checker, words->word[i].text, words->word[i].length);
        if (number == NO_TOKEN) {
            continue;
        }
        struct token *token = &checker->tokens[number];
        token->released_on[link->server->master.index] = link->number;
        if (token->is_to_be_told && token->life == link->process->life) {
            violate(checker->world, INVARIANT_LOSS,
                    "process %u releases key %u before its holder was told of the close (token "
                    "%" PRIu32 ")",
                    link->process->index, token->key, number);
        }
    }
}

static bool is_release(enum script script) {
    return script == SCRIPT_RELEASE || script == SCRIPT_LEAVE || script == SCRIPT_STAY ||
           script == SCRIPT_SHARE_END;
}

/*
 * Checks that a node is asked for its clock each second, however full its queue is: a client that
 * does not ask would have to leave the node's grants uncounted. (Excused are a process that could
 * not run, and one whose clock is wrong: beats are due by that clock.)
 */
static void check_beaten(const struct checker *checker, struct link *link,
                         const struct words *words) {
    uint64_t now = checker->world->now;
    const struct event_base *process = link->process;
    uint64_t since = checker->disturbed_at[process->index];
    since = link->beaten_at > since ? link->beaten_at : since;
    if (check_is_beat(words)) {
        link->beaten_at = now;
    } else if (checker->has_guards && !checker->clocks_jump && now - since > checker->unseen &&
               process->failed == 0 && checker->is_closing[process->index] != process->life + 1) {
        violate(checker->world, INVARIANT_LIVENESS,
                "process %u has not asked node %u for its clock for %" PRIu64 " ms", process->index,
                link->server->master.index, (now - since) / MS);
    }
}

void check_sent(struct link *link, const char *data, size_t length) {
    struct checker *checker = checker_of(link->network->world);
    if (checker->load != NULL) {
        check_load_sent(checker->load, link, data, length);
        return;
    }
    struct words words;
    const struct form *form = NULL;
    if (words_read(&words, data, length) != length) {
        violate(checker->world, INVARIANT_BOUNDS, "process %u sent a broken command",
                link->process->index);
        return;
    }
    check_beaten(checker, link, &words);
    if (word_is(&words.word[0], "SET")) {
        set_sent(checker, link, &words);
    } else if ((form = form_of(&words)) != NULL && script_takes(form->script)) {
        takes_sent(checker, link, &words, form);
    } else if (form != NULL && is_release(form->script)) {
        script_sent(checker, link, &words);
    }
}

/* ---- what servers do ---- */

/* Checks that a key of ours never takes the place of another one. */
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

/* Returns whether the key is the token's now, and until when by the server's clock. */
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

/* Notes the expiry of a token's key, and its instant where a command has just set the expiry. */
static const struct expiry *note_expiry(const struct checker *checker, struct token *token,
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

/*
 * Notes the effect of a command with the token on the key `name`. Returns whether the token has the
 * key now.
 */
static bool note_effect(struct checker *checker, struct master *master, const struct word *name,
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
    const struct expiry *expiry = note_expiry(checker, token, master, index, is_new, expires_ms);
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

static void note_claim(const struct link *link, const struct claim *claim, bool is_kept,
                       struct effect *effects, unsigned *count) {
    struct checker *checker = checker_of(link->network->world);
    uint32_t number = check_token_of(checker, claim->value->text, claim->value->length);
    for (unsigned i = 0; i < claim->count && number != NO_TOKEN; i++) {
        struct effect *effect = &effects[*count];
        *count += note_effect(checker, &link->server->master, &claim->names[i], number,
                              link->conn == NULL, effect);
        effect->was_kept |= is_kept;
    }
}

/* Notes that a key is its token's no more: a call may release it, and pass it on to another one. */
static void note_released(const struct link *link, const struct claim *claim) {
    struct checker *checker = checker_of(link->network->world);
    struct master *master = &link->server->master;
    uint32_t number = check_token_of(checker, claim->value->text, claim->value->length);
    unsigned index = check_key_of(checker, &claim->names[0]);
    int64_t expires_ms;
    if (number == NO_TOKEN || index == checker->key_count) {
        return;
    }
    const struct store_key *key = master_find(master, claim->names[0].text, claim->names[0].length);
    if (!has_it(checker, master, number, key, &expires_ms)) {
        checker->tokens[number].keeps_until[master->index][index] = 0;
    }
}

/* Checks that a key was not freed while somebody stands in line. */
static void check_passed_on(const struct link *link, const struct claim *claim) {
    struct checker *checker = checker_of(link->network->world);
    uint32_t number = check_token_of(checker, claim->value->text, claim->value->length);
    unsigned key = check_key_of(checker, &claim->names[0]);
    if (number != NO_TOKEN && key < checker->key_count) {
        check_freed(checker, &link->server->master, number, key);
    }
}

/* Checks the claims of a call that may pass keys on, before its effects are noted. */
static void check_passing(const struct link *link, const struct words *words,
                          const struct form *form, const struct reply *reply) {
    bool may_pass = form->script == SCRIPT_LEAVE || form->script == SCRIPT_RELEASE;
    struct place at = first_place(words, form);
    struct claim claim;
    while (may_pass && reply->type != REPLY_ERROR && next_claim(words, form, &at, &claim)) {
        check_passed_on(link, &claim);
    }
    at = first_place(words, form);
    while (form->script == SCRIPT_LEAVE && next_claim(words, form, &at, &claim)) {
        note_released(link, &claim);
        if (reply->type != REPLY_ERROR) {
            check_left(checker_of(link->network->world), &link->server->master, claim.value,
                       &claim.names[0]);
        }
    }
    checker_of(link->network->world)->passes.is_mixed =
        form->script == SCRIPT_QUEUE && !word_is(&words->word[2], "1");
}

static void note_claims(const struct link *link, const struct words *words, const struct form *form,
                        bool was_refused, struct effect *effects, unsigned *count) {
    struct checker *checker = checker_of(link->network->world);
    struct place at = first_place(words, form);
    struct claim claim;
    while (next_claim(words, form, &at, &claim)) {
        unsigned before = *count;
        note_claim(link, &claim, script_takes(form->script) || form->is_reader, effects, count);
        unsigned key = check_key_of(checker, &claim.names[0]);
        if (claim.asks_for_place && !was_refused && key < checker->key_count) {
            check_flag(checker, &link->server->master, key);
        }
        if (claim.ticket != NULL && *count > before && effects[before].is_new &&
            !checker->passes.is_mixed) {
            checker->passes.taker = effects[before].token;
            check_turn(checker, &link->server->master, effects[before].token, effects[before].key);
        }
    }
}

/* ---- keys that are passed on ---- */

void check_published(struct world *world, const struct word *text, unsigned heard) {
    struct checker *checker = checker_of(world);
    struct passes *passes = &checker->passes;
    struct push push;
    if (checker->load != NULL || !push_read(text->text, text->length, &push) ||
        push.expires_ms == 0) {
        return;
    }
    uint32_t number = check_token_of(checker, push.token, 40);
    unsigned key = check_key_of(checker, &(struct word){push.key, push.key_length});
    if (heard == 0 && passes->count >= PASSES_MAX / 2) {
        return; /* so many dead waiters */
    }
    if (number == NO_TOKEN || key == checker->key_count || passes->count == PASSES_MAX) {
        violate(world, INVARIANT_TOKENS, "a key is passed on that is nobody's, or to nobody");
        return;
    }
    passes->list[passes->count++] = (struct pass){number, key, heard};
    check_claim(checker, &push);
}

/* Returns whether the connection has ended on which the token asked for its place. */
static bool has_ended(const struct checker *checker, unsigned server, const struct token *token) {
    const struct link *link;
    TAILQ_FOREACH(link, &checker->network->links, all_link) {
        if (link->number == token->set_on[server]) {
            return link->conn == NULL;
        }
    }
    return true;
}

/* Notes the keys that a command has passed on, once those that it has freed are noted. */
static void note_passes(struct checker *checker, struct master *master) {
    struct passes *passes = &checker->passes;
    for (unsigned i = 0; i < passes->count; i++) {
        const struct pass *pass = &passes->list[i];
        const char *name = checker->keys[pass->key];
        struct token *token = &checker->tokens[pass->token];
        struct effect effect;
        if (note_effect(checker, master, &(struct word){name, strlen(name)}, pass->token,
                        has_ended(checker, master->index, token), &effect)) {
            token->pushed[master->index][pass->key] = (struct pushed){
                .at = checker->world->now,
                .until = token->keeps_until[master->index][pass->key],
                .doubtful_until = effect.doubtful_until,
            };
            if (effect.is_new && !passes->is_mixed && pass->token != passes->taker) {
                check_heard_of(checker, master, pass);
                check_turn(checker, master, pass->token, pass->key);
            }
            checker->passed++;
        }
    }
    passes->count = 0;
    passes->is_mixed = false;
    passes->taker = NO_TOKEN;
}

static struct effect *effects_of(const struct link *link, const struct words *words,
                                 const struct reply *reply, unsigned *count) {
    struct checker *checker = checker_of(link->network->world);
    bool is_set = word_is(&words->word[0], "SET") && words->count >= 3;
    const struct form *form = is_set ? NULL : form_of(words);
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
        note_claim(link,
                   &(struct claim){.names = &words->word[1], .count = 1, .value = &words->word[2]},
                   false, effects, count);
    } else {
        check_passing(link, words, form, reply);
        note_claims(link, words, form, reply->type == REPLY_ERROR, effects, count);
    }
    if (checker->has_readers) {
        check_readers(checker);
    }
    return effects;
}

struct effect *check_effects(const struct link *link, const struct words *words,
                             const struct reply *reply, unsigned *count) {
    struct effect *effects = effects_of(link, words, reply, count);
    note_passes(checker_of(link->network->world), &link->server->master);
    return effects;
}

/* ---- what is delivered ---- */

void check_arrived(const struct link *link, const struct message *message) {
    const struct checker *checker = checker_of(link->network->world);
    if (checker->load != NULL) {
        check_load_arrived(checker->load, link, message);
    }
}

/* Returns the instant until which a grant is good, by the process's clock: Redlock, step 3. */
static uint64_t promise(const struct checker *checker, uint64_t sent_at, int64_t left_ms) {
    double ttl = (double)left_ms * (double)MS;
    double useful = ttl - ttl * checker->drift - 2.0 * (double)MS;
    return sent_at + (useful > 0 ? (uint64_t)useful : 0);
}

static void note_promise(struct checker *checker, uint32_t token, unsigned key, unsigned server,
                         uint64_t promised) {
    uint64_t *known = &checker->tokens[token].promised[server][key];
    *known = promised > *known ? promised : *known;
}

/*
 * Notes a grant, which counts when the replicas have confirmed it; a grant beyond UNCONFIRMED_MAX
 * counts at once.
 */
static void note_grant(struct checker *checker, const struct event_base *process, unsigned server,
                       const struct effect *effect, uint64_t promised) {
    struct unconfirmed *waiting = &checker->unconfirmed[process->index][server];
    if (checker->wait_replicas == 0 || waiting->count == UNCONFIRMED_MAX) {
        note_promise(checker, effect->token, effect->key, server, promised);
        return;
    }
    waiting->grants[waiting->count].token = effect->token;
    waiting->grants[waiting->count].key = effect->key;
    waiting->grants[waiting->count++].promised = promised;
}

static void replicas_said(struct checker *checker, const struct event_base *process,
                          unsigned server, int64_t confirmations) {
    struct unconfirmed *waiting = &checker->unconfirmed[process->index][server];
    for (unsigned i = 0; i < waiting->count && confirmations >= checker->wait_replicas; i++) {
        note_promise(checker, waiting->grants[i].token, waiting->grants[i].key, server,
                     waiting->grants[i].promised);
    }
    waiting->count = 0;
}

void check_delivered(struct event_base *process, unsigned server, const struct answer *answer,
                     uint64_t sent_at) {
    struct checker *checker = checker_of(process->world);
    process->work += WORK_OF_COMMAND + answer->effect_count * WORK_OF_LOCK;
    if (checker->load != NULL) {
        return;
    }
    bool is_grant = answer->reply.type == REPLY_STATUS;
    if (answer->is_beat && answer->reply.type == REPLY_STRING) {
        check_heard(process, server, answer->at);
    }
    if (answer->reply.type == REPLY_INTEGER) { /* only WAIT answers with an integer */
        replicas_said(checker, process, server, answer->reply.integer);
    }
    for (unsigned i = 0; i < answer->effect_count; i++) {
        const struct effect *effect = &answer->effects[i];
        if (effect->is_new) {
            check_granted(checker, process, server, effect, answer->at);
        }
        if (is_grant || effect->was_kept) {
            /* Set by the same try at the same server, under another name of it: from then on. */
            bool is_of_this_try = effect->set_at >= sent_at;
            note_grant(
                checker, process, server, effect,
                promise(checker, sent_at, is_of_this_try ? effect->lasts_ms : effect->left_ms));
        }
    }
}

void check_pushed(struct event_base *process, unsigned server, const char *text, size_t length) {
    struct checker *checker = checker_of(process->world);
    struct push push;
    process->work += WORK_OF_COMMAND;
    if (checker->load != NULL || !push_read(text, length, &push) || push.expires_ms == 0) {
        return;
    }
    uint32_t number = check_token_of(checker, push.token, 40);
    unsigned key = check_key_of(checker, &(struct word){push.key, push.key_length});
    if (number == NO_TOKEN || key == checker->key_count) {
        return; /* reported when it was published */
    }
    const struct pushed *pushed = &checker->tokens[number].pushed[server][key];
    const struct effect effect = {
        .token = number, .key = key, .doubtful_until = pushed->doubtful_until};
    check_granted(checker, process, server, &effect, pushed->at);
    note_promise(checker, number, key, server, tempo_read(&process->clock, pushed->until));
}
