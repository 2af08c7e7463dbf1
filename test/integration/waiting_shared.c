/*
 * Readers and writers wait in the queue of their key, with plain and fenced locks: consecutive
 * readers at the front are admitted together, all others alone.
 */
#include "clocks.h"
#include "harness.h"
#include "master_data.h"
#include "missing_rights.h"
#include "plain.h"
#include "wait_queue.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY "orders:42"
#define QUEUE "orders:42::queue"
#define NOTE "orders:42::writer"
#define FIVE 5
#define PAIR 2
#define OTHERS 4

static redlock_request request_as(redlock_mode mode) {
    return waiting_request_of(KEY, mode, 0);
}

/* Begins a request of a new client, which is to queue after `before` others. */
static struct call *join_queue(struct fixture *f, const redlock_request *request,
                               long long before) {
    struct call *call = begin_acquire(f, connect_client(f), request);

    wait_in_queue(f, KEY, before + 1);
    return call;
}

static struct call *join_queue_as(struct fixture *f, redlock_mode mode, long long before) {
    redlock_request request = request_as(mode);

    return join_queue(f, &request, before);
}

/* Takes a share without waiting. */
static redlock_lock *hold_share(struct fixture *f) {
    redlock_request request = request_for(KEY, LONG_TTL_MS);

    request.mode = REDLOCK_READER;
    return hold_for(f, connect_client(f), &request);
}

static void let_in(struct fixture *f, struct call *call) {
    assert_int_equal(await(f, call), REDLOCK_OK);
}

static void let_out(struct fixture *f, struct call *call) {
    assert_int_equal(let_go(f, call->lock), REDLOCK_OK);
}

/* -------------------------------------------------------------------------------------- order */

/* Two readers, a writer, a reader, an exclusive request, and one more writer. */
static void the_queue_is_the_order(struct fixture *f, bool fenced) {
    redlock_request writer = request_as(REDLOCK_WRITER);
    redlock_request exclusive = waiting_request(KEY);
    redlock_lock *lock = hold(f, connect_client(f), KEY, LONG_TTL_MS);

    writer.fenced = exclusive.fenced = fenced;
    struct call *readers[PAIR] = {join_queue_as(f, REDLOCK_READER, 0),
                                  join_queue_as(f, REDLOCK_READER, 1)};
    struct call *others[OTHERS] = {join_queue(f, &writer, 2), join_queue_as(f, REDLOCK_READER, 3),
                                   join_queue(f, &exclusive, 4), join_queue(f, &writer, 5)};
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    let_in(f, readers[0]);
    let_in(f, readers[1]);
    let_out(f, readers[0]);
    assert_int_equal(others[0]->ended, 0);
    let_out(f, readers[1]);
    for (size_t i = 0; i < OTHERS; i++) {
        let_in(f, others[i]);
        for (size_t k = i + 1; k < OTHERS; k++) {
            assert_int_equal(others[k]->ended, 0);
        }
        let_out(f, others[i]);
    }
    wait_queue_empty(f, KEY);
    wait_released(f, KEY);
}

static void readers_and_writers_are_served_in_order(void **state) {
    the_queue_is_the_order(*state, false);
}

static void so_are_fenced_writers(void **state) {
    the_queue_is_the_order(*state, true);
}

/* Readers that come after a writer wait beside the readers that hold the key, queued or not. */
static void a_writer_in_queue_is_not_passed(void **state) {
    struct fixture *f = *state;
    redlock_request at_once = request_for(KEY, LONG_TTL_MS);
    redlock_lock *first = hold_share(f);
    struct call *writer = join_queue_as(f, REDLOCK_WRITER, 0);
    struct call *reader = join_queue_as(f, REDLOCK_READER, 1);

    at_once.mode = REDLOCK_READER;
    assert_ended(acquire(f, connect_client(f), &at_once), REDLOCK_EHELD);
    assert_int_equal(extend(f, first, 0), REDLOCK_OK);
    assert_int_equal(reader->ended, 0);
    for (size_t i = 0; i < FIVE; i++) {
        assert_int_equal(masters_query_integer(f->masters, i, "EXISTS " NOTE), 0);
    }
    assert_int_equal(let_go(f, first), REDLOCK_OK);
    let_in(f, writer);
    assert_int_equal(reader->ended, 0);
    let_out(f, writer);
    let_in(f, reader);
    let_out(f, reader);
    wait_queue_empty(f, KEY);
}

/* No waiter is ahead of them: they need not wait for each other. */
static void readers_that_may_come_in_do_not_wait(void **state) {
    struct fixture *f = *state;
    redlock_request request = request_as(REDLOCK_READER);
    redlock_client *client = connect_client(f);
    struct call *readers[PAIR];

    for (size_t i = 0; i < PAIR; i++) {
        readers[i] = begin_acquire(f, client, &request);
        let_in(f, readers[i]);
    }
    wait_in_queue(f, KEY, 0);
    for (size_t i = 0; i < PAIR; i++) {
        let_out(f, readers[i]);
    }
    wait_queue_empty(f, KEY);
}

/* --------------------------------------------------------------------------- waiters that leave */

/* Readers join the readers that hold the key as soon as the writer ahead of them has left. */
static void readers_after_a_writer_that_leaves_come_in(void **state) {
    struct fixture *f = *state;
    redlock_lock *first = hold_share(f);
    struct call *writer = join_queue_as(f, REDLOCK_WRITER, 0);
    struct call *readers[PAIR] = {join_queue_as(f, REDLOCK_READER, 1),
                                  join_queue_as(f, REDLOCK_READER, 2)};

    assert_int_equal(redlock_cancel(writer->lock), REDLOCK_OK);
    assert_int_equal(await(f, writer), REDLOCK_ECANCELED);
    for (size_t i = 0; i < PAIR; i++) {
        let_in(f, readers[i]);
    }
    for (size_t i = 0; i < PAIR; i++) {
        let_out(f, readers[i]);
    }
    assert_int_equal(let_go(f, first), REDLOCK_OK);
    wait_queue_empty(f, KEY);
    wait_released(f, KEY);
}

/* Puts an entry without a client at the front: of a form, on a channel. */
static void put_first(struct fixture *f, size_t master, char form, const char *channel) {
    char ghost[160];

    snprintf(ghost, sizeof(ghost), "%040d %s 600000 %c 0", 7, channel, form);
    assert_int_equal(masters_query_integer(f->masters, master, "ZADD " QUEUE " 1 %s", ghost), 1);
}

/* Returns a client that receives messages of all masters: it has waited for another key. */
static redlock_client *connect_listening(struct fixture *f) {
    static const char other[] = "other";
    redlock_request request = waiting_request(other);
    redlock_client *client = connect_client(f);
    redlock_lock *lock = hold(f, connect_client(f), other, LONG_TTL_MS);
    struct call *call = begin_acquire(f, client, &request);

    wait_in_queue(f, other, 1);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    let_in(f, call);
    let_out(f, call);
    return client;
}

/*
 * Leaves a dead writer in the queue at the masters from `first` on, and queues a reader after it.
 */
static void meet_the_dead(struct fixture *f, size_t first) {
    redlock_request request = request_as(REDLOCK_READER);
    redlock_client *client = connect_listening(f);
    redlock_lock *share = hold_share(f);

    for (size_t i = first; i < FIVE; i++) {
        put_first(f, i, 'w', "redlock:of-the-dead");
    }
    struct call *reader = begin_acquire(f, client, &request);
    let_in(f, reader);
    assert_int_equal(extend(f, share, 0), REDLOCK_OK);
    let_out(f, reader);
    assert_int_equal(let_go(f, share), REDLOCK_OK);
    rival_frees(f, 0, FIVE, QUEUE); /* masters that the reader did not need may have the entry */
    wait_queue_empty(f, KEY);
}

/* A writer that died in the queue keeps readers out until one of them polls. */
static void a_dead_writer_keeps_no_readers_out(void **state) {
    meet_the_dead(*state, 0);
}

/* The same holds if a monitor subscribes to all channels. */
static void a_dead_writer_is_found_out_though_others_listen_by_patterns(void **state) {
    eavesdrop(*state, "PSUBSCRIBE *");
    meet_the_dead(*state, 0);
}

/* Two masters admit the reader at once, so that it requeues before it polls. */
static void nor_does_one_at_a_quorum(void **state) {
    meet_the_dead(*state, 2);
}

/* The key skips a reader that died in the queue, and is not shared with it. */
static void a_dead_reader_is_not_let_in(void **state) {
    struct fixture *f = *state;
    redlock_lock *lock = hold(f, connect_client(f), KEY, LONG_TTL_MS);
    struct call *reader = join_queue_as(f, REDLOCK_READER, 0);
    struct call *writer = join_queue_as(f, REDLOCK_WRITER, 1);

    for (size_t i = 0; i < FIVE; i++) {
        put_first(f, i, 'r', "redlock:of-the-dead");
    }
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    let_in(f, reader);
    let_out(f, reader);
    let_in(f, writer);
    let_out(f, writer);
    wait_queue_empty(f, KEY);
    wait_released(f, KEY);
}

/* A client gives back a share that is pushed to a request that no longer waits. */
static void a_share_for_nobody_is_given_back(void **state) {
    struct fixture *f = *state;
    redlock_lock *lock = hold(f, connect_client(f), KEY, LONG_TTL_MS);
    struct call *writer = join_queue_as(f, REDLOCK_WRITER, 0);

    for (size_t i = 0; i < FIVE; i++) {
        char *channel = first_channel(f, i, KEY);

        assert_non_null(channel);
        put_first(f, i, 'r', channel);
        free(channel);
    }
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    let_in(f, writer);
    let_out(f, writer);
    wait_queue_empty(f, KEY);
    wait_released(f, KEY);
}

/* -------------------------------------------------------------------------------------- rights */

/* They poll instead. A writer leaves intents, as without a queue readers would never make room. */
static void without_rights_they_poll(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_without(f, "-subscribe");
    redlock_request writer = request_as(REDLOCK_WRITER);
    redlock_request reader = request_as(REDLOCK_READER);
    redlock_lock *first = hold_share(f);
    struct call *alone = begin_acquire(f, client, &writer);

    wait_holders(f, NOTE, FIVE);
    assert_int_equal(let_go(f, first), REDLOCK_OK);
    let_in(f, alone);
    struct call *beside = begin_acquire(f, client, &reader);
    let_out(f, alone);
    let_in(f, beside);
    let_out(f, beside);
    wait_queue_empty(f, KEY);
}

/*
 * A reader whose user may not count readers could neither keep its share nor give it back: it gets
 * no share and no entry, is refused at once, and delays no other request.
 */
static void a_reader_that_may_not_count_delays_nobody(void **state) {
    struct fixture *f = *state;
    redlock_client *poor = connect_without(f, "-zcount");
    redlock_request request = request_as(REDLOCK_READER);
    redlock_lock *lock = hold(f, connect_client(f), KEY, LONG_TTL_MS);

    assert_int_equal(await(f, begin_acquire(f, poor, &request)), REDLOCK_EACCESS);
    struct call *writer = join_queue_as(f, REDLOCK_WRITER, 0);
    struct call *other = join_queue_as(f, REDLOCK_READER, 1);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    let_in(f, writer);
    let_out(f, writer);
    let_in(f, other);
    let_out(f, other);
    assert_int_equal(await(f, begin_acquire(f, poor, &request)), REDLOCK_EACCESS);
    assert_int_equal(masters_query_integer(f->masters, 0, "EXISTS " KEY), 0);
    change_rights(f, "+zcount");
    struct call *reader = begin_acquire(f, poor, &request);
    let_in(f, reader);
    let_out(f, reader);
    wait_queue_empty(f, KEY);
}

/* -------------------------------------------------------------------------------------- crowds */

#define CROWD 200
#define CROWD_CLIENTS 4

static void two_hundred_readers_come_in_together(void **state) {
    struct fixture *f = *state;
    redlock_request request = request_as(REDLOCK_READER);
    redlock_client *clients[CROWD_CLIENTS];
    redlock_lock *lock = hold(f, connect_client(f), KEY, LONG_TTL_MS);
    struct call *calls[CROWD];

    for (size_t i = 0; i < CROWD_CLIENTS; i++) {
        clients[i] = connect_client(f);
    }
    for (size_t i = 0; i < CROWD; i++) {
        calls[i] = begin_acquire(f, clients[i % CROWD_CLIENTS], &request);
    }
    wait_in_queue(f, KEY, CROWD);
    struct call *writer = join_queue_as(f, REDLOCK_WRITER, CROWD);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    for (size_t i = 0; i < CROWD; i++) {
        let_in(f, calls[i]);
    }
    assert_int_equal(writer->ended, 0);
    for (size_t i = 0; i < CROWD; i++) {
        let_out(f, calls[i]);
    }
    let_in(f, writer);
    let_out(f, writer);
    wait_queue_empty(f, KEY);
}

#define VISITORS 6
#define VISITS 12

/* The inside of the lock, as its visitors and a foreign client see it. */
struct room {
    unsigned readers, others;
    unsigned intrusions;
};

struct visitor {
    struct fixture *f;
    redlock_client *client;
    struct room *room;
    unsigned number, visits;
    bool is_reader;
    redlock_lock *lock;
};

static void visit(struct visitor *visitor);

static void on_gone(struct call *call, void *arg) {
    (void)call;
    visit(arg);
}

static void on_seen(struct call *call, void *arg) {
    struct visitor *visitor = arg;
    unsigned *count = visitor->is_reader ? &visitor->room->readers : &visitor->room->others;

    (void)call;
    --*count;
    struct call *release = begin_release(visitor->f, visitor->lock);
    release->then = on_gone;
    release->then_arg = visitor;
}

static void on_inside(struct call *call, void *arg) {
    struct visitor *visitor = arg;
    struct room *room = visitor->room;

    assert_ended(call, REDLOCK_OK);
    visitor->lock = call->lock;
    room->intrusions += room->others > 0 || (!visitor->is_reader && room->readers > 0);
    room->readers += visitor->is_reader;
    room->others += !visitor->is_reader;
    struct call *stay = begin_extend(visitor->f, call->lock, 0);
    stay->then = on_seen;
    stay->then_arg = visitor;
}

/* Requests the lock once more: as a reader, a writer, or exclusively, fenced or not. */
static void visit(struct visitor *visitor) {
    static const redlock_mode modes[] = {REDLOCK_READER, REDLOCK_WRITER, REDLOCK_READER,
                                         REDLOCK_EXCLUSIVE};
    unsigned turn = visitor->number + visitor->visits;
    redlock_request request = request_as(modes[turn % 4]);

    if (visitor->visits++ == VISITS) {
        return;
    }
    visitor->is_reader = request.mode == REDLOCK_READER;
    request.fenced = !visitor->is_reader && turn % 3 == 0;
    struct call *call = begin_acquire(visitor->f, visitor->client, &request);
    call->then = on_inside;
    call->then_arg = visitor;
}

static void plain_enters(void *arg) {
    struct room *room = arg;

    room->intrusions += room->readers > 0 || room->others > 0;
    room->others++;
}

static void plain_leaves(void *arg) {
    struct room *room = arg;

    room->others--;
}

/* All kinds in one queue, and beside them a client that does not know queues. */
static void all_kinds_have_their_turns(void **state) {
    struct fixture *f = *state;
    struct room room = {0};
    const struct plain_options options = {.key = KEY,
                                          .ttl_ms = LONG_TTL_MS,
                                          .poll_ms = 1,
                                          .on_in = plain_enters,
                                          .on_out = plain_leaves,
                                          .arg = &room};
    struct visitor visitors[VISITORS];
    struct plain *plain = plain_begin(f, &options);

    for (unsigned i = 0; i < VISITORS; i++) {
        visitors[i] =
            (struct visitor){.f = f, .client = connect_client(f), .room = &room, .number = i};
        visit(&visitors[i]);
    }
    wait_all_ended(f, "all visitors have had their turns");
    plain_end(plain);
    assert_int_equal(room.intrusions, 0);
    for (unsigned i = 0; i < VISITORS; i++) {
        assert_int_equal(visitors[i].visits, VISITS + 1);
    }
    wait_queue_empty(f, KEY);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        ON_FIVE_MASTERS(readers_and_writers_are_served_in_order),
        ON_FIVE_MASTERS(so_are_fenced_writers),
        ON_FIVE_MASTERS(a_writer_in_queue_is_not_passed),
        ON_FIVE_MASTERS(readers_that_may_come_in_do_not_wait),
        ON_FIVE_MASTERS(readers_after_a_writer_that_leaves_come_in),
        ON_FIVE_MASTERS(a_dead_writer_keeps_no_readers_out),
        ON_FIVE_MASTERS(a_dead_writer_is_found_out_though_others_listen_by_patterns),
        ON_FIVE_MASTERS(nor_does_one_at_a_quorum),
        ON_FIVE_MASTERS(a_dead_reader_is_not_let_in),
        ON_FIVE_MASTERS(a_share_for_nobody_is_given_back),
        ON_FIVE_MASTERS(without_rights_they_poll),
        ON_FIVE_MASTERS(a_reader_that_may_not_count_delays_nobody),
        ON_FIVE_MASTERS(two_hundred_readers_come_in_together),
        ON_FIVE_MASTERS(all_kinds_have_their_turns),
    };
    return cmocka_run_group_tests_name("waiting_shared", tests, NULL, NULL);
}
