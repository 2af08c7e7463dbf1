#include "wait_queue.h"

#include "master_data.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>

#define NOW_MS "local t = redis.call('time') local now = t[1] * 1000 + math.floor(t[2] / 1000) "

#define LISTENING                                                                                  \
    "local count = 0 "                                                                             \
    "for _, entry in ipairs(redis.call('zrange', KEYS[1], 0, -1)) do "                             \
    "local channel = string.match(entry, '^%S+ (%S+)') "                                           \
    "count = count + redis.call('pubsub', 'numsub', channel)[2] end return count"

redlock_request waiting_request(const char *key) {
    redlock_request request = request_for(key, LONG_TTL_MS);

    request.wait_ms = REDLOCK_FOREVER;
    request.watchdog = true;
    return request;
}

redlock_request waiting_request_of(const char *key, redlock_mode mode, uint32_t permits) {
    redlock_request request = waiting_request(key);

    request.mode = mode;
    request.permits = permits;
    return request;
}

void put_ghosts(struct fixture *f, const char *key, size_t count, char form, const char *channel,
                unsigned reservation_ms) {
    const char *script = "for i = 1, ARGV[1] do redis.call('zadd', KEYS[1], i, "
                         "string.format('%040d %s %s %s 0', i, ARGV[2], ARGV[3], ARGV[4])) end "
                         "return redis.call('zcard', KEYS[1])";
    char name[2] = {form, '\0'};

    for (size_t i = 0; i < masters_count(f->masters); i++) {
        assert_int_in_range(masters_query_integer(f->masters, i, "EVAL %s 1 %s::queue %d %s %d %s",
                                                  script, key, (int)count, channel,
                                                  (int)reservation_ms, name),
                            count, count + 10);
    }
}

static void end_eavesdropping(void *context) {
    redisFree(context);
}

void eavesdrop(struct fixture *f, const char *command) {
    for (size_t i = 0; i < masters_count(f->masters); i++) {
        redisContext *context = redisConnect("127.0.0.1", masters_port(f->masters, i));

        assert_non_null(context);
        at_finish(f, end_eavesdropping, context);
        redisReply *reply = redisCommand(context, command);
        assert_non_null(reply);
        freeReplyObject(reply);
    }
}

static bool is_away(const struct fixture *f, size_t master) {
    return masters_pid(f->masters, master) == 0 || (f->frozen & (1u << master)) != 0;
}

/*
 * Returns whether the release of a lock is the 1 of 128 that leaves the key to anybody, judged by
 * its token at a master that has it.
 */
static bool is_left_to_anybody(struct fixture *f, const redlock_lock *lock) {
    const char *token = NULL;
    size_t length;

    for (size_t i = 0; token == NULL && i < masters_count(f->masters); i++) {
        token = value_at(f, i, redlock_key(lock, &length));
    }
    assert_non_null(token);
    return strtoul(token + 38, NULL, 16) < 2;
}

/* Holds a lock whose release leaves the key to anybody, or to waiters alone. */
static redlock_lock *hold_to_leave(struct fixture *f, redlock_client *client,
                                   const redlock_request *request, bool to_anybody) {
    redlock_lock *lock = hold_for(f, client, request);

    while (is_left_to_anybody(f, lock) != to_anybody) {
        assert_int_equal(let_go(f, lock), REDLOCK_OK);
        lock = hold_for(f, client, request);
    }
    return lock;
}

redlock_lock *hold_for_waiters(struct fixture *f, redlock_client *client,
                               const redlock_request *request) {
    return hold_to_leave(f, client, request, false);
}

redlock_lock *hold_for_anybody(struct fixture *f, redlock_client *client,
                               const redlock_request *request) {
    return hold_to_leave(f, client, request, true);
}

struct expected {
    struct fixture *f;
    const char *key;
    long long (*count)(struct fixture *f, size_t master, const char *key);
    size_t from; /* the first master */
    long long wanted;
};

static bool is_at_all(void *arg) {
    const struct expected *expected = arg;

    for (size_t i = expected->from; i < masters_count(expected->f->masters); i++) {
        if (!is_away(expected->f, i) &&
            expected->count(expected->f, i, expected->key) != expected->wanted) {
            return false;
        }
    }
    return true;
}

long long waiters_at(struct fixture *f, size_t master, const char *key) {
    return masters_query_integer(f->masters, master, "ZCOUNT %s::queue 1 +inf", key);
}

void wait_in_queue(struct fixture *f, const char *key, long long length) {
    struct expected expected = {f, key, waiters_at, 0, length};
    char what[80];

    snprintf(what, sizeof(what), "each master has %lld waiters", length);
    run_until(f, is_at_all, &expected, what);
}

static long long listening(struct fixture *f, size_t master, const char *key) {
    return masters_query_integer(f->masters, master, "EVAL %s 1 %s::queue", LISTENING, key);
}

void wait_listening(struct fixture *f, const char *key, size_t from, long long count) {
    struct expected expected = {f, key, listening, from, count};
    char what[80];

    snprintf(what, sizeof(what), "each master has %lld waiters who listen", count);
    run_until(f, is_at_all, &expected, what);
}

void take_turn(struct fixture *f, struct call *call) {
    assert_int_equal(await(f, call), REDLOCK_OK);
    assert_int_equal(let_go(f, call->lock), REDLOCK_OK);
}

void take_turns(struct fixture *f, redlock_lock *lock, struct call *const *calls, size_t count) {
    let_go(f, lock);
    for (size_t i = 0; i < count; i++) {
        await(f, calls[i]);
        assert_ended(calls[i], REDLOCK_OK);
        for (size_t k = i + 1; k < count; k++) {
            assert_int_equal(calls[k]->ended, 0);
        }
        assert_int_equal(let_go(f, calls[i]->lock), REDLOCK_OK);
    }
}

void wait_queue_empty(struct fixture *f, const char *key) {
    wait_in_queue(f, key, 0);
    wait_holders(f, key, 0);
}

long long clock_at(struct fixture *f, size_t master) {
    return masters_query_integer(f->masters, master, "EVAL %s 0", NOW_MS "return now");
}

long long expiry_at(struct fixture *f, size_t master, const char *key) {
    const char *script = NOW_MS "local left = redis.call('pttl', KEYS[1]) "
                                "return left > 0 and now + left or 0";

    return masters_query_integer(f->masters, master, "EVAL %s 1 %s", script, key);
}

char *first_channel(struct fixture *f, size_t master, const char *key) {
    const char *script = "local first = redis.call('zrange', KEYS[1], 0, 0)[1] "
                         "return first and string.match(first, '^%S+ (%S+)')";

    return masters_query(f->masters, master, "EVAL %s 1 %s::queue", script, key);
}

struct asked {
    struct fixture *f;
    size_t times; /* that the master has executed ZADD, in all */
};

static bool has_asked(void *arg) {
    const struct asked *asked = arg;

    return executed(asked->f, 0, "zadd") >= asked->times;
}

void pass_polls(struct fixture *f, redlock_client *client) {
    struct asked asked = {f, executed(f, 0, "zadd") + 6}; /* an entry takes three at most */
    size_t taken = executed(f, 0, "set");

    pass_until(f, client, 0, 200, has_asked, &asked, "the waiter has asked twice");
    wait_all_answered(f, client);
    assert_int_equal(executed(f, 0, "set"), taken);
}
