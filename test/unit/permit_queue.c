/*
 * Tests the "open" member of the queue for permits (lib/wire/scripts/parts/permits.lua): after 1
 * release in 128 a permit is open to all clients for a while, and the first waiter is notified to
 * ask again afterwards. The library's scripts run on a store with the test's own clock.
 */
#include "unit.h"

#include "script_server.h"

#include <inttypes.h>
#include <stdio.h>

#define QUEUE "pool" PERMITS_SUFFIX
#define TTL "50000"

/* Tokens. By its last two digits, the release of OPENER opens the queue. */
#define TOKEN(digit, end)                                                                          \
    digit "0000000000000000000"                                                                    \
          "000000000000000000" end
#define OPENER TOKEN("1", "01")
#define OTHER TOKEN("2", "02")
#define POLLER TOKEN("3", "ff")
#define FIRST TOKEN("4", "ff")
#define SECOND TOKEN("5", "ff")

static const char *permits; /* of the semaphore "pool" */

/* Starts a server; the semaphore "pool" has so many permits. */
static void start(struct script_server *server, const char *count) {
    script_server_start(server);
    permits = count;
}

/* Asks for a permit without an entry. Returns whether it was granted. */
static bool takes(struct script_server *server, const char *key, const char *token) {
    struct reply reply = CALL(server, SCRIPT_PERMIT, "1", key, token, TTL, "0", "0", permits);
    return script_server_granted(&reply);
}

/* Asks for a permit with an entry. Returns whether it was granted. */
static bool queues(struct script_server *server, const char *token, const char *ticket) {
    struct reply reply = CALL(server, SCRIPT_QUEUE_PERMIT, "1", "pool:0", CHANNEL, token, TTL,
                              "1000", "0", "0", ticket, permits);
    return script_server_granted(&reply);
}

static void release(struct script_server *server, const char *key, const char *token,
                    const char *ticket) {
    CALL(server, SCRIPT_PERMIT_RELEASE, "1", key, token, ticket);
}

/* Returns whether the queue has the member that opens it until `until_ms`. */
static bool is_open_until(struct script_server *server, uint64_t until_ms) {
    char member[40];
    snprintf(member, sizeof(member), "open %" PRIu64, until_ms);
    return RUN(server, "ZSCORE", QUEUE, member).type == REPLY_STRING;
}

/* Opens the queue directly until `until_ms`. */
static void open_until(struct script_server *server, uint64_t until_ms) {
    char member[40];
    snprintf(member, sizeof(member), "open %" PRIu64, until_ms);
    RUN(server, "ZADD", QUEUE, "0", member);
}

static long long members(struct script_server *server) {
    return RUN(server, "ZCOUNT", QUEUE, "-inf", "+inf").integer;
}

/* Starts a server whose only permit OPENER holds; FIRST waits for it, with this ticket. */
static const char *start_with_waiter(struct script_server *server, char ticket[32]) {
    start(server, "1");
    assert_true(takes(server, "pool:0", OPENER));
    assert_false(queues(server, FIRST, script_server_ticket(server, ticket)));
    return ticket;
}

/* Does the same, and opens the queue after 3200 ms, for 100 ms. */
static const char *start_open(struct script_server *server, char ticket[32]) {
    start_with_waiter(server, ticket);
    server->now_ms += 3200;
    release(server, "pool:0", OPENER, "0");
    assert_true(is_open_until(server, server->now_ms + 100));
    return ticket;
}

/* ---- tests ---- */

/* The time is that for keys (wait_queue.c), in queues of up to 256 waiters and in longer ones. */
static void test_a_release_opens_the_queue_for_a_while(void **state) {
    (void)state;
    static const struct {
        uint64_t waited_ms, open_ms;
        unsigned waiters;
    } rows[] = {{0, 1, 1},      {31, 1, 1},      {320, 10, 1},    {3199, 99, 1},
                {3200, 100, 1}, {40000, 100, 1}, {1600, 50, 256}, {1600, 25, 512}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct script_server server;
        char ticket[32], push[160];
        start_with_waiter(&server, ticket);
        for (unsigned number = 1; number < rows[i].waiters; number++) {
            char entry[160]; /* after FIRST */
            snprintf(entry, sizeof(entry), "f%039u " CHANNEL " 1000 0 1", number);
            RUN(&server, "ZADD", QUEUE, ticket, entry);
        }
        server.now_ms += rows[i].waited_ms;
        release(&server, "pool:0", OPENER, "0");
        assert_true(is_open_until(&server, server.now_ms + rows[i].open_ms));
        assert_int_equal(server.pushes, 1);
        snprintf(push, sizeof(push), "0000 %" PRIu64 "000 %" PRIu64 " %.20s%020d " QUEUE,
                 server.now_ms, rows[i].open_ms, FIRST, 0);
        assert_string_equal(server.last_push, push);
        store_finish(&server.store);
    }
}

static void test_other_releases_reserve_the_permit(void **state) {
    (void)state;
    struct script_server server;
    char ticket[32];
    start(&server, "1");
    assert_true(takes(&server, "pool:0", OTHER));
    assert_false(queues(&server, FIRST, script_server_ticket(&server, ticket)));
    release(&server, "pool:0", OTHER, "0");
    assert_int_equal(server.pushes, 1);
    assert_int_equal(members(&server), 1);
    assert_false(takes(&server, "pool:0", POLLER));
    assert_true(queues(&server, FIRST, ticket));
    store_finish(&server.store);
}

static void test_while_it_is_open_anybody_has_the_permit(void **state) {
    (void)state;
    struct script_server server;
    char ticket[32];
    start_open(&server, ticket);
    server.now_ms += 99;
    assert_true(takes(&server, "pool:0", POLLER));
    store_finish(&server.store);
}

/* Then the permit is reserved for the first waiter again. */
static void test_the_time_ends(void **state) {
    (void)state;
    struct script_server server;
    char ticket[32];
    start_open(&server, ticket);
    server.now_ms += 100;
    assert_false(takes(&server, "pool:0", POLLER));
    assert_int_equal(server.pushes, 2);
    assert_int_equal(members(&server), 1);
    assert_true(queues(&server, FIRST, ticket));
    store_finish(&server.store);
}

static void test_waiters_keep_their_order(void **state) {
    (void)state;
    struct script_server server;
    char ticket[32], later[32];
    start_with_waiter(&server, ticket);
    server.now_ms += 3200;
    assert_false(queues(&server, SECOND, script_server_ticket(&server, later)));
    release(&server, "pool:0", OPENER, "0");
    assert_false(queues(&server, SECOND, later));
    assert_true(queues(&server, FIRST, ticket));
    store_finish(&server.store);
}

/* A time that is too far ahead was written before the clock was set back, or is a lie. */
static void test_the_longest_time_is_a_reservation(void **state) {
    (void)state;
    static const struct {
        uint64_t ms;
        bool is_open;
    } rows[] = {{1001, true}, {1002, false}, {3600000, false}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct script_server server;
        char ticket[32];
        start_with_waiter(&server, ticket);
        open_until(&server, server.now_ms + rows[i].ms);
        RUN(&server, "DEL", "pool:0");
        assert_int_equal(takes(&server, "pool:0", POLLER), rows[i].is_open);
        assert_int_equal(is_open_until(&server, server.now_ms + rows[i].ms), rows[i].is_open);
        store_finish(&server.store);
    }
}

/* The first waiter asks again anyway; a second message would only make it do so twice. */
static void test_while_it_is_open_releases_do_not_notify_the_first_again(void **state) {
    (void)state;
    struct script_server server;
    char ticket[32];
    start(&server, "2");
    assert_true(takes(&server, "pool:0", OPENER));
    assert_true(takes(&server, "pool:1", OTHER));
    assert_false(queues(&server, FIRST, script_server_ticket(&server, ticket)));
    server.now_ms += 3200;
    release(&server, "pool:0", OPENER, "0");
    assert_int_equal(server.pushes, 1);
    release(&server, "pool:1", OTHER, "0");
    assert_int_equal(server.pushes, 1);
    store_finish(&server.store);
}

/* Starts a server with two permits, one of them open; FIRST, a dead waiter and SECOND wait. */
static void start_open_with_three(struct script_server *server, char ticket[32], char later[32]) {
    start(server, "2");
    assert_true(takes(server, "pool:0", OPENER));
    assert_true(takes(server, "pool:1", OTHER));
    assert_false(queues(server, FIRST, script_server_ticket(server, ticket)));
    RUN(server, "ZADD", QUEUE, ticket,
        "g000000000000000000000000000000000000000 " DEAF " 1000 0 2");
    server->now_ms++;
    assert_false(queues(server, SECOND, script_server_ticket(server, later)));
    server->now_ms += 3200;
    release(server, "pool:0", OPENER, "0");
    assert_int_equal(server->pushes, 1);
}

/* As many as there are free permits ask afterwards; one whose client is dead is none of them. */
static void test_while_it_is_open_releases_notify_the_next(void **state) {
    (void)state;
    struct script_server server;
    char ticket[32], later[32], push[160];
    start_open_with_three(&server, ticket, later);
    server.now_ms += 40;
    release(&server, "pool:1", OTHER, "0");
    assert_int_equal(server.pushes, 2);
    snprintf(push, sizeof(push), "0000 %" PRIu64 "000 60 %.20s%020d " QUEUE, server.now_ms, SECOND,
             0);
    assert_string_equal(server.last_push, push);
    assert_int_equal(members(&server), 3);
    store_finish(&server.store);
}

/* The first of the time that is over reserves all permits that came free in it. */
static void test_a_release_after_that_offers_all(void **state) {
    (void)state;
    struct script_server server;
    char ticket[32], later[32];
    start_open_with_three(&server, ticket, later);
    server.now_ms += 100;
    release(&server, "pool:1", OTHER, "0");
    assert_int_equal(server.pushes, 3);
    assert_int_equal(members(&server), 2);
    assert_false(takes(&server, "pool:0", POLLER));
    assert_true(queues(&server, FIRST, ticket));
    store_finish(&server.store);
}

/* Without entries, nothing may keep the queue's key alive. */
static void test_the_last_entry_ends_it(void **state) {
    (void)state;
    struct script_server server;
    char ticket[32], later[32];
    start_open(&server, ticket);
    assert_true(takes(&server, "pool:0", POLLER));
    assert_false(queues(&server, SECOND, script_server_ticket(&server, later)));
    release(&server, "pool:0", FIRST, ticket);
    assert_true(is_open_until(&server, server.now_ms + 100));
    release(&server, "pool:0", SECOND, later);
    assert_int_equal(members(&server), 0);
    store_finish(&server.store);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_release_opens_the_queue_for_a_while),
        cmocka_unit_test(test_other_releases_reserve_the_permit),
        cmocka_unit_test(test_while_it_is_open_anybody_has_the_permit),
        cmocka_unit_test(test_the_time_ends),
        cmocka_unit_test(test_waiters_keep_their_order),
        cmocka_unit_test(test_the_longest_time_is_a_reservation),
        cmocka_unit_test(test_while_it_is_open_releases_do_not_notify_the_first_again),
        cmocka_unit_test(test_while_it_is_open_releases_notify_the_next),
        cmocka_unit_test(test_a_release_after_that_offers_all),
        cmocka_unit_test(test_the_last_entry_ends_it),
    };
    return cmocka_run_group_tests_name("permit_queue", tests, NULL, NULL);
}
