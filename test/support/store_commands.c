#include "scripting.h"
#include "store.h"

#include "wire/script.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- answers ---- */

static struct reply status(const char *text) {
    return (struct reply){.type = REPLY_STATUS, .text = text, .length = strlen(text)};
}

static struct reply error(const char *text) {
    return (struct reply){.type = REPLY_ERROR, .text = text, .length = strlen(text)};
}

static struct reply integer(int64_t value) {
    return (struct reply){.type = REPLY_INTEGER, .integer = value};
}

static struct reply nil(void) {
    return (struct reply){.type = REPLY_NIL};
}

static struct reply wrong_type(void) {
    return error("WRONGTYPE Operation against a key holding the wrong kind of value");
}

static struct reply syntax_error(void) {
    return error("ERR syntax error");
}

/* ---- strings and expiry ---- */

static struct store_key *find_word(struct store *store, const struct word *name) {
    return store_find(store, name->text, name->length);
}

static void put_value(struct store_key *key, const struct word *value, uint64_t command) {
    key->value_length = value->length < STORE_VALUE_MAX ? value->length : STORE_VALUE_MAX;
    memcpy(key->value, value->text, key->value_length);
    set_finish(&key->set);
    key->type = STORE_STRING;
    key->command = command;
}

/* SET key value [NX] [PX milliseconds | PXAT milliseconds] */
static struct reply run_set(struct store *store, const struct words *words) {
    bool only_new = false;
    long long ttl = 0;
    int64_t from_ms = store_now_ms(store);
    if (words->count < 3) {
        return error("ERR wrong number of arguments for 'set' command");
    }
    for (unsigned i = 3; i < words->count; i++) {
        if (word_is(&words->word[i], "NX")) {
            only_new = true;
        } else if ((word_is(&words->word[i], "PX") || word_is(&words->word[i], "PXAT")) &&
                   i + 1 < words->count) {
            from_ms = word_is(&words->word[i], "PX") ? from_ms : 0;
            if (!word_number(&words->word[++i], &ttl)) {
                return error("ERR value is not an integer or out of range");
            }
            if (ttl <= 0) {
                return error("ERR invalid expire time in 'set' command");
            }
        } else {
            return syntax_error();
        }
    }
    struct store_key *key = find_word(store, &words->word[1]);
    if (key != NULL && only_new) {
        return nil();
    }
    key = key != NULL ? key : store_add(store, &words->word[1]);
    put_value(key, &words->word[2], store->commands);
    key->expires_ms = ttl > 0 ? from_ms + ttl : -1;
    return status("OK");
}

static struct reply run_get(struct store *store, const struct words *words) {
    const struct store_key *key = find_word(store, &words->word[1]);
    if (key == NULL) {
        return nil();
    }
    if (key->type != STORE_STRING) {
        return wrong_type();
    }
    return (struct reply){.type = REPLY_STRING, .text = key->value, .length = key->value_length};
}

static struct reply run_del(struct store *store, const struct words *words) {
    unsigned dropped = 0;
    for (unsigned i = 1; i < words->count; i++) {
        struct store_key *key = find_word(store, &words->word[i]);
        if (key != NULL) {
            store_remove(store, key);
            dropped++;
        }
    }
    return integer(dropped);
}

static struct reply run_pttl(struct store *store, const struct words *words) {
    const struct store_key *key = find_word(store, &words->word[1]);
    if (key == NULL) {
        return integer(-2);
    }
    return integer(key->expires_ms < 0 ? -1 : key->expires_ms - store_now_ms(store));
}

static struct reply expire(struct store *store, const struct words *words, int64_t from_ms) {
    long long ms;
    if (words->count != 3 || !word_number(&words->word[2], &ms)) {
        return error("ERR value is not an integer or out of range");
    }
    struct store_key *key = find_word(store, &words->word[1]);
    if (key == NULL) {
        return integer(0);
    }
    if (from_ms + ms <= store_now_ms(store)) {
        store_remove(store, key);
    } else {
        key->expires_ms = from_ms + ms;
    }
    return integer(1);
}

static struct reply run_pexpire(struct store *store, const struct words *words) {
    return expire(store, words, store_now_ms(store));
}

static struct reply run_pexpireat(struct store *store, const struct words *words) {
    return expire(store, words, 0);
}

static struct reply run_lpush(struct store *store, const struct words *words) {
    struct store_key *key = find_word(store, &words->word[1]);
    if (key != NULL && key->type != STORE_LIST) {
        return wrong_type();
    }
    key = key != NULL ? key : store_add(store, &words->word[1]);
    key->type = STORE_LIST;
    key->command = store->commands;
    return integer(1);
}

/* ---- sorted sets ---- */

/*
 * Returns the set that a command names; NULL when there is none: `refusal` is then the error if the
 * key is of another type.
 */
static struct store_key *find_set(struct store *store, const struct words *words,
                                  struct reply *refusal) {
    struct store_key *key = find_word(store, &words->word[1]);
    bool is_wrong = key != NULL && key->type != STORE_SET;
    *refusal = is_wrong ? wrong_type() : integer(0);
    return is_wrong ? NULL : key;
}

static bool read_score(const struct word *word, int64_t *score) {
    long long number;
    if (word_is(word, "-inf") || word_is(word, "+inf")) {
        *score = word->text[0] == '-' ? INT64_MIN : INT64_MAX;
        return true;
    }
    bool is_number = word_number(word, &number);
    *score = is_number ? number : 0;
    return is_number;
}

/* ZADD key [NX] score member; XX only as the scripts use it. */
static struct reply run_zadd(struct store *store, const struct words *words) {
    struct reply refusal;
    int64_t score;
    struct store_key *key = find_set(store, words, &refusal);
    if (refusal.type == REPLY_ERROR) {
        return refusal;
    }
    if (words->count == 5 && word_is(&words->word[2], "xx")) {
        return integer(0); /* score of a missing member, as the scripts expect it */
    }
    bool is_new_only = words->count == 5 && word_is(&words->word[2], "nx");
    const struct word *rest = &words->word[is_new_only ? 3 : 2];
    if (words->count != (is_new_only ? 5 : 4) || !read_score(&rest[0], &score)) {
        return error("ERR value is not a valid float");
    }
    if (is_new_only && key != NULL && set_find(&key->set, &rest[1]) != NULL) {
        return integer(0);
    }
    key = key != NULL ? key : store_add(store, &words->word[1]);
    key->type = STORE_SET;
    return integer(set_put(&key->set, &rest[1], score));
}

/* ZSCORE key member */
static struct reply run_zscore(struct store *store, const struct words *words) {
    struct reply refusal;
    const struct store_key *key = find_set(store, words, &refusal);
    const struct member *member = key != NULL ? set_find(&key->set, &words->word[2]) : NULL;
    if (member == NULL) {
        return refusal.type == REPLY_ERROR ? refusal : nil();
    }
    int length = snprintf(store->text, sizeof(store->text), "%" PRId64, member->score);
    return (struct reply){.type = REPLY_STRING, .text = store->text, .length = (size_t)length};
}

/* Removes a set without members, as Redis does. */
static struct reply has_lost(struct store *store, const struct words *words, unsigned count) {
    if (find_word(store, &words->word[1])->set.count == 0) {
        run_del(store, &(struct words){.count = 2, .word[1] = words->word[1]});
    }
    return integer(count);
}

/* ZREM key member... */
static struct reply run_zrem(struct store *store, const struct words *words) {
    struct reply refusal;
    unsigned removed = 0;
    struct store_key *key = find_set(store, words, &refusal);
    if (key == NULL) {
        return refusal;
    }
    for (unsigned i = 2; i < words->count; i++) {
        removed += set_remove(&key->set, &words->word[i]);
    }
    return has_lost(store, words, removed);
}

/* ZREMRANGEBYSCORE key -inf most */
static struct reply run_zremrangebyscore(struct store *store, const struct words *words) {
    struct reply refusal;
    int64_t most;
    struct store_key *key = find_set(store, words, &refusal);
    if (!word_is(&words->word[2], "-inf") || !read_score(&words->word[3], &most)) {
        return error("ERR min or max is not a float");
    }
    return key == NULL ? refusal : has_lost(store, words, set_remove_up_to(&key->set, most));
}

/* ZCOUNT key least +inf, or ZCOUNT key least (end */
static struct reply run_zcount(struct store *store, const struct words *words) {
    struct reply refusal;
    int64_t least;
    int64_t end = INT64_MAX;
    const struct store_key *key = find_set(store, words, &refusal);
    struct word most = words->word[3];
    bool has_end = most.length > 0 && most.text[0] == '(';
    if (has_end) {
        most = (struct word){.text = most.text + 1, .length = most.length - 1};
    }
    if (!read_score(&words->word[2], &least) || !read_score(&most, &end) ||
        (!has_end && end != INT64_MAX)) {
        return error("ERR min or max is not a float");
    }
    if (key == NULL) {
        return refusal;
    }
    unsigned beyond = has_end ? set_count_from(&key->set, end) : 0;
    return integer(set_count_from(&key->set, least) - beyond);
}

/* EXISTS key... */
static struct reply run_exists(struct store *store, const struct words *words) {
    unsigned found = 0;
    for (unsigned i = 1; i < words->count; i++) {
        found += find_word(store, &words->word[i]) != NULL;
    }
    return integer(found);
}

static struct reply run_ok(struct store *store, const struct words *words) {
    (void)store;
    (void)words;
    return status("OK");
}

/* SELECT db */
static struct reply run_select(struct store *store, const struct words *words) {
    long long db;
    if (!word_number(&words->word[1], &db) || db < 0 || db > 15) {
        return error("ERR DB index is out of range");
    }
    store->db = (unsigned)db;
    return status("OK");
}

/* Answers WAIT: the replicas have either confirmed everything or are unreachable. */
static struct reply run_wait(struct store *store, const struct words *words) {
    (void)words;
    return integer(store->replicas);
}

/* Answers INFO section, with only the fields that clients read. */
static struct reply run_info(struct store *store, const struct words *words) {
    (void)words;
    int length =
        snprintf(store->text, sizeof(store->text),
                 "# All\r\nrun_id:%s\r\nuptime_in_seconds:%" PRId64 "\r\nserver_time_usec:%" PRIu64
                 "\r\nrole:%s\r\nmaster_replid:%s%010u\r\nmaster_replid2:%040u"
                 "\r\nmaxmemory_policy:noeviction\r\n",
                 store->run_id, store_now_ms(store) / 1000 - store->started_ms / 1000,
                 store->clock(store->owner) / 1000, store->is_replica ? "slave" : "master",
                 store->run_id + 10, store->promotions, store->promotions);
    return (struct reply){.type = REPLY_STRING, .text = store->text, .length = (size_t)length};
}

/* Answers INFO inside a script, which some servers and ACLs refuse. */
static struct reply run_info_of_script(struct store *store, const struct words *words) {
    return store->is_reticent ? error("ERR This Redis command is not allowed from script")
                              : run_info(store, words);
}

/* PUBLISH channel text */
static struct reply run_publish(struct store *store, const struct words *words) {
    return integer(store->publish == NULL
                       ? 0
                       : store->publish(store->owner, &words->word[1], &words->word[2]));
}

static struct reply run_ping(struct store *store, const struct words *words) {
    (void)store;
    (void)words;
    return status("PONG");
}

/* ---- scripts ---- */

/* Returns the library's script with this text or SHA-1; SCRIPT_COUNT when there is none. */
static unsigned script_of(const struct word *word, const char *(*mark)(enum script script)) {
    unsigned i = 0;
    while (i < SCRIPT_COUNT && !word_is(word, mark((enum script)i))) {
        i++;
    }
    return i;
}

static struct reply run_script(struct store *store, const struct words *words) {
    if (words->count == 2 && word_is(&words->word[1], "FLUSH")) {
        store->scripts = 0;
        return status("OK");
    }
    if (words->count != 3 || !word_is(&words->word[1], "LOAD")) {
        return syntax_error();
    }
    unsigned script = script_of(&words->word[2], script_text);
    if (script == SCRIPT_COUNT) {
        return error("ERR a fake master knows the library's scripts only");
    }
    store->scripts |= UINT32_C(1) << script;
    const char *sha = script_sha((enum script)script);
    return (struct reply){.type = REPLY_STRING, .text = sha, .length = strlen(sha)};
}

static struct reply call(struct store *store, unsigned script, const struct words *words) {
    long long keys;
    if (words->count < 3 || !word_number(&words->word[2], &keys)) {
        return error("ERR value is not an integer or out of range");
    }
    if (keys < 0) {
        return error("ERR Number of keys can't be negative");
    }
    if ((unsigned long long)keys > words->count - 3) {
        return error("ERR Number of keys can't be greater than number of args");
    }
    return scripting_run(store, (enum script)script, words, (unsigned)keys);
}

static struct reply run_evalsha(struct store *store, const struct words *words) {
    unsigned script = words->count > 1 ? script_of(&words->word[1], script_sha) : SCRIPT_COUNT;
    if (script == SCRIPT_COUNT || !(store->scripts & UINT32_C(1) << script)) {
        return error("NOSCRIPT No matching script. Please use EVAL.");
    }
    return call(store, script, words);
}

static struct reply run_eval(struct store *store, const struct words *words) {
    unsigned script = words->count > 1 ? script_of(&words->word[1], script_text) : SCRIPT_COUNT;
    if (script == SCRIPT_COUNT) {
        return error("ERR a fake master knows the library's scripts only");
    }
    store->scripts |= UINT32_C(1) << script;
    return call(store, script, words);
}

/* ---- the table of commands ---- */

struct reply store_run(struct store *store, const struct words *words) {
    static const struct {
        const char *name, *from_script;
        unsigned least_words;
        struct reply (*run)(struct store *store, const struct words *words);
    } table[] = {
        {"SET", "set", 3, run_set},
        {"EVALSHA", NULL, 3, run_evalsha},
        {"GET", "get", 2, run_get},
        {"DEL", "del", 2, run_del},
        {"PTTL", "pttl", 2, run_pttl},
        {"PEXPIRE", "pexpire", 3, run_pexpire},
        {"EVAL", NULL, 3, run_eval},
        {"SCRIPT", NULL, 2, run_script},
        {"LPUSH", NULL, 3, run_lpush},
        {"AUTH", NULL, 2, run_ok},
        {"SELECT", NULL, 2, run_select},
        {"CLIENT", NULL, 2, run_ok},
        {"PING", NULL, 1, run_ping},
        {"INFO", NULL, 2, run_info},
        {"INFO", "info", 2, run_info_of_script},
        {"PEXPIREAT", "pexpireat", 3, run_pexpireat},
        {"ZADD", "zadd", 4, run_zadd},
        {"ZSCORE", "zscore", 3, run_zscore},
        {"ZREM", "zrem", 3, run_zrem},
        {"EXISTS", "exists", 2, run_exists},
        {"ZREMRANGEBYSCORE", "zremrangebyscore", 4, run_zremrangebyscore},
        {"ZCOUNT", "zcount", 4, run_zcount},
        {"WAIT", NULL, 3, run_wait},
        {"PUBLISH", "publish", 3, run_publish},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        if (word_is(&words->word[0], table[i].name) ||
            (table[i].from_script != NULL && word_is(&words->word[0], table[i].from_script))) {
            return words->count < table[i].least_words ? error("ERR wrong number of arguments")
                                                       : table[i].run(store, words);
        }
    }
    return error("ERR unknown command");
}
