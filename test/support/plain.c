#include "plain.h"

#include <event2/event.h>
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>

#define SEED UINT64_C(0x9e3779b97f4a7c15)
#define COMPARE_AND_DELETE                                                                         \
    "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0"

struct plain {
    struct plain_options options;
    struct event *timer;
    redisContext *masters[REDLOCK_MAX_NODES];
    size_t count;
    char value[40]; /* value of this try, or of the key that is held */
    uint64_t random;
    size_t tries, turns;
    bool holds;
};

/* Returns whether the master answered that the command was carried out. */
static bool is_done(redisReply *reply) {
    assert_non_null(reply);
    assert_int_not_equal(reply->type, REDIS_REPLY_ERROR);
    bool done = reply->type == REDIS_REPLY_STATUS || reply->integer == 1;
    freeReplyObject(reply);
    return done;
}

static size_t take(struct plain *plain) {
    const struct plain_options *options = &plain->options;
    size_t granted = 0;

    snprintf(plain->value, sizeof(plain->value), "plain-%p-%zu", (void *)plain, ++plain->tries);
    for (size_t i = 0; i < plain->count; i++) {
        granted += is_done(redisCommand(plain->masters[i], "SET %s %s NX PX %llu", options->key,
                                        plain->value, (unsigned long long)options->ttl_ms));
    }
    return granted;
}

static void give_back(struct plain *plain) {
    for (size_t i = 0; i < plain->count; i++) {
        is_done(redisCommand(plain->masters[i], "EVAL %s 1 %s %s", COMPARE_AND_DELETE,
                             plain->options.key, plain->value));
    }
}

static void come_in(struct plain *plain) {
    plain->holds = true;
    plain->turns++;
    if (plain->options.on_in != NULL) {
        plain->options.on_in(plain->options.arg);
    }
}

static void go_out(struct plain *plain) {
    plain->holds = false;
    if (plain->options.on_out != NULL) {
        plain->options.on_out(plain->options.arg);
    }
    give_back(plain);
}

/* Sets the timer to a random instant in the second half of the delay. */
static void wait_for_next(struct plain *plain) {
    uint64_t delay_us = plain->options.poll_ms * UINT64_C(1000);

    plain->random = plain->random * UINT64_C(6364136223846793005) + 1442695040888963407;
    delay_us -= (plain->random >> 33) % (delay_us / 2 + 1);
    event_add(plain->timer, &(struct timeval){.tv_sec = (time_t)(delay_us / 1000000),
                                              .tv_usec = (int)(delay_us % 1000000)});
}

static void on_timer(evutil_socket_t fd, short what, void *arg) {
    struct plain *plain = arg;

    (void)fd;
    (void)what;
    if (plain->holds && plain->options.stays) {
        return;
    }
    if (plain->holds) {
        go_out(plain);
    } else if (take(plain) > plain->count / 2) {
        come_in(plain);
    } else {
        give_back(plain);
    }
    wait_for_next(plain);
}

static void destroy(void *object) {
    struct plain *plain = object;

    plain_end(plain);
    for (size_t i = 0; i < plain->count; i++) {
        redisFree(plain->masters[i]);
    }
    event_free(plain->timer);
    free(plain);
}

struct plain *plain_begin(struct fixture *f, const struct plain_options *options) {
    struct plain *plain = calloc(1, sizeof(*plain));

    assert_non_null(plain);
    plain->options = *options;
    plain->random = SEED;
    plain->timer = event_new(f->base, -1, 0, on_timer, plain);
    assert_non_null(plain->timer);
    for (; plain->count < masters_count(f->masters); plain->count++) {
        redisContext *context = redisConnect("127.0.0.1", masters_port(f->masters, plain->count));

        assert_non_null(context);
        assert_int_equal(context->err, 0);
        plain->masters[plain->count] = context;
    }
    at_finish(f, destroy, plain);
    wait_for_next(plain);
    return plain;
}

void plain_end(struct plain *plain) {
    if (plain->holds) {
        go_out(plain);
    }
    event_del(plain->timer);
}

size_t plain_turns(const struct plain *plain) {
    return plain->turns;
}

struct turns {
    const struct plain *plain;
    size_t wanted;
};

static bool has_had_turns(void *arg) {
    const struct turns *turns = arg;

    return turns->plain->turns >= turns->wanted;
}

void wait_plain_turns(struct fixture *f, const struct plain *plain, size_t count) {
    struct turns turns = {plain, count};

    run_until(f, has_had_turns, &turns, "the plain client has had its turns");
}
