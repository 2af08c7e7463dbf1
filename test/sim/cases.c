/*
 * Sends commands to a simulated and to a real master, and compares their answers, so that the
 * simulation cannot drift from Redis. A case is one list of commands, on keys of its own.
 *
 * Answers that contain a remaining TTL may differ by the time that the real server took.
 */
#include "cases.h"

#include "master.h"

#include "masters.h"
#include "wire/script.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>

/* Maximum time, in ms, that a real server may take for a case. */
#define SLACK_MS 60000

/* ---- one step ---- */

static const char *text_of(const char *word) {
    static const struct {
        const char *text, *sha;
        enum script script;
    } marks[] = {{RELEASE_TEXT, RELEASE_SHA, SCRIPT_RELEASE},
                 {RENEW_TEXT, RENEW_SHA, SCRIPT_RENEW},
                 {STAY_TEXT, STAY_SHA, SCRIPT_STAY},
                 {TAKE_TEXT, TAKE_SHA, SCRIPT_TAKE},
                 {KEEP_TEXT, KEEP_SHA, SCRIPT_RENEW_FENCED},
                 {PERMIT_TEXT, PERMIT_SHA, SCRIPT_PERMIT},
                 {SHARE_TEXT, SHARE_SHA, SCRIPT_SHARE},
                 {SHARE_KEEP_TEXT, SHARE_KEEP_SHA, SCRIPT_SHARE_RENEW},
                 {SHARE_END_TEXT, SHARE_END_SHA, SCRIPT_SHARE_RELEASE},
                 {WRITE_TEXT, WRITE_SHA, SCRIPT_WRITE},
                 {WRITE_FENCED_TEXT, WRITE_FENCED_SHA, SCRIPT_WRITE_FENCED},
                 {BEAT_TEXT, BEAT_SHA, SCRIPT_BEAT},
                 {PROBE_TEXT, PROBE_SHA, SCRIPT_PROBE},
                 {QUEUE_TEXT, QUEUE_SHA, SCRIPT_QUEUE},
                 {QUEUE_SET_TEXT, QUEUE_SET_SHA, SCRIPT_QUEUE_SET},
                 {LEAVE_TEXT, LEAVE_SHA, SCRIPT_LEAVE},
                 {SHARE_QUEUE_TEXT, SHARE_QUEUE_SHA, SCRIPT_SHARE_QUEUE},
                 {SHARE_LEAVE_TEXT, SHARE_LEAVE_SHA, SCRIPT_SHARE_LEAVE},
                 {QUEUE_PERMIT_TEXT, QUEUE_PERMIT_SHA, SCRIPT_QUEUE_PERMIT},
                 {PERMIT_END_TEXT, PERMIT_END_SHA, SCRIPT_PERMIT_RELEASE},
                 {PASS_TEXT, PASS_SHA, SCRIPT_PASS}};
    for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
        if (strcmp(word, marks[i].text) == 0) {
            return script_text(marks[i].script);
        }
        if (strcmp(word, marks[i].sha) == 0) {
            return script_sha(marks[i].script);
        }
    }
    return word;
}

static unsigned count_words(const char *const *step) {
    unsigned count = 0;
    while (count < WORDS_OF_STEP_MAX && step[count] != NULL) {
        count++;
    }
    return count;
}

static struct reply ask_simulated(struct master *master, const char *const *step) {
    struct words words = {.count = count_words(step)};
    for (unsigned i = 0; i < words.count; i++) {
        words.word[i].text = text_of(step[i]);
        words.word[i].length = strlen(words.word[i].text);
    }
    master->store.commands++;
    return master_run(master, &words);
}

static redisReply *ask_real(redisContext *real, const char *const *step) {
    const char *words[WORDS_OF_STEP_MAX];
    unsigned count = count_words(step);
    for (unsigned i = 0; i < count; i++) {
        words[i] = text_of(step[i]);
    }
    redisReply *reply = redisCommandArgv(real, (int)count, words, NULL);
    if (reply == NULL) {
        fprintf(stderr, "the real server does not answer: %s\n", real->errstr);
        exit(1);
    }
    return reply;
}

static void wait_until_expired(struct master *master, redisContext *real, const char *key) {
    const struct store_key *simulated = master_find(master, key, strlen(key));
    int64_t left_ms = simulated != NULL ? simulated->expires_ms - master_now_ms(master) : 0;
    bool is_there = true;
    master->world->now += (uint64_t)(left_ms > 10 ? left_ms : 10) * MS;
    while (is_there) {
        redisReply *reply = redisCommand(real, "EXISTS %s", key);
        is_there = reply != NULL && reply->integer != 0;
        freeReplyObject(reply);
    }
}

/*
 * Puts unknown waiters at the front of both masters' queue of a key, or, for "<semaphore>:", of the
 * queue for its permits: {CROWD, key, number, channel, form}.
 */
static void crowd(struct master *master, redisContext *real, const char *const *step) {
    unsigned count = (unsigned)strtoul(step[2], NULL, 10);
    char queue[64], ticket[16], entry[128];
    bool is_permits = step[1][strlen(step[1]) - 1] == ':'; /* the queue is that for permits */
    snprintf(queue, sizeof(queue), is_permits ? "%s:permits" : "%s" QUEUE_SUFFIX, step[1]);
    for (unsigned i = 1; i <= count; i++) {
        snprintf(ticket, sizeof(ticket), "%u", i);
        snprintf(entry, sizeof(entry), "%040u %s " LONG " %s 1", i, step[3], step[4]);
        const char *const add[WORDS_OF_STEP_MAX] = {"ZADD", queue, ticket, entry};
        ask_simulated(master, add);
        freeReplyObject(ask_real(real, add));
    }
}

/* ---- messages ---- */

#define MESSAGES_MAX 64
#define MESSAGE_SIZE 512

/* The messages that one step sends to the subscribed channel. */
struct messages {
    char text[MESSAGES_MAX][MESSAGE_SIZE];
    unsigned count;
};

static struct messages simulated_messages;

static void record_message(struct messages *messages, const char *text, size_t length) {
    if (messages->count == MESSAGES_MAX || length >= MESSAGE_SIZE) {
        fprintf(stderr, "more messages than a step may have\n");
        exit(1);
    }
    memcpy(messages->text[messages->count], text, length);
    messages->text[messages->count++][length] = '\0';
}

/* Receives what the simulated master publishes. */
static unsigned hear(const void *owner, const struct word *channel, const struct word *text) {
    (void)owner;
    if (!word_is(channel, HEARD)) {
        return 1; /* the subscriber by pattern */
    }
    record_message(&simulated_messages, text->text, text->length);
    return 2;
}

static unsigned subscribers(const void *owner, const struct word *channel) {
    (void)owner;
    return word_is(channel, HEARD);
}

static redisReply *ask_listener(redisContext *listener, const char *command) {
    redisReply *reply = redisCommand(listener, command);
    if (reply == NULL) {
        fprintf(stderr, "the real server does not answer who listens: %s\n", listener->errstr);
        exit(1);
    }
    return reply;
}

/* Reads all messages that the real server has sent: its answer to PING comes after them. */
static void listen(redisContext *listener, struct messages *messages) {
    redisReply *reply = ask_listener(listener, "PING");
    messages->count = 0;
    while (reply->type == REDIS_REPLY_ARRAY && reply->elements == 3) {
        record_message(messages, reply->element[2]->str, reply->element[2]->len);
        freeReplyObject(reply);
        reply = NULL;
        if (redisGetReply(listener, (void **)&reply) != REDIS_OK) {
            fprintf(stderr, "the real server sends no messages: %s\n", listener->errstr);
            exit(1);
        }
    }
    freeReplyObject(reply);
}

/* ---- comparing ---- */

/* Returns whether two times in ms differ by no more than the real server's working time. */
static bool is_about(long long simulated, long long real) {
    return simulated == real ||
           (simulated > SLACK_MS && real <= simulated && real > simulated - SLACK_MS);
}

static bool texts_match(const char *simulated, const char *real) {
    while (*simulated != '\0' && *real != '\0') {
        if (*simulated >= '0' && *simulated <= '9' && *real >= '0' && *real <= '9') {
            char *simulated_end, *real_end;
            if (!is_about(strtoll(simulated, &simulated_end, 10), strtoll(real, &real_end, 10))) {
                return false;
            }
            simulated = simulated_end;
            real = real_end;
        } else if (*simulated++ != *real++) {
            return false;
        }
    }
    return *simulated == *real;
}

/* Returns the message without its expiry and the clock of its server. */
static const char *without_times(const char *message) {
    const char *blank = strchr(message, ' ');
    const char *second = blank != NULL ? strchr(blank + 1, ' ') : NULL;
    return second != NULL ? second : message;
}

/* Compares messages: clocks differ, but an expiry of 0 must be 0 in both. */
static bool messages_match(const struct messages *simulated, const struct messages *real) {
    bool good = simulated->count == real->count;
    for (unsigned i = 0; good && i < real->count; i++) {
        const char *one = simulated->text[i], *other = real->text[i];
        good = (strncmp(one, "0 ", 2) == 0) == (strncmp(other, "0 ", 2) == 0) &&
               texts_match(without_times(one), without_times(other));
    }
    return good;
}

/* Compares the first words of two errors: the rest differs between versions. */
static bool errors_match(const char *simulated, const char *real) {
    size_t length = strcspn(simulated, " ");
    return length == strcspn(real, " ") && memcmp(simulated, real, length) == 0;
}

static bool matches(const struct reply *simulated, const redisReply *real) {
    switch (simulated->type) {
    case REPLY_STATUS:
        return real->type == REDIS_REPLY_STATUS && strcmp(simulated->text, real->str) == 0;
    case REPLY_ERROR:
        return real->type == REDIS_REPLY_ERROR && errors_match(simulated->text, real->str);
    case REPLY_INTEGER:
        return real->type == REDIS_REPLY_INTEGER && is_about(simulated->integer, real->integer);
    case REPLY_NIL:
        return real->type == REDIS_REPLY_NIL;
    case REPLY_STRING: {
        char text[STORE_TEXT_MAX + 1];
        memcpy(text, simulated->text, simulated->length);
        text[simulated->length] = '\0';
        return real->type == REDIS_REPLY_STRING && texts_match(text, real->str);
    }
    }
    return false;
}

/*
 * Compares the answers to two heartbeats. Clocks differ, but both markers must agree on being new
 * and on being just confirmed.
 */
static bool beats_match(const struct reply *simulated, const redisReply *real) {
    struct reply other = {.type = REPLY_STRING, .text = real->str, .length = real->len};
    struct reply_beat a, b;
    return real->type == REDIS_REPLY_STRING && reply_to_beat(simulated, &a) &&
           reply_to_beat(&other, &b) && (a.age_us == 0) == (b.age_us == 0) &&
           (a.last_us == a.time_us) == (b.last_us == b.time_us);
}

static bool is_beat(const char *const *step) {
    return step[1] != NULL && (strcmp(step[1], BEAT_TEXT) == 0 || strcmp(step[1], BEAT_SHA) == 0);
}

static void complain(const struct test_case *test, unsigned step, const struct reply *simulated,
                     const redisReply *real) {
    printf("# %s, step %u (%s): the simulated master says %d %.*s (%lld), the real one %d %s "
           "(%lld)\n",
           test->name, step + 1, test->steps[step][0], (int)simulated->type, (int)simulated->length,
           simulated->text != NULL ? simulated->text : "", (long long)simulated->integer,
           real->type, real->str != NULL ? real->str : "", real->integer);
}

static void complain_of_messages(const struct test_case *test, unsigned step,
                                 const struct messages *real) {
    printf("# %s, step %u (%s): other messages\n", test->name, step + 1, test->steps[step][1]);
    for (unsigned i = 0; i < simulated_messages.count; i++) {
        printf("#   simulated: %s\n", simulated_messages.text[i]);
    }
    for (unsigned i = 0; i < real->count; i++) {
        printf("#   real: %s\n", real->text[i]);
    }
}

/* The real server's connections: for commands, with a subscription by name, with one by pattern. */
struct real {
    redisContext *server, *listener, *eavesdropper;
};

/*
 * Runs a command at both masters. Returns whether their answers and messages agree; reports whether
 * the call stopped at its bound.
 */
static bool run_words(const struct test_case *test, unsigned step, const char *const *words,
                      struct master *master, const struct real *real, bool *has_stopped) {
    struct messages heard;
    simulated_messages.count = 0;
    struct reply simulated = ask_simulated(master, words);
    *has_stopped = simulated.type == REPLY_STRING && reply_is_unfinished(&simulated);
    redisReply *reply = ask_real(real->server, words);
    bool is_good = is_beat(words) && simulated.type == REPLY_STRING ? beats_match(&simulated, reply)
                                                                    : matches(&simulated, reply);
    if (!is_good) {
        complain(test, step, &simulated, reply);
    }
    freeReplyObject(reply);
    listen(real->listener, &heard);
    if (!messages_match(&simulated_messages, &heard)) {
        complain_of_messages(test, step, &heard);
        is_good = false;
    }
    return is_good;
}

static bool run_step(const struct test_case *test, unsigned step, struct master *master,
                     const struct real *real) {
    bool has_stopped;
    return run_words(test, step, test->steps[step], master, real, &has_stopped);
}

/* Sends PASS until no call stops at its bound: {PASS_ON, key, form, maximum number of calls}. */
static bool pass_on(const struct test_case *test, unsigned step, struct master *master,
                    const struct real *real) {
    const char *const *words = test->steps[step];
    const char *const pass[WORDS_OF_STEP_MAX] = {"EVAL", PASS_TEXT, "1", words[1], words[2]};
    unsigned long left = strtoul(words[3], NULL, 10);
    bool good = true, has_stopped = true;
    while (good && has_stopped && left-- > 0) {
        good = run_words(test, step, pass, master, real, &has_stopped);
    }
    if (has_stopped) {
        printf("# %s, step %u: more calls than %s\n", test->name, step + 1, words[3]);
    }
    return good && !has_stopped;
}

static bool run_case(const struct test_case *test, const struct real *real) {
    static struct world world;
    struct master master;
    bool good = true;
    world_init(&world, 1, NULL);
    master_init(&master, &world, 0);
    master.store.publish = hear;
    master.store.subscribers = subscribers;
    freeReplyObject(redisCommand(real->server, "FLUSHALL"));
    freeReplyObject(redisCommand(real->server, "SCRIPT FLUSH"));
    for (unsigned i = 0; i < STEPS_MAX && test->steps[i][0] != NULL; i++) {
        if (strcmp(test->steps[i][0], EXPIRE) == 0) {
            wait_until_expired(&master, real->server, test->steps[i][1]);
        } else if (strcmp(test->steps[i][0], CROWD) == 0) {
            crowd(&master, real->server, test->steps[i]);
        } else if (strcmp(test->steps[i][0], PASS_ON) == 0) {
            good = pass_on(test, i, &master, real) && good;
        } else {
            good = run_step(test, i, &master, real) && good;
        }
    }
    master_finish(&master);
    world_finish(&world);
    return good;
}

static redisContext *connect_to(const struct masters *masters) {
    redisContext *context = redisConnect("127.0.0.1", masters_port(masters, 0));
    if (context == NULL || context->err != 0) {
        fprintf(stderr, "the real server cannot be reached\n");
        exit(1);
    }
    return context;
}

/* Runs cases, the first of which has the number `first`. Returns whether all passed. */
static bool run_cases(const struct test_case *tests, size_t count, size_t first,
                      const struct real *real) {
    bool good = true;
    for (size_t i = 0; i < count; i++) {
        bool passed = run_case(&tests[i], real);
        printf("%sok %zu - %s\n", passed ? "" : "not ", first + i, tests[i].name);
        good = good && passed;
    }
    return good;
}

int main(void) {
    struct masters *masters = masters_start(1, NULL);
    struct real real = {connect_to(masters), connect_to(masters), connect_to(masters)};
    freeReplyObject(ask_listener(real.listener, "SUBSCRIBE " HEARD));
    freeReplyObject(ask_listener(real.eavesdropper, "PSUBSCRIBE *"));
    printf("1..%zu\n", lock_case_count + queue_case_count);
    bool good = run_cases(lock_cases, lock_case_count, 1, &real);
    good = run_cases(queue_cases, queue_case_count, lock_case_count + 1, &real) && good;
    redisFree(real.server);
    redisFree(real.listener);
    redisFree(real.eavesdropper);
    masters_finish(masters);
    return good ? 0 : 1;
}
