/*
 * Requests for permits in the queue: all permits of a semaphore share one queue. A release notifies
 * the first waiter of the permit, and the waiter asks for it; there are as many holders as permits,
 * and no more.
 */
#include "clocks.h"
#include "crew.h"
#include "harness.h"
#include "master_data.h"
#include "missing_rights.h"
#include "openings.h"
#include "push_relay.h"
#include "rivals.h"
#include "wait_queue.h"

#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define KEY "pool:7"
#define FIVE 5
#define RESERVATION_MS 1000

/* Returns a request with a watchdog that waits in the queue forever. */
static redlock_request permit_request(uint32_t permits) {
    return waiting_request_of(KEY, REDLOCK_EXCLUSIVE, permits);
}

static redlock_lock *hold_permit(struct fixture *f, uint32_t permits) {
    redlock_request request = permit_request(permits);

    request.watchdog = false; /* a test says when a lost key is brought back */
    return hold_for_waiters(f, connect_client(f), &request);
}

/* ------------------------------------------------------------------------------------ the queue */

struct length {
    struct fixture *f;
    long long wanted;
};

static bool has_length(void *arg) {
    const struct length *length = arg;

    for (size_t i = 0; i < masters_count(length->f->masters); i++) {
        if (masters_query_integer(length->f->masters, i, "ZCARD " KEY "::permits") !=
            length->wanted) {
            return false;
        }
    }
    return true;
}

/* Waits until each master has `count` waiters in the semaphore's queue. */
static void wait_for_permits(struct fixture *f, long long count) {
    struct length length = {f, count};

    run_until(f, has_length, &length, "each master has the expected number of waiters");
}

/* Waits until neither a waiter nor a permit is left at any master. */
static void wait_all_over(struct fixture *f, uint32_t permits) {
    wait_for_permits(f, 0);
    for (uint32_t i = 0; i < permits; i++) {
        char key[32];

        snprintf(key, sizeof(key), KEY ":%" PRIu32, i);
        wait_holders(f, key, 0);
    }
}

static void let_all_go(struct fixture *f, redlock_lock *const *locks, size_t count) {
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(let_go(f, locks[i]), REDLOCK_OK);
    }
}

/* Returns whether two locks have the same permit. */
static bool is_same(const redlock_lock *one, const redlock_lock *other) {
    size_t length[2];
    const char *key = redlock_key(one, &length[0]);
    const char *other_key = redlock_key(other, &length[1]);

    return length[0] == length[1] && memcmp(key, other_key, length[0]) == 0;
}

#define WAITERS 6

/* Each release serves the first waiter in the queue, with the permit that was released. */
static void they_are_served_in_the_order_of_their_requests(void **state) {
    struct fixture *f = *state;
    redlock_request request = permit_request(2);
    redlock_lock *held[2 + WAITERS] = {hold_permit(f, 2), hold_permit(f, 2)};
    struct call *calls[WAITERS];

    for (long long i = 0; i < WAITERS; i++) {
        calls[i] = begin_acquire(f, connect_client(f), &request);
        wait_for_permits(f, i + 1);
    }
    for (size_t i = 0; i < WAITERS; i++) {
        char key[32];
        size_t length;

        snprintf(key, sizeof(key), "%s", redlock_key(held[i], &length));
        assert_int_equal(let_go(f, held[i]), REDLOCK_OK);
        assert_int_equal(await(f, calls[i]), REDLOCK_OK);
        for (size_t k = i + 1; k < WAITERS; k++) {
            assert_int_equal(calls[k]->ended, 0);
        }
        held[2 + i] = calls[i]->lock;
        assert_string_equal(redlock_key(held[2 + i], &length), key);
    }
    let_all_go(f, &held[WAITERS], 2);
    wait_all_over(f, 2);
}

/* Two releases at about the same time serve two waiters, whichever permit each node offers. */
static void as_many_are_served_as_are_released(void **state) {
    struct fixture *f = *state;
    redlock_request request = permit_request(3);
    redlock_lock *held[3] = {hold_permit(f, 3), hold_permit(f, 3), hold_permit(f, 3)};
    struct call *calls[4];

    for (long long i = 0; i < 4; i++) {
        calls[i] = begin_acquire(f, connect_client(f), &request);
        wait_for_permits(f, i + 1);
    }
    begin_release(f, held[0]);
    begin_release(f, held[1]);
    assert_int_equal(await(f, calls[0]), REDLOCK_OK);
    assert_int_equal(await(f, calls[1]), REDLOCK_OK);
    assert_false(is_same(calls[0]->lock, calls[1]->lock));
    assert_int_equal(calls[2]->ended, 0);
    let_all_go(f, (redlock_lock *[]){held[2], calls[0]->lock, calls[1]->lock}, 3);
    for (size_t i = 2; i < 4; i++) {
        take_turn(f, calls[i]);
    }
    wait_all_over(f, 3);
}

static void an_entry_is_given_up(void **state) {
    struct fixture *f = *state;
    redlock_request request = permit_request(1);
    redlock_lock *lock = hold_permit(f, 1);
    struct call *calls[2];

    for (long long i = 0; i < 2; i++) {
        calls[i] = begin_acquire(f, connect_client(f), &request);
        wait_for_permits(f, i + 1);
    }
    assert_int_equal(redlock_cancel(calls[0]->lock), REDLOCK_OK);
    assert_int_equal(await(f, calls[0]), REDLOCK_ECANCELED);
    wait_for_permits(f, 1);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    take_turn(f, calls[1]);
    wait_all_over(f, 1);
}

/* ------------------------------------------------------------------------------------ crowds */

#define CLIENTS 8
#define MOST 128
#define BURST 2000

/* A crowd of requests, of some clients, that each hold a permit once. */
struct crowd {
    struct fixture *f;
    size_t inside, most, served;
    bool is_fenced;
};

static void on_stayed(struct call *call, void *arg) {
    struct crowd *crowd = arg;

    assert_true(redlock_validity_ms(call->lock) > 0);
    crowd->inside--;
    crowd->served++;
    begin_release(crowd->f, call->lock);
}

static void on_in(struct call *call, void *arg) {
    struct crowd *crowd = arg;

    assert_ended(call, REDLOCK_OK);
    crowd->inside++;
    crowd->most = crowd->inside > crowd->most ? crowd->inside : crowd->most;
    assert_true((redlock_fence(call->lock) > 0) == crowd->is_fenced);
    struct call *stay = begin_extend(crowd->f, call->lock, 0);
    stay->then = on_stayed;
    stay->then_arg = crowd;
}

struct size {
    size_t waiters;
    uint32_t permits;
    bool is_fenced;
};

/* For each client, twice as many requests as there are permits have an entry at the nodes. */
static size_t entries_of(const struct size *size) {
    size_t waiters = size->waiters / CLIENTS;

    return CLIENTS * (waiters < 2 * size->permits ? waiters : 2 * size->permits);
}

static bool are_served(void *arg) {
    const struct crowd *crowd = arg;

    return crowd->served == *(const size_t *)crowd->f->row;
}

/*
 * Each of a crowd is served once. Each acquisition costs a node one call for the entry, a few to
 * ask for the offered permit, one to extend, and one to release, however many wait.
 */
static void all_are_served_and_never_more_at_once_than_permits(void **state) {
    struct fixture *f = *state;
    const struct size *size = f->row;
    redlock_request request = permit_request(size->permits);
    struct crowd crowd = {f, 0, 0, 0, size->is_fenced};
    redlock_client *clients[CLIENTS];
    redlock_lock *held[8];

    request.fenced = size->is_fenced;
    for (size_t i = 0; i < size->permits; i++) {
        held[i] = hold_for(f, connect_client(f), &request);
    }
    for (size_t i = 0; i < CLIENTS; i++) {
        clients[i] = connect_client(f);
    }
    for (size_t i = 0; i < size->waiters; i++) {
        struct call *call = begin_acquire(f, clients[i % CLIENTS], &request);

        call->then = on_in;
        call->then_arg = &crowd;
    }
    wait_for_permits(f, (long long)entries_of(size));
    size_t before = scripts_at(f, 0);
    let_all_go(f, held, size->permits);
    run_until(f, are_served, &crowd, "all have held a permit");
    assert_int_in_range(crowd.most, 1, size->permits);
    wait_all_over(f, size->permits);
    size_t calls = scripts_at(f, 0) - before;
    assert_int_in_range(calls, size->waiters, 8 * size->waiters + 100);
}

#define ON_SIZE(name, ...)                                                                         \
    ON_ROW(name, all_are_served_and_never_more_at_once_than_permits, five_masters,                 \
           &((struct size){__VA_ARGS__}))

/* A semaphore of one permit is a lock, whose fences grow. */
static void one_permit_is_a_lock(void **state) {
    struct fixture *f = *state;
    struct rivals_options options = {.request = permit_request(1), .turns = 10};

    options.request.fenced = *(const bool *)f->row;
    struct rivals *rivals = rivals_create(f, &options);
    for (unsigned i = 0; i < 6; i++) {
        rivals_begin(rivals, connect_client(f));
    }
    wait_rivals(f, rivals);
    assert_int_equal(rivals_intrusions(rivals), 0);
    wait_all_over(f, 1);
}

/*
 * The queue is never empty, and every free permit is reserved for its waiters, except after a
 * release that leaves the permit to anybody for a while.
 */
static void one_that_polls_does_not_starve(void **state) {
    struct fixture *f = *state;
    redlock_options options = patient_options(f, masters_uris(f->masters), FIVE);
    struct rivals_options polling = {.request = permit_request(1), .turns = 3, .hastes = true};

    polling.request.retries = UINT32_MAX;
    open_often(f);
    struct rivals *poller = rivals_create(f, &polling);
    struct rivals *rivals = rivals_create(f, &(struct rivals_options){.request = permit_request(1),
                                                                      .turns = UINT_MAX,
                                                                      .is_over = rivals_are_done,
                                                                      .arg = poller});
    options.retry_delay_ms = options.retry_delay_max_ms = 1;
    options.log_level = REDLOCK_LOG_WARN;
    for (unsigned i = 0; i < 6; i++) {
        rivals_begin(rivals, connect_client(f));
    }
    wait_for_permits(f, 5);
    rivals_begin(poller, connect_with(f, &options));
    wait_rivals(f, rivals);
    assert_int_equal(rivals_intrusions(rivals), 0);
    wait_all_over(f, 1);
}

/*
 * The permit is left to anybody, but queued waiters keep their order. The first asks again in 100
 * ms, as it has waited long; the other one's client subscribes by then, so it has an entry.
 */
static void who_comes_later_does_not_overtake(void **state) {
    struct fixture *f = *state;
    redlock_request request = permit_request(1);
    redlock_lock *lock = hold_for_anybody(f, connect_client(f), &request);
    redlock_client *client = connect_client(f);

    set_wall_clock(-60);
    struct call *first = begin_acquire(f, client, &request);
    wait_for_permits(f, 1);
    set_wall_clock(0);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    struct call *newcomer = begin_acquire(f, client, &request);
    assert_int_equal(await(f, first), REDLOCK_OK);
    assert_int_equal(newcomer->ended, 0);
    assert_int_equal(let_go(f, first->lock), REDLOCK_OK);
    take_turn(f, newcomer);
    wait_all_over(f, 1);
}

struct heard {
    struct push_relay *relay;
    size_t messages;
};

static bool has_heard(void *arg) {
    const struct heard *heard = arg;

    return push_relay_pushes(heard->relay) >= heard->messages;
}

/*
 * A permit is left to anybody, and another one comes free in the same call: each master notifies
 * two waiters to ask after that, and neither has to find out by a poll.
 */
static void as_many_are_notified_as_permits_come_free(void **state) {
    struct fixture *f = *state;
    struct push_relay *push_relay = push_relay_create(f);
    struct heard heard = {push_relay, FIVE * 2};
    redlock_request request = permit_request(2);
    redlock_client *holder = connect_client(f);
    redlock_lock *held[2] = {hold_for_anybody(f, holder, &request),
                             hold_for_waiters(f, holder, &request)};
    redlock_client *client = push_relay_client(f, push_relay, REDLOCK_GUARDS_OFF);
    struct call *released[2], *calls[2];

    set_wall_clock(-60);
    for (long long i = 0; i < 2; i++) {
        calls[i] = begin_acquire(f, client, &request);
        wait_for_permits(f, i + 1);
    }
    set_wall_clock(0);
    for (int i = 0; i < 2; i++) {
        released[i] = begin_release(f, held[i]);
    }
    run_until(f, has_heard, &heard, "each master has notified both waiters");
    for (int i = 0; i < 2; i++) {
        assert_int_equal(await(f, released[i]), REDLOCK_OK);
        assert_int_equal(await(f, calls[i]), REDLOCK_OK);
    }
    let_all_go(f, (redlock_lock *[]){calls[0]->lock, calls[1]->lock}, 2);
    wait_all_over(f, 2);
}

/* --------------------------------------------------------------------------------------- faults */

static bool has_ended(void *arg) {
    const struct call *call = arg;

    return call->ended > 0;
}

/* No message comes: the waiter asks again within a reservation. */
static void a_lost_message_costs_a_poll(void **state) {
    struct fixture *f = *state;
    struct push_relay *push_relay = push_relay_create(f);
    redlock_request request = permit_request(2);
    redlock_lock *held[2] = {hold_permit(f, 2), hold_permit(f, 2)};
    redlock_client *client = push_relay_client(f, push_relay, REDLOCK_GUARDS_OFF);

    push_relay_lose(push_relay, 100);
    struct call *call = begin_acquire(f, client, &request);
    wait_for_permits(f, 1);
    assert_int_equal(let_go(f, held[0]), REDLOCK_OK);
    pass_until(f, client, 0, RESERVATION_MS / 4, has_ended, call, "the waiter has asked again");
    assert_ended(call, REDLOCK_OK);
    assert_int_equal(push_relay_lost(push_relay), FIVE);
    let_all_go(f, (redlock_lock *[]){held[1], call->lock}, 2);
    wait_all_over(f, 2);
}

/*
 * The holder has lost its permit at a master, where a new request gets it. It gives it up at once,
 * and takes it no more while it waits: so the holder's next extension brings it back.
 */
static void one_that_its_holder_lost_is_given_up(void **state) {
    struct fixture *f = *state;
    redlock_request request = permit_request(1);
    redlock_lock *lock = hold_permit(f, 1);
    redlock_client *client = connect_client(f);

    rival_frees(f, 0, 1, KEY ":0");
    struct call *call = begin_acquire(f, client, &request);
    wait_for_permits(f, 1);
    wait_holders(f, KEY ":0", FIVE - 1);
    wait_all_answered(f, client);
    pass_polls(f, client);
    assert_int_equal(extend(f, lock, 0), REDLOCK_OK);
    wait_holders(f, KEY ":0", FIVE);
    assert_int_equal(call->ended, 0);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    take_turn(f, call);
    wait_all_over(f, 1);
}

/* The permit is reserved for queued waiters, although none has it yet. */
static void one_that_does_not_wait_does_not_overtake(void **state) {
    struct fixture *f = *state;
    struct push_relay *push_relay = push_relay_create(f);
    redlock_request request = permit_request(1);
    redlock_request hasty = permit_request(1);
    redlock_lock *lock = hold_permit(f, 1);
    redlock_client *client = push_relay_client(f, push_relay, REDLOCK_GUARDS_ON);
    struct call *call = begin_acquire(f, client, &request);

    wait_for_permits(f, 1);
    hasty.wait_ms = 0;
    push_relay_hold(push_relay, SERVER);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    assert_ended(acquire(f, connect_client(f), &hasty), REDLOCK_EHELD);
    push_relay_pass(push_relay, SERVER);
    take_turn(f, call);
    assert_ended(acquire(f, connect_client(f), &hasty), REDLOCK_OK);
}

static bool is_never(void *arg) {
    (void)arg;
    return false;
}

/* Waits for a permit until the process is killed. */
static int run_mortal(size_t member, void *memory, char **uris, size_t count) {
    void *state = NULL;

    (void)member;
    (void)memory;
    if (start_fixture(&state, 0, NULL) != 0) {
        return EXIT_FAILURE;
    }
    redlock_options options = patient_options(state, (const char *const *)uris, count);
    redlock_request request = permit_request(1);
    begin_acquire(state, connect_with(state, &options), &request);
    run_until(state, is_never, NULL, "the process is killed");
    return EXIT_FAILURE;
}

/*
 * The channel of a dead waiter has no subscriber; for a stopped one the permit is reserved for a
 * while.
 */
static void one_that_dies_or_hangs_delays_the_next_by_a_reservation(void **state) {
    struct fixture *f = *state;
    const bool *hangs = f->row;
    redlock_request request = permit_request(1);
    redlock_client *client = connect_client(f);
    redlock_lock *lock = hold_permit(f, 1);
    struct crew *crew = crew_create(f, sizeof(int));
    int result;

    crew_start(crew, 1);
    wait_for_permits(f, 1);
    struct call *next = begin_acquire(f, client, &request);
    wait_for_permits(f, 2);
    if (*hangs) {
        assert_int_equal(kill(crew->pids[0], SIGSTOP), 0);
        assert_int_equal(waitpid(crew->pids[0], &result, WUNTRACED), crew->pids[0]);
    } else {
        crew_kill(crew, 0);
    }
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    pass_until(f, client, 0, RESERVATION_MS / 4, has_ended, next, "the next waiter has the permit");
    assert_ended(next, REDLOCK_OK);
    if (*hangs) {
        crew_kill(crew, 0);
    }
    assert_int_equal(let_go(f, next->lock), REDLOCK_OK);
    wait_all_over(f, 1);
}

/* A permit with a minimum hold is not released at once: the first waiter asks until it is free. */
static void a_permit_that_stays_is_waited_for(void **state) {
    struct fixture *f = *state;
    redlock_request request = permit_request(1);
    redlock_request staying = permit_request(1);
    redlock_client *client = connect_client(f);

    staying.min_hold_ms = 2000;
    redlock_lock *lock = hold_for(f, connect_client(f), &staying);
    struct call *call = begin_acquire(f, client, &request);
    wait_for_permits(f, 1);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    pass_until(f, client, 0, RESERVATION_MS / 4, has_ended, call, "the permit has come free");
    assert_ended(call, REDLOCK_OK);
    assert_int_equal(let_go(f, call->lock), REDLOCK_OK);
    wait_all_over(f, 1);
}

/* Without the rights for the queue or for messages, waiting is polling. */
static void without_the_rights_it_polls(void **state) {
    struct fixture *f = *state;
    const char *const *rules = f->row;
    redlock_request request = permit_request(1);

    for (size_t i = 0; i < FIVE; i++) {
        char command[160];

        snprintf(command, sizeof(command), "ACL SETUSER default %s", *rules);
        free(masters_query(f->masters, i, command));
    }
    redlock_lock *lock = hold_permit(f, 1);
    struct call *call = begin_acquire(f, connect_client(f), &request);
    wait_logged(f, "acquiring -> queued");
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    take_turn(f, call);
}

/* Begins a request of a user who lacks a right to the queue, after a holder and a waiter. */
static struct call *begin_poor(struct fixture *f, redlock_request *request, struct call **next) {
    const char *const *rules = f->row;
    redlock_client *poor = connect_without(f, *rules);
    struct call *call = begin_acquire(f, poor, request);

    wait_warnings(f, "no messages", "no queue entries, the user needs +zadd, +zrange");
    *next = begin_acquire(f, connect_client(f), request);
    wait_for_permits(f, 1);
    return call;
}

/* An entry that its owner could not remove would be offered a permit again and again. */
static void without_all_rights_there_is_no_entry(void **state) {
    struct fixture *f = *state;
    redlock_request request = permit_request(1);
    redlock_lock *lock = hold_permit(f, 1);
    struct call *next;
    struct call *poor = begin_poor(f, &request, &next);

    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    assert_int_equal(await(f, next), REDLOCK_OK);
    wait_for_permits(f, 0);
    assert_int_equal(poor->ended, 0);
    assert_int_equal(let_go(f, next->lock), REDLOCK_OK);
    assert_int_equal(await(f, poor), REDLOCK_OK);
    wait_for_permits(f, 0);
    struct call *last = begin_acquire(f, connect_client(f), &request);
    wait_for_permits(f, 1);
    assert_int_equal(let_go(f, poor->lock), REDLOCK_OK);
    take_turn(f, last);
    wait_all_over(f, 1);
}

int main(int argc, char **argv) {
    static const bool no = false, yes = true;
    static const char *const no_channels = "resetchannels";
    static const char *const no_sets = "-zadd";
    static const char *const no_flag = "-exists";
    static const char *const no_removal = "-zrem";
    const struct CMUnitTest tests[] = {
        ON_FIVE_MASTERS(they_are_served_in_the_order_of_their_requests),
        ON_FIVE_MASTERS(as_many_are_served_as_are_released),
        ON_FIVE_MASTERS(an_entry_is_given_up),
        ON_SIZE("sixteen_for_four", 16, 4, false),
        ON_SIZE("many_for_four", MOST, 4, false),
        ON_SIZE("many_for_eight_fenced", MOST, 8, true),
        ON_SIZE("thousands_for_four", BURST, 4, false),
        ON_ROW("one_permit_is_a_lock", one_permit_is_a_lock, five_masters, &no),
        ON_ROW("one_fenced_permit_is_a_lock", one_permit_is_a_lock, five_masters, &yes),
        ON_FIVE_MASTERS(one_that_polls_does_not_starve),
        ON_FIVE_MASTERS(who_comes_later_does_not_overtake),
        ON_FIVE_MASTERS(as_many_are_notified_as_permits_come_free),
        ON_FIVE_MASTERS(a_lost_message_costs_a_poll),
        ON_FIVE_MASTERS(one_that_its_holder_lost_is_given_up),
        ON_FIVE_MASTERS(one_that_does_not_wait_does_not_overtake),
        ON_ROW("a_dead_waiter_delays_nobody",
               one_that_dies_or_hangs_delays_the_next_by_a_reservation, five_masters, &no),
        ON_ROW("a_stopped_waiter_delays_by_a_reservation",
               one_that_dies_or_hangs_delays_the_next_by_a_reservation, five_masters, &yes),
        ON_FIVE_MASTERS(a_permit_that_stays_is_waited_for),
        ON_ROW("without_channels_it_polls", without_the_rights_it_polls, five_masters,
               &no_channels),
        ON_ROW("without_entries_it_polls", without_the_rights_it_polls, five_masters, &no_sets),
        ON_ROW("without_zadd_there_is_no_entry", without_all_rights_there_is_no_entry, five_masters,
               &no_sets),
        ON_ROW("without_zrem_there_is_no_entry", without_all_rights_there_is_no_entry, five_masters,
               &no_removal),
        ON_ROW("without_the_flag_it_polls", without_the_rights_it_polls, five_masters, &no_flag),
    };
    int result;

    if (crew_member(argc, argv, sizeof(int), run_mortal, &result)) {
        return result;
    }
    return cmocka_run_group_tests_name("waiting_permits", tests, NULL, NULL);
}
