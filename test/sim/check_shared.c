/* Checks keys that readers share: the list of readers, and the intent of a waiting writer. */
#include "checker.h"
#include "parsed_call.h"

#include "wire/command.h"
#include "wire/fence.h"

#include <inttypes.h>
#include <string.h>

const struct store_key *check_beside(const struct checker *checker, struct master *master,
                                     unsigned key, const char *suffix) {
    char name[sizeof(checker->keys[0]) + 16];
    int length = snprintf(name, sizeof(name), "%s%s", checker->keys[key], suffix);
    return master_find(master, name, (size_t)length);
}

unsigned check_alive(const struct checker *checker, struct master *master, unsigned key) {
    const struct store_key *readers = check_beside(checker, master, key, READERS_SUFFIX);
    return readers != NULL ? set_count_from(&readers->set, master_now_ms(master)) : 0;
}

bool check_is_shared(const struct store_key *key) {
    return key != NULL && key->type == STORE_STRING &&
           key->value_length == strlen(REDLOCK_SHARED_VALUE) &&
           memcmp(key->value, REDLOCK_SHARED_VALUE, key->value_length) == 0;
}

int64_t check_listed(const struct checker *checker, struct master *master, uint32_t number) {
    const struct token *token = &checker->tokens[number];
    const char *name = checker->keys[token->key];
    master->store.db = checker->db;
    const struct store_key *key = master_find(master, name, strlen(name));
    const struct store_key *readers = check_beside(checker, master, token->key, READERS_SUFFIX);
    if (!check_is_shared(key) || readers == NULL) {
        return 0;
    }
    for (unsigned i = 0; i < readers->set.count; i++) {
        const struct member *member = &readers->set.list[i];
        if (check_token_of(checker, member->name, member->length) == number &&
            member->score >= master_now_ms(master)) {
            return key->expires_ms < member->score ? key->expires_ms : member->score;
        }
    }
    return 0;
}

uint64_t check_kept_until(const struct checker *checker, unsigned server, uint32_t number) {
    const struct token *token = &checker->tokens[number];
    struct master *master = &checker->network->servers[server].master;
    if (!token->is_reader) {
        return check_least(token->keeps_until[server], token->keys);
    }
    int64_t until_ms = check_listed(checker, master, number);
    return until_ms > 0 ? master_keeps_until(master, until_ms) : 0;
}

void check_readers(struct checker *checker) {
    const struct hold *hold;
    LIST_FOREACH(hold, &checker->holds, link) {
        if (hold->is_reader) {
            check_backing(checker, hold);
        }
    }
}

/* ---- effects of a call ---- */

/* Checks that the list contains no reader whose share has expired. */
static void check_list(struct checker *checker, struct master *master, unsigned key) {
    const struct store_key *readers = check_beside(checker, master, key, READERS_SUFFIX);
    for (unsigned i = 0; readers != NULL && i < readers->set.count; i++) {
        if (readers->set.list[i].score < master_now_ms(master)) {
            violate(checker->world, INVARIANT_BOUNDS, "node %u still lists a reader of key %u",
                    master->index, key);
        }
    }
}

static const struct store_key *find_intent(const struct checker *checker, struct master *master,
                                           unsigned key) {
    return check_beside(checker, master, key, WRITER_SUFFIX);
}

/* Returns whether the reader is in the list, and was not before. */
static bool is_let_in(const struct checker *checker, struct master *master, uint32_t number) {
    const struct token *token = &checker->tokens[number];
    bool was_in = token->keeps_until[master->index][token->key] > checker->world->now;
    return !was_in && check_listed(checker, master, number) != 0;
}

/* Checks that only SHARE admits a reader. */
static void check_renews_only(struct checker *checker, struct master *master, uint32_t number) {
    /* A renewal must not revive an expired share: the key may have had another holder since. */
    if (is_let_in(checker, master, number) && !checker->server_clocks_jump) {
        violate(checker->world, INVARIANT_REVIVAL,
                "at node %u a renewal lets in a reader of key %u (token %" PRIu32 ")",
                master->index, checker->tokens[number].key, number);
    }
}

/*
 * Checks that SHARE admits a reader only if no writer waits, and joins other readers only if the
 * queue is empty.
 */
static void check_room(struct checker *checker, struct master *master, uint32_t number) {
    const struct token *token = &checker->tokens[number];
    /* Readers that join others past the queue would starve the waiting writer. */
    if (is_let_in(checker, master, number) && check_alive(checker, master, token->key) > 1 &&
        check_is_awaited(checker, master, token->key)) {
        violate(checker->world, INVARIANT_ORDER,
                "node %u admits a reader of key %u before those in the queue (token %" PRIu32 ")",
                master->index, token->key, number);
    }
    /* A writer without an entry leaves an intent, for which readers must make room. */
    if (is_let_in(checker, master, number) && find_intent(checker, master, token->key) != NULL) {
        violate(checker->world, INVARIANT_LIVENESS,
                "node %u lets in a reader of key %u while a writer waits (token %" PRIu32 ")",
                master->index, token->key, number);
    }
}

/* Records that a reader is kept out of a key that others share, except by an intent. */
static void check_refused(struct checker *checker, struct master *master, uint32_t number) {
    unsigned key = checker->tokens[number].key;
    const char *name = checker->keys[key];
    if (check_listed(checker, master, number) == 0 &&
        check_is_shared(master_find(master, name, strlen(name))) &&
        check_alive(checker, master, key) > 0 && find_intent(checker, master, key) == NULL) {
        check_kept_out(checker, master, key);
    } else {
        checker->silences[master->index][key].token = NO_TOKEN;
    }
}

/* Checks that a client that has the key leaves no intent. */
static void check_no_intent(struct checker *checker, struct master *master, uint32_t number) {
    const struct token *token = &checker->tokens[number];
    const char *name = checker->keys[token->key];
    const struct store_key *key = master_find(master, name, strlen(name));
    bool has_it = key != NULL && key->type == STORE_STRING &&
                  check_token_of(checker, key->value, key->value_length) == number;
    /*
     * A writer that has the key removes its intent, which would keep readers out after its release.
     */
    if (has_it && find_intent(checker, master, token->key) != NULL) {
        violate(checker->world, INVARIANT_LIVENESS,
                "at node %u a writer has key %u and waits for it (token %" PRIu32 ")",
                master->index, token->key, number);
    }
}

/*
 * Returns whether the counter of a key is exhausted: the node can give neither a fence nor an
 * intent.
 */
static bool is_used_up(const struct checker *checker, struct master *master, unsigned key) {
    const struct store_key *counter = check_beside(checker, master, key, COUNTER_SUFFIX);
    long long count = 0;
    return counter != NULL && counter->type == STORE_STRING &&
           word_number(&(struct word){counter->value, counter->value_length}, &count) &&
           count > (long long)(FENCE_MAX - FENCES_IN_RANGE);
}

/*
 * Checks that a writer that met readers has left an intent, which lasts long enough, and expires.
 */
static void check_intent(struct checker *checker, struct master *master, uint32_t number,
                         const struct word *duration) {
    unsigned key = checker->tokens[number].key;
    const struct store_key *intent = find_intent(checker, master, key);
    long long intent_ms = 0;
    word_number(duration, &intent_ms);
    bool is_due =
        intent_ms > 0 && check_alive(checker, master, key) > 0 &&
        !is_used_up(checker, master, key) &&
        check_is_shared(master_find(master, checker->keys[key], strlen(checker->keys[key])));
    /* The intent must last until the writer's next try, or readers come in before it. */
    if (is_due && (intent == NULL || intent->expires_ms < master_now_ms(master) + intent_ms)) {
        violate(checker->world, INVARIANT_LIVENESS,
                "at node %u a writer of key %u has left no intent (token %" PRIu32 ")",
                master->index, key, number);
    }
    if (intent != NULL) {
        check_ttl(checker, master, check_token_of(checker, intent->value, intent->value_length),
                  intent->expires_ms);
    }
}

void check_shared_call(struct checker *checker, struct master *master, const struct words *words,
                       const struct form *form) {
    bool writes = form->script == SCRIPT_WRITE || form->script == SCRIPT_WRITE_FENCED;
    long long keys = 0;
    word_number(&words->word[2], &keys);
    for (unsigned i = 0; form->keys > 0 && i < (unsigned)keys / form->keys; i++) {
        const struct word *arguments =
            &words->word[3 + (unsigned)keys + form->leading + form->arguments * i];
        uint32_t number = check_token_of(checker, arguments[0].text, arguments[0].length);
        if (number == NO_TOKEN) {
            continue;
        }
        if (writes) {
            check_intent(checker, master, number, &arguments[2]);
            check_no_intent(checker, master, number);
        } else if (form->is_reader && check_listed(checker, master, number) != 0) {
            check_list(checker, master, checker->tokens[number].key);
        }
        if (form->script == SCRIPT_SHARE_RENEW) {
            check_renews_only(checker, master, number);
        }
        bool polls = form->script == SCRIPT_SHARE && word_is(&arguments[2], "1");
        if (polls) {
            check_room(checker, master, number);
        }
        if (polls || form->script == SCRIPT_SHARE_QUEUE) {
            check_refused(checker, master, number);
        }
    }
}
