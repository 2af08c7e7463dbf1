#include "master.h"

#include "scripting.h"

#include "wire/command.h"
#include "wire/script.h"

#include <inttypes.h>
#include <stdlib.h>

void master_init(struct master *master, struct world *world, unsigned index) {
    *master = (struct master){.world = world, .index = index};
    master->clock = (struct tempo){.true_base = world->now, .own_base = world->now};
}

void master_start(struct master *master, uint64_t at) {
    master->scripts = 0;
    master->run++;
    master->started_ms = (int64_t)(tempo_read(&master->clock, at) / MS);
}

static void free_key(struct store_key *key) {
    set_finish(&key->set);
    free(key);
}

static bool is_counter(const struct store_key *key) {
    size_t length = strlen(COUNTER_SUFFIX);
    return key->name_length > length &&
           memcmp(key->name + key->name_length - length, COUNTER_SUFFIX, length) == 0;
}

static void forget(struct master *master, bool keeps_counters) {
    for (unsigned i = 0; i < master->bucket_count; i++) {
        struct store_key **place = &master->buckets[i];
        struct store_key *key;
        while ((key = *place) != NULL) {
            if (keeps_counters && is_counter(key)) {
                place = &key->next;
            } else {
                *place = key->next;
                master->key_count--;
                free_key(key);
            }
        }
    }
}

void master_forget(struct master *master) {
    forget(master, false);
}

void master_forget_locks(struct master *master) {
    forget(master, true);
}

void master_finish(struct master *master) {
    forget(master, false);
    free(master->buckets);
}

/* ---- keys ---- */

int64_t master_now_ms(const struct master *master) {
    return (int64_t)(tempo_read(&master->clock, master->world->now) / MS);
}

uint64_t master_keeps_until(const struct master *master, int64_t expires_ms) {
    if (expires_ms < 0) {
        return NEVER;
    }
    return tempo_true(&master->clock, ((uint64_t)expires_ms + 1) * MS);
}

/* Hashes a name (FNV-1a). */
static uint32_t hash_of(const struct master *master, const char *name, size_t length) {
    uint32_t hash = UINT32_C(2166136261) + master->db;
    for (size_t i = 0; i < length; i++) {
        hash = (hash ^ (unsigned char)name[i]) * UINT32_C(16777619);
    }
    return hash;
}

static struct store_key **bucket_of(const struct master *master, uint32_t hash) {
    return &master->buckets[hash & (master->bucket_count - 1)];
}

static void make_room(struct master *master) {
    struct store_key **old = master->buckets;
    unsigned old_count = master->bucket_count;
    if (master->key_count < old_count) {
        return;
    }
    master->bucket_count = old_count > 0 ? old_count * 2 : 32;
    master->buckets = calloc(master->bucket_count, sizeof(struct store_key *));
    if (master->buckets == NULL) {
        abort();
    }
    for (unsigned i = 0; i < old_count; i++) {
        struct store_key *key, *next;
        for (key = old[i]; key != NULL; key = next) {
            next = key->next;
            key->next = *bucket_of(master, key->hash);
            *bucket_of(master, key->hash) = key;
        }
    }
    free(old);
}

static void drop(struct master *master, struct store_key *key) {
    struct store_key **place = bucket_of(master, key->hash);
    while (*place != key) {
        place = &(*place)->next;
    }
    *place = key->next;
    master->key_count--;
    free_key(key);
}

const struct store_key *master_nth(const struct master *master, unsigned number) {
    const struct store_key *key = NULL;
    for (unsigned i = 0; i < master->bucket_count; i++) {
        for (key = master->buckets[i]; key != NULL && number > 0; key = key->next) {
            number--;
        }
        if (key != NULL) {
            break;
        }
    }
    return key;
}

void master_evict(struct master *master, const struct store_key *key) {
    drop(master, (struct store_key *)key);
}

/* Finds a key that has not expired: the clock, in whole milliseconds, is not past its end. */
static struct store_key *find(struct master *master, const char *name, size_t length) {
    uint32_t hash = hash_of(master, name, length);
    struct store_key *key = master->bucket_count > 0 ? *bucket_of(master, hash) : NULL;
    while (key != NULL && (key->hash != hash || key->db != master->db ||
                           key->name_length != length || memcmp(key->name, name, length) != 0)) {
        key = key->next;
    }
    if (key != NULL && key->expires_ms >= 0 && master_now_ms(master) > key->expires_ms) {
        drop(master, key);
        return NULL;
    }
    return key;
}

const struct store_key *master_find(struct master *master, const char *name, size_t length) {
    return find(master, name, length);
}

static struct store_key *find_word(struct master *master, const struct word *name) {
    return find(master, name->text, name->length);
}

static struct store_key *add(struct master *master, const struct word *name) {
    struct store_key *key = calloc(1, sizeof(*key) + name->length);
    if (key == NULL) {
        abort();
    }
    make_room(master);
    memcpy(key->name, name->text, name->length);
    key->name_length = name->length;
    key->db = master->db;
    key->hash = hash_of(master, name->text, name->length);
    key->expires_ms = -1;
    key->next = *bucket_of(master, key->hash);
    *bucket_of(master, key->hash) = key;
    master->key_count++;
    return key;
}

/* Worlds begin at 1000 s. */
#define LONG_MS 500000

static void put_marker(struct master *master, unsigned db, const struct master *of) {
    const struct word name = {REDLOCK_MARKER_KEY, strlen(REDLOCK_MARKER_KEY)};
    int64_t now_ms = master_now_ms(master);
    master->db = db;
    struct store_key *key = add(master, &name);
    key->value_length =
        (size_t)snprintf(key->value, sizeof(key->value), "%" PRId64 ":%" PRId64 ":%020u%020u",
                         (now_ms - LONG_MS) * 1000, (now_ms - 1) * 1000, of->index, of->run);
}

void master_seem_old(struct master *master, unsigned db) {
    master->started_ms = master_now_ms(master) - LONG_MS;
    put_marker(master, db, master);
}

void master_seem_another(struct master *master, unsigned db, const struct master *other) {
    put_marker(master, db, other);
}

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

/* ---- commands ---- */

static void put_value(struct store_key *key, const struct word *value, uint64_t command) {
    key->value_length = value->length < MASTER_VALUE_MAX ? value->length : MASTER_VALUE_MAX;
    memcpy(key->value, value->text, key->value_length);
    set_finish(&key->set);
    key->type = STORE_STRING;
    key->command = command;
}

/* SET key value [NX] [PX milliseconds] */
static struct reply run_set(struct master *master, const struct words *words) {
    bool only_new = false;
    long long ttl = 0;
    if (words->count < 3) {
        return error("ERR wrong number of arguments for 'set' command");
    }
    for (unsigned i = 3; i < words->count; i++) {
        if (word_is(&words->word[i], "NX")) {
            only_new = true;
        } else if (word_is(&words->word[i], "PX") && i + 1 < words->count) {
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
    struct store_key *key = find_word(master, &words->word[1]);
    if (key != NULL && only_new) {
        return nil();
    }
    key = key != NULL ? key : add(master, &words->word[1]);
    put_value(key, &words->word[2], master->commands);
    key->expires_ms = ttl > 0 ? master_now_ms(master) + ttl : -1;
    return status("OK");
}

static struct reply run_get(struct master *master, const struct words *words) {
    const struct store_key *key = find_word(master, &words->word[1]);
    if (key == NULL) {
        return nil();
    }
    if (key->type != STORE_STRING) {
        return wrong_type();
    }
    return (struct reply){.type = REPLY_STRING, .text = key->value, .length = key->value_length};
}

static struct reply run_del(struct master *master, const struct words *words) {
    unsigned dropped = 0;
    for (unsigned i = 1; i < words->count; i++) {
        struct store_key *key = find_word(master, &words->word[i]);
        if (key != NULL) {
            drop(master, key);
            dropped++;
        }
    }
    return integer(dropped);
}

static struct reply run_pttl(struct master *master, const struct words *words) {
    const struct store_key *key = find_word(master, &words->word[1]);
    if (key == NULL) {
        return integer(-2);
    }
    return integer(key->expires_ms < 0 ? -1 : key->expires_ms - master_now_ms(master));
}

static struct reply expire(struct master *master, const struct words *words, int64_t from_ms) {
    long long ms;
    if (words->count != 3 || !word_number(&words->word[2], &ms)) {
        return error("ERR value is not an integer or out of range");
    }
    struct store_key *key = find_word(master, &words->word[1]);
    if (key == NULL) {
        return integer(0);
    }
    if (from_ms + ms <= master_now_ms(master)) {
        drop(master, key);
    } else {
        key->expires_ms = from_ms + ms;
    }
    return integer(1);
}

static struct reply run_pexpire(struct master *master, const struct words *words) {
    return expire(master, words, master_now_ms(master));
}

static struct reply run_pexpireat(struct master *master, const struct words *words) {
    return expire(master, words, 0);
}

static struct reply run_lpush(struct master *master, const struct words *words) {
    struct store_key *key = find_word(master, &words->word[1]);
    if (key != NULL && key->type != STORE_LIST) {
        return wrong_type();
    }
    key = key != NULL ? key : add(master, &words->word[1]);
    key->type = STORE_LIST;
    key->command = master->commands;
    return integer(1);
}

/* ---- sorted sets ---- */

/*
 * Returns the set of a command. NULL when there is none; `refusal` is then the answer, if the key
 * is of another type.
 */
static struct store_key *find_set(struct master *master, const struct words *words,
                                  struct reply *refusal) {
    struct store_key *key = find_word(master, &words->word[1]);
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

/* ZADD key score member */
static struct reply run_zadd(struct master *master, const struct words *words) {
    struct reply refusal;
    int64_t score;
    struct store_key *key = find_set(master, words, &refusal);
    if (words->count != 4 || !read_score(&words->word[2], &score)) {
        return error("ERR value is not a valid float");
    }
    if (refusal.type == REPLY_ERROR) {
        return refusal;
    }
    key = key != NULL ? key : add(master, &words->word[1]);
    key->type = STORE_SET;
    return integer(set_put(&key->set, &words->word[3], score));
}

/* ZSCORE key member */
static struct reply run_zscore(struct master *master, const struct words *words) {
    struct reply refusal;
    const struct store_key *key = find_set(master, words, &refusal);
    const struct member *member = key != NULL ? set_find(&key->set, &words->word[2]) : NULL;
    if (member == NULL) {
        return refusal.type == REPLY_ERROR ? refusal : nil();
    }
    int length = snprintf(master->text, sizeof(master->text), "%" PRId64, member->score);
    return (struct reply){.type = REPLY_STRING, .text = master->text, .length = (size_t)length};
}

/* Removes a set without members, as Redis does. */
static struct reply has_lost(struct master *master, const struct words *words, unsigned count) {
    if (find_word(master, &words->word[1])->set.count == 0) {
        run_del(master, &(struct words){.count = 2, .word[1] = words->word[1]});
    }
    return integer(count);
}

/* ZREM key member */
static struct reply run_zrem(struct master *master, const struct words *words) {
    struct reply refusal;
    struct store_key *key = find_set(master, words, &refusal);
    return key == NULL ? refusal : has_lost(master, words, set_remove(&key->set, &words->word[2]));
}

/* ZREMRANGEBYSCORE key -inf most */
static struct reply run_zremrangebyscore(struct master *master, const struct words *words) {
    struct reply refusal;
    int64_t most;
    struct store_key *key = find_set(master, words, &refusal);
    if (!word_is(&words->word[2], "-inf") || !read_score(&words->word[3], &most)) {
        return error("ERR min or max is not a float");
    }
    return key == NULL ? refusal : has_lost(master, words, set_remove_up_to(&key->set, most));
}

/* ZCOUNT key least +inf */
static struct reply run_zcount(struct master *master, const struct words *words) {
    struct reply refusal;
    int64_t least;
    const struct store_key *key = find_set(master, words, &refusal);
    if (!read_score(&words->word[2], &least) || !word_is(&words->word[3], "+inf")) {
        return error("ERR min or max is not a float");
    }
    return key == NULL ? refusal : integer(set_count_from(&key->set, least));
}

static struct reply run_ok(struct master *master, const struct words *words) {
    (void)master;
    (void)words;
    return status("OK");
}

/* SELECT db */
static struct reply run_select(struct master *master, const struct words *words) {
    long long db;
    if (!word_number(&words->word[1], &db) || db < 0 || db > 15) {
        return error("ERR DB index is out of range");
    }
    master->db = (unsigned)db;
    return status("OK");
}

/* Answers WAIT: its replicas have confirmed everything, or are away. */
static struct reply run_wait(struct master *master, const struct words *words) {
    (void)words;
    return integer(master->replicas);
}

/* Answers INFO section: only the fields that clients read. */
static struct reply run_info(struct master *master, const struct words *words) {
    (void)words;
    int length = snprintf(master->text, sizeof(master->text),
                          "# All\r\nrun_id:%020u%020u\r\nuptime_in_seconds:%" PRId64
                          "\r\nrole:master\r\nmaxmemory_policy:noeviction\r\n",
                          master->index, master->run,
                          master_now_ms(master) / 1000 - master->started_ms / 1000);
    return (struct reply){.type = REPLY_STRING, .text = master->text, .length = (size_t)length};
}

/* Answers INFO inside a script, which some servers, and ACLs, refuse. */
static struct reply run_info_of_script(struct master *master, const struct words *words) {
    return master->is_reticent ? error("ERR This Redis command is not allowed from script")
                               : run_info(master, words);
}

static struct reply run_ping(struct master *master, const struct words *words) {
    (void)master;
    (void)words;
    return status("PONG");
}

/* ---- scripts ---- */

/* Returns the library's script of this text, or of this SHA-1; SCRIPT_COUNT when there is none. */
static unsigned script_of(const struct word *word, const char *(*mark)(enum script script)) {
    unsigned i = 0;
    while (i < SCRIPT_COUNT && !word_is(word, mark((enum script)i))) {
        i++;
    }
    return i;
}

static struct reply run_script(struct master *master, const struct words *words) {
    if (words->count == 2 && word_is(&words->word[1], "FLUSH")) {
        master->scripts = 0;
        return status("OK");
    }
    if (words->count != 3 || !word_is(&words->word[1], "LOAD")) {
        return syntax_error();
    }
    unsigned script = script_of(&words->word[2], script_text);
    if (script == SCRIPT_COUNT) {
        return error("ERR the simulated master knows the library's scripts only");
    }
    master->scripts |= UINT32_C(1) << script;
    const char *sha = script_sha((enum script)script);
    return (struct reply){.type = REPLY_STRING, .text = sha, .length = strlen(sha)};
}

static struct reply call(struct master *master, unsigned script, const struct words *words) {
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
    return scripting_run(master, (enum script)script, words, (unsigned)keys);
}

static struct reply run_evalsha(struct master *master, const struct words *words) {
    unsigned script = words->count > 1 ? script_of(&words->word[1], script_sha) : SCRIPT_COUNT;
    if (script == SCRIPT_COUNT || !(master->scripts & UINT32_C(1) << script)) {
        return error("NOSCRIPT No matching script. Please use EVAL.");
    }
    return call(master, script, words);
}

static struct reply run_eval(struct master *master, const struct words *words) {
    unsigned script = words->count > 1 ? script_of(&words->word[1], script_text) : SCRIPT_COUNT;
    if (script == SCRIPT_COUNT) {
        return error("ERR the simulated master knows the library's scripts only");
    }
    master->scripts |= UINT32_C(1) << script;
    return call(master, script, words);
}

/* ---- the table of commands ---- */

struct reply master_run(struct master *master, const struct words *words) {
    static const struct {
        const char *name, *from_script;
        unsigned least_words;
        struct reply (*run)(struct master *master, const struct words *words);
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
        {"ZREMRANGEBYSCORE", "zremrangebyscore", 4, run_zremrangebyscore},
        {"ZCOUNT", "zcount", 4, run_zcount},
        {"WAIT", NULL, 3, run_wait},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        if (word_is(&words->word[0], table[i].name) ||
            (table[i].from_script != NULL && word_is(&words->word[0], table[i].from_script))) {
            return words->count < table[i].least_words ? error("ERR wrong number of arguments")
                                                       : table[i].run(master, words);
        }
    }
    return error("ERR unknown command");
}
