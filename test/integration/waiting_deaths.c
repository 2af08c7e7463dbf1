/*
 * Processes that die or hang in the queue, when they are granted the lock, or while they hold it:
 * the next waiter has the lock at once, after the reservation of 1 s, or after the TTL.
 *
 * Bounds are lower ones, checked by the clocks of the masters. A stopped process is granted a lock,
 * and never reads the messages.
 */
#include "clocks.h"
#include "crew.h"
#include "harness.h"
#include "master_data.h"
#include "wait_queue.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define KEY "orders:42"
#define FIVE 5
#define QUORUM 3
#define RESERVATION_MS 1000
#define SHORT_TTL_MS 4000
#define BRIEF_TTL_MS 200 /* the reservation is as long, so that hangs are detected soon */

/* Memory shared with the process that is to die. */
struct stage {
    uint64_t ttl_ms;
    atomic_bool holds;
};

static bool is_never(void *arg) {
    (void)arg;
    return false;
}

/* Waits for the lock, and keeps it until the process is killed. */
static int run_mortal(size_t member, void *memory, char **uris, size_t count) {
    struct stage *stage = memory;
    void *state = NULL;

    (void)member;
    if (start_fixture(&state, 0, NULL) != 0) {
        return EXIT_FAILURE;
    }
    redlock_options options = patient_options(state, (const char *const *)uris, count);
    redlock_request request = waiting_request(KEY);
    request.ttl_ms = stage->ttl_ms;
    options.log_level = REDLOCK_LOG_WARN;
    redlock_client *client = connect_with(state, &options);
    assert_int_equal(await(state, begin_acquire(state, client, &request)), REDLOCK_OK);
    stage->holds = true;
    run_until(state, is_never, NULL, "the process is killed");
    return EXIT_FAILURE;
}

/* Starts processes that are to die, which waits for the key or finds it free. */
static struct crew *start_mortals(struct fixture *f, size_t count, uint64_t ttl_ms) {
    struct crew *crew = crew_create(f, sizeof(struct stage));
    struct stage *stage = crew->memory;

    stage->ttl_ms = ttl_ms;
    crew_start(crew, count);
    return crew;
}

static struct crew *start_mortal(struct fixture *f, uint64_t ttl_ms) {
    return start_mortals(f, 1, ttl_ms);
}

/* Stops the processes, and waits until they no longer run. */
static void stop_mortals(const struct crew *crew) {
    for (size_t i = 0; i < crew->members; i++) {
        int result;

        assert_int_equal(kill(crew->pids[i], SIGSTOP), 0);
        assert_int_equal(waitpid(crew->pids[i], &result, WUNTRACED), crew->pids[i]);
        assert_true(WIFSTOPPED(result));
    }
}

static bool has_ended(void *arg) {
    const struct call *call = arg;

    return call->ended > 0;
}

/*
 * Awaits an acquisition by a client that asks much more often than it would by the masters' clocks.
 */
static void await_eagerly(struct fixture *f, redlock_client *client, struct call *call) {
    pass_until(f, client, 0, 250, has_ended, call, "the next waiter has the lock");
    assert_ended(call, REDLOCK_OK);
}

/*
 * The maximum of script calls at a master until a waiter has a key that has come free: few polls.
 */
#define CALLS_MOST 60

/* Awaits an acquisition: eagerly, or by a client that asks at its usual intervals. */
static void await_next(struct fixture *f, redlock_client *client, struct call *call) {
    const bool *is_eager = f->row;
    size_t before = executed(f, 0, "evalsha");

    if (*is_eager) {
        await_eagerly(f, client, call);
        return;
    }
    assert_int_equal(await(f, call), REDLOCK_OK);
    assert_int_in_range(executed(f, 0, "evalsha") - before, 1, CALLS_MOST);
}

/* Asserts that at a quorum of masters these instants, by the masters' clocks, are over. */
static void assert_over(struct fixture *f, const long long *instants) {
    unsigned over = 0;

    for (size_t i = 0; i < FIVE; i++) {
        over += clock_at(f, i) >= instants[i];
    }
    assert_int_in_range(over, QUORUM, FIVE);
}

static bool holds(void *arg) {
    const struct stage *stage = arg;

    return stage->holds;
}

/* The key is passed to a process that is killed: the dead waiter keeps it for the reservation. */
static void one_that_was_granted_delays_the_next_by_a_reservation(void **state) {
    struct fixture *f = *state;
    redlock_request request = waiting_request(KEY);
    redlock_client *client = connect_client(f);
    redlock_lock *lock = hold(f, connect_client(f), KEY, LONG_TTL_MS);
    long long reserved_until[FIVE];
    struct crew *crew;

    crew = start_mortal(f, LONG_TTL_MS);
    wait_in_queue(f, KEY, 1);
    struct call *next = begin_acquire(f, client, &request);
    wait_in_queue(f, KEY, 2);
    stop_mortals(crew);
    for (size_t i = 0; i < FIVE; i++) {
        reserved_until[i] = clock_at(f, i) + RESERVATION_MS;
    }
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    crew_kill(crew, 0);
    await_next(f, client, next);
    assert_over(f, reserved_until);
    assert_int_equal(let_go(f, next->lock), REDLOCK_OK);
    wait_queue_empty(f, KEY);
}

/* A dead holder does not release the key: the next waiter asks when the TTL is over. */
static void one_that_held_the_lock_delays_the_next_by_its_ttl(void **state) {
    struct fixture *f = *state;
    redlock_request request = waiting_request(KEY);
    redlock_client *client = connect_client(f);
    long long expiries[FIVE];
    struct crew *crew = start_mortal(f, SHORT_TTL_MS);
    struct stage *stage = crew->memory;

    run_until(f, holds, stage, "the process holds the lock");
    struct call *first = begin_acquire(f, client, &request);
    wait_in_queue(f, KEY, 1);
    struct call *second = begin_acquire(f, connect_client(f), &request);
    wait_in_queue(f, KEY, 2);
    crew_kill(crew, 0);
    for (size_t i = 0; i < FIVE; i++) {
        expiries[i] = expiry_at(f, i, KEY); /* 0 if it is already over */
    }
    await_next(f, client, first);
    assert_over(f, expiries);
    assert_int_equal(second->ended, 0);
    assert_int_equal(let_go(f, first->lock), REDLOCK_OK);
    take_turn(f, second);
    wait_queue_empty(f, KEY);
}

struct subscribers {
    struct fixture *f;
    long long count;
};

/* Returns whether each master has this number of channels with subscribers. */
static bool has_channels(void *arg) {
    const struct subscribers *wanted = arg;

    for (size_t i = 0; i < FIVE; i++) {
        const char *script = "return #redis.call('pubsub', 'channels', 'redlock:*')";

        if (masters_query_integer(wanted->f->masters, i, "EVAL %s 0", script) != wanted->count) {
            return false;
        }
    }
    return true;
}

/* The channel of a dead waiter has no subscriber: the release passes over it. */
static void one_in_queue_delays_nobody(void **state) {
    struct fixture *f = *state;
    redlock_request request = waiting_request(KEY);
    redlock_lock *lock = hold(f, connect_client(f), KEY, LONG_TTL_MS);
    struct subscribers subscribers = {f, 1};
    struct crew *crew;

    crew = start_mortal(f, LONG_TTL_MS);
    wait_in_queue(f, KEY, 1);
    struct call *next = begin_acquire(f, connect_client(f), &request);
    wait_in_queue(f, KEY, 2);
    crew_kill(crew, 0);
    run_until(f, has_channels, &subscribers, "the masters know that one waiter is gone");
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    take_turn(f, next);
    wait_queue_empty(f, KEY);
    wait_released(f, KEY); /* no key was left to expire */
}

/* The longest reservation that an entry may have: longer than a test waits. */
#define GHOST_RESERVATION_MS 99999

/* A monitor that subscribes to all channels does not make dead waiters look alive. */
static void twenty_in_queue_delay_nobody_though_others_listen_by_patterns(void **state) {
    struct fixture *f = *state;
    redlock_request request = waiting_request(KEY);
    redlock_lock *lock = hold(f, connect_client(f), KEY, LONG_TTL_MS);
    struct call *next = begin_acquire(f, connect_client(f), &request);

    eavesdrop(f, "PSUBSCRIBE *");
    wait_in_queue(f, KEY, 1);
    put_ghosts(f, KEY, 20, '1', "redlock:of-the-dead", GHOST_RESERVATION_MS);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    take_turn(f, next);
    wait_queue_empty(f, KEY);
    wait_released(f, KEY);
}

/* An entry keeps the key for a reservation, which our clients never make longer than 1 s. */
static void an_entry_that_claims_an_hour_is_none(void **state) {
    struct fixture *f = *state;
    redlock_request request = waiting_request(KEY);
    redlock_lock *lock = hold(f, connect_client(f), KEY, LONG_TTL_MS);
    struct call *next = begin_acquire(f, connect_client(f), &request);

    eavesdrop(f, "SUBSCRIBE redlock:of-the-hung");
    wait_in_queue(f, KEY, 1);
    put_ghosts(f, KEY, 1, '0', "redlock:of-the-hung", 3600000);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    take_turn(f, next);
    wait_queue_empty(f, KEY);
}

/*
 * A client without the right to ask for subscribers learns of dead waiters by publishing, after
 * they got the key.
 */
static void the_dead_keep_nothing_though_nobody_may_ask_who_listens(void **state) {
    struct fixture *f = *state;
    const char *form = f->row;
    redlock_mode mode = *form == 'r' ? REDLOCK_READER : REDLOCK_EXCLUSIVE;
    redlock_request request = waiting_request_of(KEY, mode, 0);
    redlock_lock *lock = hold(f, connect_client(f), KEY, LONG_TTL_MS);
    struct call *next = begin_acquire(f, connect_client(f), &request);

    wait_in_queue(f, KEY, 1);
    put_ghosts(f, KEY, 3, *form, "redlock:of-the-dead", GHOST_RESERVATION_MS);
    for (size_t i = 0; i < FIVE; i++) {
        free(masters_query(f->masters, i, "ACL SETUSER default -pubsub"));
    }
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    take_turn(f, next);
    wait_released(f, KEY); /* no key or share of a dead waiter was left to expire */
}

/* The maximum of queue entries that a script call handles. */
#define ENTRIES_MOST 64

/* A release skips the first of them, and calls that follow at once skip the others. */
static void ten_thousand_in_queue_are_passed_over_in_short_calls(void **state) {
    const size_t ghosts = 10000;
    struct fixture *f = *state;
    redlock_request request = waiting_request(KEY);
    redlock_lock *lock = hold(f, connect_client(f), KEY, LONG_TTL_MS);
    struct call *next = begin_acquire(f, connect_client(f), &request);

    wait_in_queue(f, KEY, 1);
    put_ghosts(f, KEY, ghosts, '0', "redlock:of-the-dead", GHOST_RESERVATION_MS);
    size_t calls = executed(f, 0, "evalsha") + executed(f, 0, "eval");
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    take_turn(f, next);
    wait_queue_empty(f, KEY);
    calls = executed(f, 0, "evalsha") + executed(f, 0, "eval") - calls;
    assert_in_range(calls, ghosts / ENTRIES_MOST, 2 * ghosts / ENTRIES_MOST);
    wait_released(f, KEY);
}

/* The records at the masters that the first waiter was notified. */
struct records {
    struct fixture *f;
    char members[FIVE][160];
};

/* Records that the first waiter was notified, and has so long from now to ask. */
static void record_notified(struct records *records, struct fixture *f, long long ms) {
    records->f = f;
    for (size_t i = 0; i < FIVE; i++) {
        char *member = records->members[i];
        char *entry = masters_query(f->masters, i, "EVAL %s 1 " KEY "::queue",
                                    "return redis.call('zrange', KEYS[1], 0, 0)[1]");
        snprintf(member, sizeof(records->members[i]), "told %lld %.*s", clock_at(f, i) + ms,
                 (int)strcspn(entry, " "), entry);
        free(entry);
        assert_int_equal(masters_query_integer(f->masters, i, "ZADD " KEY "::queue 0 %s", member),
                         1);
    }
}

/* Returns whether no master has its record any more. */
static bool are_gone(void *arg) {
    const char *script = "return redis.call('zscore', KEYS[1], ARGV[1]) and 1 or 0";
    const struct records *records = arg;

    for (size_t i = 0; i < FIVE; i++) {
        if (masters_query_integer(records->f->masters, i, "EVAL %s 1 " KEY "::queue %s", script,
                                  records->members[i]) == 1) {
            return false;
        }
    }
    return true;
}

/* Holds the key as a reader, of a client of its own. */
static redlock_lock *hold_share(struct fixture *f) {
    redlock_request request = request_for(KEY, LONG_TTL_MS);

    request.mode = REDLOCK_READER;
    return hold_for(f, connect_client(f), &request);
}

/*
 * A process that hangs is connected and subscribes, and keeps the first entry for a few
 * reservations; even if a record grants it an hour, because the master's clock was set back.
 */
static void one_that_hangs_in_queue_keeps_no_reader_out(void **state) {
    struct fixture *f = *state;
    redlock_request request = waiting_request_of(KEY, REDLOCK_READER, 0);
    redlock_client *client = connect_client(f);
    struct records records;
    struct crew *crew;

    redlock_lock *first = hold_share(f);
    crew = start_mortal(f, BRIEF_TTL_MS);
    wait_in_queue(f, KEY, 1);
    stop_mortals(crew);
    if (f->row != NULL) {
        record_notified(&records, f, 3600000);
    }
    struct call *reader = begin_acquire(f, client, &request);
    await_eagerly(f, client, reader);
    assert_int_equal(extend(f, first, 0), REDLOCK_OK);
    assert_int_equal(let_go(f, first), REDLOCK_OK);
    crew_kill(crew, 0);
    assert_int_equal(let_go(f, reader->lock), REDLOCK_OK);
    for (size_t i = 0; i < FIVE;
         i++) { /* masters that the reader did not need may have the entry */
        free(masters_query(f->masters, i, "DEL " KEY "::queue"));
    }
    wait_holders(f, KEY, 0); /* or have given it the key for a reservation */
}

/* Of a host that hangs, only the first waiter has the full time to ask: the next has a part of it.
 */
static void those_that_hang_after_it_have_less_time(void **state) {
    const char *left =
        "local till = string.match(redis.call('zrange', KEYS[1], 0, 0)[1], '^told (%d+) ')"
        " local now = redis.call('time')"
        " return till and till - now[1] * 1000 - now[2] / 1000 or 0";
    struct fixture *f = *state;
    redlock_request request = waiting_request_of(KEY, REDLOCK_READER, 0);
    redlock_client *client = connect_client(f);
    struct records records;
    struct crew *crew;

    redlock_lock *first = hold_share(f);
    crew = start_mortals(f, 2, LONG_TTL_MS);
    wait_in_queue(f, KEY, 2);
    stop_mortals(crew);
    record_notified(&records, f, -1);
    struct call *reader = begin_acquire(f, client, &request);
    pass_until(f, client, 0, 250, are_gone, &records, "the first waiter has lost its entry");
    for (size_t i = 0; i < FIVE; i++) {
        assert_true(masters_query_integer(f->masters, i, "EVAL %s 1 " KEY "::queue", left) <= 250);
    }
    await_eagerly(f, client, reader);
    assert_int_equal(let_go(f, first), REDLOCK_OK);
    assert_int_equal(let_go(f, reader->lock), REDLOCK_OK);
}

int main(int argc, char **argv) {
    static const bool eagerly = true, patiently = false;
    const struct CMUnitTest tests[] = {
        ON_ROW("one_that_was_granted_delays_the_next_by_a_reservation",
               one_that_was_granted_delays_the_next_by_a_reservation, five_masters, &eagerly),
        ON_ROW("one_that_was_granted_costs_the_next_few_polls",
               one_that_was_granted_delays_the_next_by_a_reservation, five_masters, &patiently),
        ON_ROW("one_that_held_the_lock_delays_the_next_by_its_ttl",
               one_that_held_the_lock_delays_the_next_by_its_ttl, five_masters, &eagerly),
        ON_ROW("one_that_held_the_lock_costs_the_next_few_polls",
               one_that_held_the_lock_delays_the_next_by_its_ttl, five_masters, &patiently),
        ON_FIVE_MASTERS(one_in_queue_delays_nobody),
        ON_FIVE_MASTERS(twenty_in_queue_delay_nobody_though_others_listen_by_patterns),
        ON_FIVE_MASTERS(an_entry_that_claims_an_hour_is_none),
        ON_ROW("the_dead_keep_no_key_though_nobody_may_ask_who_listens",
               the_dead_keep_nothing_though_nobody_may_ask_who_listens, five_masters, "n"),
        ON_ROW("the_dead_keep_no_share_though_nobody_may_ask_who_listens",
               the_dead_keep_nothing_though_nobody_may_ask_who_listens, five_masters, "r"),
        ON_FIVE_MASTERS(ten_thousand_in_queue_are_passed_over_in_short_calls),
        ON_ROW("one_that_hangs_in_queue_keeps_no_reader_out",
               one_that_hangs_in_queue_keeps_no_reader_out, five_masters, NULL),
        ON_ROW("one_that_hangs_in_queue_has_no_hour", one_that_hangs_in_queue_keeps_no_reader_out,
               five_masters, "an hour"),
        ON_FIVE_MASTERS(those_that_hang_after_it_have_less_time),
    };
    int result;

    if (crew_member(argc, argv, sizeof(struct stage), run_mortal, &result)) {
        return result;
    }
    return cmocka_run_group_tests_name("waiting_deaths", tests, NULL, NULL);
}
