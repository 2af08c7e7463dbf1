/* What goes over the wire: who may send what, what servers did, and what that promises. */
#include "checker.h"

#include "wire/script.h"

#include <inttypes.h>
#include <stdlib.h>

/* ---- what is sent ---- */

/* What was released in this process before goes to the node before a new SET does. */
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

/* A SET, or its like in a script; which may come again where the call was refused. */
static void take_sent(struct checker *checker, const struct link *link, const struct word *name,
                      const struct word *value, const struct word *px, bool may_repeat) {
    struct world *world = checker->world;
    struct event_base *process = link->process;
    uint32_t number = check_token_of(checker, value->text, value->length);
    unsigned key = check_key_of(checker, name);
    uint64_t now = tempo_read(&process->clock, world->now);
    if (number == NO_TOKEN || key == checker->key_count) {
        violate(world, INVARIANT_TOKENS, "process %u sent a SET with a token or key of nobody",
                process->index);
        return;
    }
    struct token *token = &checker->tokens[number];
    TRACE(world, "process %u sends SET key %u token %" PRIu32, process->index, key, number);
    check_order(checker, link, key);
    bool was_sent = token->set_on[link->server->master.index] != 0;
    token->set_on[link->server->master.index] = link->number;
    if (token->first_sent == NEVER) {
        token->first_sent = now;
        token->key = key;
    }
    if (token->key != key || token->process != process) {
        violate(world, INVARIANT_TOKENS, "token %" PRIu32 " is used for another key", number);
    } else if (token->first_sent != now && !token->is_acquired && was_sent && !may_repeat) {
        violate(world, INVARIANT_TOKENS, "token %" PRIu32 " is used for another try", number);
    } else if (token->is_over) {
        violate(world, INVARIANT_TOKENS, "token %" PRIu32 " is used after its end", number);
    }
    const struct hold *hold = check_hold_of(checker, number);
    if (token->is_acquired && (hold == NULL || check_claimed_end(hold->lock) == 0)) {
        violate(world, INVARIANT_REVIVAL, "process %u tops up key %u, which it has lost",
                process->index, key);
    }
    long long ttl = 0;
    word_number(px, &ttl);
    if (ttl <= 0 ||
        ((uint64_t)ttl > checker->asked_ttl_ms[process->index][key] && !checker->clocks_jump)) {
        violate(world, INVARIANT_EXPIRY, "process %u asks for a longer TTL than its application",
                process->index);
    }
}

static void set_sent(struct checker *checker, const struct link *link, const struct words *words) {
    static const struct word none = {"", 0};
    const struct word *px = &none;
    for (unsigned i = 3; i + 1 < words->count; i++) {
        px = word_is(&words->word[i], "PX") ? &words->word[i + 1] : px;
    }
    take_sent(checker, link, &words->word[1], &words->word[2], px, false);
}

/* EVALSHA sha count, key and counter of each lock, five arguments of each. */
static void takes_sent(struct checker *checker, const struct link *link,
                       const struct words *words) {
    long long keys = 0;
    word_number(&words->word[2], &keys);
    for (unsigned i = 0; i < (unsigned)keys / 2; i++) {
        const struct word *arguments = &words->word[3 + (unsigned)keys + 5 * i];
        take_sent(checker, link, &words->word[3 + 2 * i], &arguments[0], &arguments[1], true);
    }
}

static bool calls(const struct words *words, enum script script) {
    return words->count > 3 && (word_is(&words->word[1], script_sha(script)) ||
                                word_is(&words->word[1], script_text(script)));
}

static void script_sent(struct checker *checker, const struct link *link,
                        const struct words *words) {
    for (unsigned i = 3; i < words->count; i++) {
        uint32_t number = check_token_of(checker, words->word[i].text, words->word[i].length);
        if (number != NO_TOKEN) {
            checker->tokens[number].released_on[link->server->master.index] = link->number;
        }
    }
}

void check_sent(const struct link *link, const char *data, size_t length) {
    struct checker *checker = checker_of(link->network->world);
    struct words words;
    if (words_read(&words, data, length) != length) {
        violate(checker->world, INVARIANT_BOUNDS, "process %u sent a broken command",
                link->process->index);
    } else if (word_is(&words.word[0], "SET")) {
        set_sent(checker, link, &words);
    } else if (calls(&words, SCRIPT_TAKE)) {
        takes_sent(checker, link, &words);
    } else if (calls(&words, SCRIPT_RELEASE)) {
        script_sent(checker, link, &words);
    }
}

/* ---- what servers do ---- */

/* A key of ours never takes the place of another one. */
static void check_free(struct checker *checker, const struct master *master, uint32_t number) {
    uint32_t *last = &checker->set_last[master->index][checker->tokens[number].key];
    if (*last != NO_TOKEN && *last != number && !checker->server_clocks_jump &&
        checker->tokens[*last].keeps_until[master->index] > checker->world->now) {
        violate(checker->world, INVARIANT_EXCLUSION,
                "at node %u token %" PRIu32 " took the place of token %" PRIu32, master->index,
                number, *last);
    }
    *last = number;
}

void check_forgotten(struct master *master) {
    struct checker *checker = checker_of(master->world);
    for (unsigned key = 0; key < KEYS_MAX; key++) {
        checker->set_last[master->index][key] = NO_TOKEN;
    }
}

/* The key `name` has been touched by a command that names the token. True: it has it now. */
static bool note_effect(const struct link *link, const struct word *name, uint32_t number,
                        struct effect *effect) {
    struct checker *checker = checker_of(link->network->world);
    struct master *master = &link->server->master;
    struct token *token = &checker->tokens[number];
    const struct store_key *key = master_find(master, name->text, name->length);
    bool has_it = key != NULL && !key->is_list &&
                  check_token_of(checker, key->value, key->value_length) == number;
    if (!has_it) {
        token->keeps_until[master->index] = 0;
        const struct hold *hold = check_hold_of(checker, number);
        if (hold != NULL) {
            check_backing(checker, hold);
        }
        return false;
    }
    bool is_new = key->command == master->commands;
    int64_t left_ms = key->expires_ms - master_now_ms(master);
    int64_t asked = (int64_t)checker->asked_ttl_ms[token->process->index][token->key];
    if (key->expires_ms < 0 ||
        (left_ms > asked && !checker->server_clocks_jump && !checker->clocks_jump)) {
        violate(checker->world, INVARIANT_EXPIRY,
                "node %u is to keep a key for longer than its application asked (token %" PRIu32
                ")",
                master->index, number);
    }
    if (is_new) {
        check_free(checker, master, number);
        token->is_late[master->index] = link->conn == NULL;
    }
    token->keeps_until[master->index] = master_keeps_until(master, key);
    *effect = (struct effect){.token = number, .was_kept = !is_new, .left_ms = left_ms};
    TRACE(link->network->world, "node %u: key %.*s has token %" PRIu32 " for %lld ms%s",
          master->index, (int)name->length, name->text, number, (long long)effect->left_ms,
          is_new ? ", new" : "");
    return true;
}

/* SET key token ..., or EVALSHA sha count key... argument...: with every `step`th a token. */
struct effect *check_effects(const struct link *link, const struct words *words, unsigned *count) {
    const struct checker *checker = checker_of(link->network->world);
    *count = 0;
    if (link->db != checker->db) {
        return NULL; /* nothing of ours is there */
    }
    bool is_set = word_is(&words->word[0], "SET") && words->count >= 3;
    bool is_call = word_is(&words->word[0], "EVALSHA") || word_is(&words->word[0], "EVAL");
    long long keys = 1;
    if (!is_set && (!is_call || !word_number(&words->word[2], &keys))) {
        return NULL;
    }
    unsigned first = is_set ? 1 : 3;
    bool is_take = calls(words, SCRIPT_TAKE);
    unsigned step = is_take || calls(words, SCRIPT_KEEP) ? 2 : 1; /* a key, a counter */
    struct effect *effects = calloc((size_t)keys + 1, sizeof(*effects));
    if (effects == NULL) {
        abort();
    }
    unsigned key = 0;
    for (unsigned i = first + (unsigned)keys; i < words->count && key < (unsigned)keys; i++) {
        uint32_t number = check_token_of(checker, words->word[i].text, words->word[i].length);
        if (number != NO_TOKEN) {
            struct effect *effect = &effects[*count];
            *count += note_effect(link, &words->word[first + key], number, effect);
            effect->was_kept |= is_take;
            key += step;
        }
    }
    return effects;
}

/* ---- what is delivered ---- */

/* What the paper lets a client conclude from a grant: Redlock, step 3. */
static uint64_t promise(const struct checker *checker, uint64_t sent_at, int64_t left_ms) {
    double ttl = (double)left_ms * (double)MS;
    double useful = ttl - ttl * checker->drift - 2.0 * (double)MS;
    return sent_at + (useful > 0 ? (uint64_t)useful : 0);
}

void check_delivered(struct event_base *process, unsigned server, const struct answer *answer,
                     uint64_t sent_at) {
    struct checker *checker = checker_of(process->world);
    bool is_grant = answer->reply.type == REPLY_STATUS;
    for (unsigned i = 0; i < answer->effect_count; i++) {
        const struct effect *effect = &answer->effects[i];
        struct token *token = &checker->tokens[effect->token];
        uint64_t promised = promise(checker, sent_at, effect->left_ms);
        if ((is_grant || effect->was_kept) && promised > token->promised[server]) {
            token->promised[server] = promised;
        }
    }
}
