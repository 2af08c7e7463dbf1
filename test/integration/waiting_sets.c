/*
 * Requests for several keys queue for the key that is held, get all their keys when the last of
 * them comes free, and hold none meanwhile.
 */
#include "clocks.h"
#include "crew.h"
#include "harness.h"
#include "master_data.h"
#include "missing_rights.h"
#include "plain.h"
#include "push_relay.h"
#include "rivals.h"
#include "wait_queue.h"

#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIVE 5

static const char *const ab[] = {"a", "b"};
static const char *const bc[] = {"b", "c"};
static const char *const ca[] = {"c", "a"};
static const char *const abc[] = {"a", "b", "c"};

static redlock_request waiting_for(const char *const *keys, size_t count) {
    redlock_request request = waiting_request(NULL);

    request.keys = keys;
    request.key_count = count;
    return request;
}

/* Holds a key at all masters. */
static redlock_lock *hold_everywhere(struct fixture *f, redlock_client *client, const char *key) {
    redlock_lock *lock = hold(f, client, key, LONG_TTL_MS);

    wait_holders(f, key, FIVE);
    return lock;
}

static void wait_all_over(struct fixture *f) {
    for (size_t i = 0; i < 3; i++) {
        wait_queue_empty(f, abc[i]);
    }
}

/* ------------------------------------------------------------------------------------- entries */

/* The waiter queues for the key that is held, and leaves the other one free. */
static void it_waits_for_the_key_that_is_held(void **state) {
    struct fixture *f = *state;
    const char *held = f->row;
    const char *other = held[0] == 'a' ? "b" : "a";
    redlock_request request = waiting_for(ab, 2);
    redlock_lock *lock = hold_everywhere(f, connect_client(f), held);
    redlock_client *client = connect_client(f);
    struct call *call = begin_acquire(f, client, &request);

    wait_in_queue(f, held, 1);
    wait_in_queue(f, other, 0);
    wait_holders(f, other, 0);
    redlock_lock *beside = hold(f, client, other, LONG_TTL_MS);
    assert_int_equal(let_go(f, beside), REDLOCK_OK);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    assert_int_equal(await(f, call), REDLOCK_OK);
    wait_holders(f, "a", FIVE);
    wait_holders(f, "b", FIVE);
    assert_string_equal(value_at(f, 0, "a"), value_at(f, 0, "b"));
    assert_int_equal(let_go(f, call->lock), REDLOCK_OK);
    wait_all_over(f);
}

/* Released in any order: the waiter moves from one queue to the other, and holds no key. */
static void it_moves_to_the_key_that_is_still_held(void **state) {
    struct fixture *f = *state;
    redlock_request request = waiting_for(ab, 2);
    redlock_client *clients[] = {connect_client(f), connect_client(f), connect_client(f)};
    redlock_lock *a = hold_everywhere(f, clients[0], "a");
    redlock_lock *b = hold_everywhere(f, clients[1], "b");

    request.fenced = true;
    struct call *call = begin_acquire(f, clients[2], &request);
    wait_in_queue(f, "a", 1);
    wait_in_queue(f, "b", 0);
    assert_int_equal(let_go(f, a), REDLOCK_OK);
    wait_in_queue(f, "b", 1);
    wait_in_queue(f, "a", 0);
    wait_holders(f, "a", 0);
    assert_int_equal(call->ended, 0);
    assert_int_equal(let_go(f, b), REDLOCK_OK);
    assert_int_equal(await(f, call), REDLOCK_OK);
    assert_true(redlock_fence(call->lock) > 0);
    assert_int_equal(let_go(f, call->lock), REDLOCK_OK);
    wait_all_over(f);
}

/* The request that was made first is in the queue of the key that is released last. */
static void of_two_that_overlap_the_first_is_served(void **state) {
    struct fixture *f = *state;
    redlock_request first = waiting_for(bc, 2);
    redlock_request second = waiting_for(ca, 2);
    redlock_request both = waiting_for(ab, 2);
    redlock_lock *lock = hold_for_waiters(f, connect_client(f), &both);
    struct call *one = begin_acquire(f, connect_client(f), &first);

    wait_in_queue(f, "b", 1);
    struct call *two = begin_acquire(f, connect_client(f), &second);
    wait_in_queue(f, "a", 1);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    assert_int_equal(await(f, one), REDLOCK_OK);
    wait_in_queue(f, "c", 1);
    assert_int_equal(two->ended, 0);
    assert_int_equal(let_go(f, one->lock), REDLOCK_OK);
    take_turn(f, two);
    wait_all_over(f);
}

static void who_cancels_leaves_no_entry(void **state) {
    struct fixture *f = *state;
    redlock_request request = waiting_for(ab, 2);
    redlock_lock *a = hold_everywhere(f, connect_client(f), "a");
    redlock_lock *b = hold_everywhere(f, connect_client(f), "b");
    struct call *call = begin_acquire(f, connect_client(f), &request);

    wait_in_queue(f, "a", 1);
    assert_int_equal(let_go(f, a), REDLOCK_OK);
    wait_in_queue(f, "b", 1);
    assert_int_equal(redlock_cancel(call->lock), REDLOCK_OK);
    assert_int_equal(await(f, call), REDLOCK_ECANCELED);
    wait_in_queue(f, "b", 0);
    assert_int_equal(let_go(f, b), REDLOCK_OK);
    wait_all_over(f);
}

/* -------------------------------------------------------------------------------------- names */

/* The names, not blanks, determine the length of an entry's or a message's text for keys. */
static void names_are_any_bytes(void **state) {
    struct fixture *f = *state;
    static const char first[] = "a b:1:\0 \r\n";
    static const char second[] = " 7:b\0";
    static const char *const keys[] = {first, second};
    static const size_t lengths[] = {sizeof(first) - 1, sizeof(second) - 1};
    redlock_request request = waiting_for(keys, 2);

    request.key_lengths = lengths;
    redlock_lock *lock = hold_for(f, connect_client(f), &request);
    struct call *call = begin_acquire(f, connect_client(f), &request);
    wait_all_answered(f, connect_client(f));
    for (size_t i = 0; i < FIVE; i++) {
        wait_executed(f, i, "zadd", 1);
    }
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    take_turn(f, call);
}

static void as_many_keys_as_there_may_be(void **state) {
    struct fixture *f = *state;
    char names[REDLOCK_MAX_KEYS][8];
    const char *keys[REDLOCK_MAX_KEYS];

    for (size_t i = 0; i < REDLOCK_MAX_KEYS; i++) {
        snprintf(names[i], sizeof(names[i]), "k%zu", i);
        keys[i] = names[i];
    }
    redlock_request request = waiting_for(keys, REDLOCK_MAX_KEYS);
    request.fenced = true;
    redlock_lock *lock = hold_everywhere(f, connect_client(f), "k63");
    struct call *call = begin_acquire(f, connect_client(f), &request);
    wait_in_queue(f, "k63", 1);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    assert_int_equal(await(f, call), REDLOCK_OK);
    wait_holders(f, "k0", FIVE);
    assert_int_equal(let_go(f, call->lock), REDLOCK_OK);
    wait_queue_empty(f, "k63");
    wait_released(f, "k0");
}

/* Messages have no room for such names: the request polls. */
static void names_that_are_too_long_poll(void **state) {
    struct fixture *f = *state;
    static char name[4094];
    memset(name, 'n', sizeof(name) - 1);
    const char *keys[] = {name, "b"};
    redlock_request request = waiting_for(keys, 2);
    redlock_lock *lock = hold_everywhere(f, connect_client(f), "b");
    struct call *call = begin_acquire(f, connect_client(f), &request);
    size_t before = executed(f, 0, "evalsha");

    wait_executed(f, 0, "evalsha", before + 3);
    wait_in_queue(f, "b", 0);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    take_turn(f, call);
    wait_queue_empty(f, "b");
}

/* Makes the first waiter for a key one that has waited long, by the masters' clocks. */
static void age_first(struct fixture *f, const char *key) {
    const char *script = "local first = redis.call('zrange', KEYS[1], 0, 0)[1] "
                         "local ticket = (redis.call('time')[1] - 100) * 1000000 "
                         "return redis.call('zadd', KEYS[1], 'xx', 'ch', ticket, first)";

    for (size_t i = 0; i < FIVE; i++) {
        assert_int_equal(masters_query_integer(f->masters, i, "EVAL %s 1 %s::queue", script, key),
                         1);
    }
}

/*
 * Both keys are released, but not at once: the first one is kept free for the request that has
 * waited long, ahead of another waiter in its queue. No client polls, since all their clocks stand
 * still.
 */
static void a_key_is_kept_for_one_that_has_waited_long(void **state) {
    struct fixture *f = *state;
    redlock_client *holders_of[] = {connect_client(f), connect_client(f)};
    redlock_client *clients[] = {connect_client(f), connect_client(f)};
    redlock_request request = waiting_for(ab, 2);
    redlock_request next = waiting_request("a");
    redlock_lock *a = hold_everywhere(f, holders_of[0], "a");
    redlock_lock *b = hold_everywhere(f, holders_of[1], "b");
    struct call *both = begin_acquire(f, clients[0], &request);

    wait_listening(f, "a", 0, 1);
    struct call *one = begin_acquire(f, clients[1], &next);
    wait_listening(f, "a", 0, 2);
    stop_time();
    wait_all_answered(f, clients[0]);
    age_first(f, "a");
    assert_int_equal(let_go(f, a), REDLOCK_OK);
    wait_all_answered(f, holders_of[0]);
    assert_int_equal(holders(f, "a"), 0);
    assert_int_equal(let_go(f, b), REDLOCK_OK);
    assert_int_equal(await(f, both), REDLOCK_OK);
    resume_time();
    assert_int_equal(one->ended, 0);
    assert_int_equal(let_go(f, both->lock), REDLOCK_OK);
    take_turn(f, one);
    wait_all_over(f);
}

/* ------------------------------------------------------------------------------------- crowds */

static void join(struct rivals *rivals, redlock_client *client, const char *const *keys,
                 size_t count) {
    const redlock_request request = waiting_for(keys, count);

    rivals_begin_for(rivals, client, &request);
}

static void end_rivalry(struct fixture *f, struct rivals *rivals) {
    wait_rivals(f, rivals);
    assert_int_equal(rivals_intrusions(rivals), 0);
}

/* Any two of the locks have a key in common, and no queue has all waiters. */
static void a_round_table_serves_all(struct fixture *f,
                                     redlock_client *(*connect)(struct fixture *), unsigned turns) {
    struct rivals *rivals = rivals_create(f, &(struct rivals_options){.turns = turns});

    for (size_t i = 0; i < 3; i++) {
        join(rivals, connect(f), ab, 2);
        join(rivals, connect(f), bc, 2);
        join(rivals, connect(f), ca, 2);
    }
    join(rivals, connect(f), abc, 3);
    end_rivalry(f, rivals);
    wait_all_over(f);
}

static void crowds_that_overlap_are_all_served(void **state) {
    a_round_table_serves_all(*state, connect_client, 20);
}

static bool is_true(void *arg) {
    return *(const bool *)arg;
}

/* Both keys are never free at once, unless one is kept for the request that waits for both. */
static void it_gets_in_between_two_crowds(void **state) {
    struct fixture *f = *state;
    redlock_request request = waiting_for(ab, 2);
    bool is_over = false;
    struct rivals *crowds[2];

    for (size_t i = 0; i < 2; i++) {
        crowds[i] = rivals_create(f, &(struct rivals_options){.request = waiting_request(ab[i]),
                                                              .turns = UINT_MAX,
                                                              .is_over = is_true,
                                                              .arg = &is_over});
    }
    for (size_t i = 0; i < 4; i++) {
        rivals_begin(crowds[0], connect_client(f));
        rivals_begin(crowds[1], connect_client(f));
    }
    for (size_t i = 0; i < 3; i++) {
        redlock_lock *lock = hold_for(f, connect_client(f), &request);
        assert_int_equal(let_go(f, lock), REDLOCK_OK);
    }
    assert_false(rivals_are_done(crowds[0]) || rivals_are_done(crowds[1]));
    is_over = true;
    end_rivalry(f, crowds[0]);
    end_rivalry(f, crowds[1]);
    wait_all_over(f);
}

#define SETS 3

/* The acquisitions of each rival so far, and those after which they end. */
struct turns {
    unsigned of[SETS];
    unsigned least; /* 0: they do not end yet */
};

static void count_turn(unsigned client, unsigned turn, void *arg) {
    ((struct turns *)arg)->of[client] = turn;
}

static bool have_had_turns(void *arg) {
    const struct turns *turns = arg;
    bool have_had = turns->least > 0;

    for (size_t i = 0; i < SETS; i++) {
        have_had = have_had && turns->of[i] >= turns->least;
    }
    return have_had;
}

static void plain_clients_and_sets_starve_none(void **state) {
    struct fixture *f = *state;
    struct turns turns = {0};
    struct rivals *rivals = rivals_create(
        f, &(struct rivals_options){
               .turns = UINT_MAX, .on_in = count_turn, .is_over = have_had_turns, .arg = &turns});
    struct plain *plain =
        plain_begin(f, &(struct plain_options){.key = "b", .ttl_ms = LONG_TTL_MS, .poll_ms = 4});

    for (size_t i = 0; i < SETS; i++) {
        join(rivals, connect_client(f), ab, 2);
    }
    wait_plain_turns(f, plain, 5);
    turns.least = turns.of[0] + 10;
    end_rivalry(f, rivals);
    plain_end(plain);
    wait_all_over(f);
}

/* ------------------------------------------------------------------------------------- faults */

static struct push_relay *push_relay; /* of the running test */

static redlock_client *connect_by_push_relay(struct fixture *f) {
    return push_relay_client(f, push_relay, REDLOCK_GUARDS_ON);
}

static void with_lost_messages_all_are_served(void **state) {
    struct fixture *f = *state;

    push_relay = push_relay_create(f);
    push_relay_lose(push_relay, 20);
    a_round_table_serves_all(f, connect_by_push_relay, 3);
    assert_true(push_relay_lost(push_relay) > 0);
}

static void with_doubled_messages_all_are_served(void **state) {
    struct fixture *f = *state;

    push_relay = push_relay_create(f);
    push_relay_double(push_relay);
    a_round_table_serves_all(f, connect_by_push_relay, 5);
}

/* Without the right to queues a request polls, and delays no other one. */
static void without_the_right_to_queues_it_polls(void **state) {
    struct fixture *f = *state;
    redlock_client *poor = connect_without(f, "-zadd");
    redlock_request request = waiting_for(ab, 2);
    redlock_lock *a = hold_everywhere(f, connect_client(f), "a");
    redlock_lock *b = hold_everywhere(f, poor, "b");
    struct call *call = begin_acquire(f, poor, &request);
    struct call *rich = begin_acquire(f, connect_client(f), &request);

    wait_in_queue(f, "a", 1);
    size_t before = executed(f, 0, "evalsha");
    wait_executed(f, 0, "evalsha", before + 3);
    assert_int_equal(let_go(f, a), REDLOCK_OK);
    wait_in_queue(f, "b", 1);
    /* released by a user who may not move waiters, but may push */
    assert_int_equal(let_go(f, b), REDLOCK_OK);
    assert_int_equal(await(f, rich), REDLOCK_OK);
    assert_int_equal(call->ended, 0);
    assert_int_equal(let_go(f, rich->lock), REDLOCK_OK);
    take_turn(f, call);
    wait_all_over(f);
}

static int run_mortal(size_t member, void *memory, char **uris, size_t count) {
    redlock_request request = waiting_for(ab, 2);
    void *state = NULL;

    (void)member;
    (void)memory;
    if (start_fixture(&state, 0, NULL) != 0) {
        return EXIT_FAILURE;
    }
    redlock_options options = patient_options(state, (const char *const *)uris, count);
    await(state, begin_acquire(state, connect_with(state, &options), &request));
    return EXIT_FAILURE;
}

/* A release skips a dead waiter that was moved to the queue of its key. */
static void one_that_dies_after_it_was_moved_delays_nobody(void **state) {
    struct fixture *f = *state;
    redlock_request request = waiting_for(ab, 2);
    redlock_lock *a = hold_everywhere(f, connect_client(f), "a");
    redlock_lock *b = hold_everywhere(f, connect_client(f), "b");
    struct crew *crew = crew_create(f, sizeof(int));

    crew_start(crew, 1);
    wait_in_queue(f, "a", 1);
    struct call *call = begin_acquire(f, connect_client(f), &request);
    wait_in_queue(f, "a", 2);
    assert_int_equal(let_go(f, a), REDLOCK_OK);
    wait_in_queue(f, "b", 2);
    crew_kill(crew, 0);
    wait_listening(f, "b", 0, 1);
    assert_int_equal(let_go(f, b), REDLOCK_OK);
    take_turn(f, call);
    wait_all_over(f);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        ON_ROW("it_waits_for_the_first_key", it_waits_for_the_key_that_is_held, five_masters, "a"),
        ON_ROW("it_waits_for_the_second_key", it_waits_for_the_key_that_is_held, five_masters, "b"),
        ON_FIVE_MASTERS(it_moves_to_the_key_that_is_still_held),
        ON_FIVE_MASTERS(of_two_that_overlap_the_first_is_served),
        ON_FIVE_MASTERS(who_cancels_leaves_no_entry),
        ON_FIVE_MASTERS(a_key_is_kept_for_one_that_has_waited_long),
        ON_FIVE_MASTERS(names_are_any_bytes),
        ON_FIVE_MASTERS(as_many_keys_as_there_may_be),
        ON_FIVE_MASTERS(names_that_are_too_long_poll),
        ON_FIVE_MASTERS(crowds_that_overlap_are_all_served),
        ON_FIVE_MASTERS(it_gets_in_between_two_crowds),
        ON_FIVE_MASTERS(plain_clients_and_sets_starve_none),
        ON_FIVE_MASTERS(with_lost_messages_all_are_served),
        ON_FIVE_MASTERS(with_doubled_messages_all_are_served),
        ON_FIVE_MASTERS(without_the_right_to_queues_it_polls),
        ON_FIVE_MASTERS(one_that_dies_after_it_was_moved_delays_nobody),
    };
    int result;

    if (crew_member(argc, argv, sizeof(int), run_mortal, &result)) {
        return result;
    }
    return cmocka_run_group_tests_name("waiting_sets", tests, NULL, NULL);
}
