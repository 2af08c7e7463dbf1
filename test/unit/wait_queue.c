/*
 * Tests what the wait queue's scripts (lib/wire/scripts/parts/queue.lua) do where some waiters are
 * dead, so that nobody has subscribed to their channels, or hang, so that they never ask again; and
 * for how long a release opens a queue to all clients.
 */
#include "unit.h"

#include "script_server.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define KEY "k"
#define TTL "50000"
#define RESERVATION_MS 1000

/* The values of the client that holds the key, and of those that ask for it. */
#define VALUE(digit) digit "000000000000000000000000000000000000000"
#define HOLDER VALUE("a")
#define OPENER "0000000000000000000000000000000000000001" /* its release opens the queue */
#define PASSER "00000000000000000000000000000000000000ff" /* its release does not */
#define WRITER VALUE("b")
#define READER VALUE("c")
#define ASKER VALUE("d")

static void put_at(struct script_server *server, unsigned number, const char *ticket,
                   const char *channel, char form) {
    char entry[160];
    snprintf(entry, sizeof(entry), "%040u %s 1000 %c 0", number, channel, form);
    RUN(server, "ZADD", KEY QUEUE_SUFFIX, ticket, entry);
}

/* Puts a waiter with the ticket `number` into the queue. */
static void put(struct script_server *server, unsigned number, const char *channel, char form) {
    char ticket[16];
    snprintf(ticket, sizeof(ticket), "%u", number);
    put_at(server, number, ticket, channel, form);
}

static struct reply share(struct script_server *server, const char *value) {
    return CALL(server, SCRIPT_SHARE, "3", KEY, KEY READERS_SUFFIX, KEY WRITER_SUFFIX, value, TTL,
                "1000");
}

/* Asks with an entry: for the key alone, as a writer, or for a share. */
static struct reply ask(struct script_server *server, const char *value, const char *form,
                        const char *ticket) {
    return CALL(server, SCRIPT_QUEUE, "1", KEY, CHANNEL, value, TTL, "1000", form, "0", ticket);
}

/* Starts a server at which a reader holds the key, and then a writer has queued for it. */
static void start_with_writer(struct script_server *server, char ticket[32]) {
    script_server_start(server);
    struct reply reply = share(server, HOLDER);
    assert_true(script_server_granted(&reply));
    reply = ask(server, WRITER, "w", script_server_ticket(server, ticket));
    assert_false(script_server_granted(&reply));
}

static bool is_admitted(struct script_server *server, const char *ticket) {
    struct reply reply = CALL(server, SCRIPT_SHARE_QUEUE, "3", KEY, KEY READERS_SUFFIX,
                              KEY WRITER_SUFFIX, CHANNEL, READER, TTL, "1000", "r", "0", ticket);
    return script_server_granted(&reply);
}

/* ---- tests ---- */

/*
 * A waiter whose counter is out of range cannot get the key that comes free: it is notified to ask
 * again at once, and learns the reason. The next one gets the key.
 */
static void test_a_waiter_with_a_used_up_counter_asks_again(void **state) {
    (void)state;
    static const char forms[] = {'n', 'v', 'g'};
    for (size_t i = 0; i < sizeof(forms); i++) {
        struct script_server server;
        char entry[160];
        script_server_start(&server);
        RUN(&server, "SET", KEY, PASSER, "PX", TTL);
        RUN(&server, "SET", KEY COUNTER_SUFFIX, "9007199254740990");
        snprintf(entry, sizeof(entry), WRITER " " CHANNEL " 1000 %c 0%s", forms[i],
                 forms[i] == 'g' ? " 1:" KEY : "");
        RUN(&server, "ZADD", KEY QUEUE_SUFFIX, "1", entry);
        put(&server, 2, CHANNEL, '0');
        RUN(&server, "SET", WAITING_KEY, "1");
        RUN(&server, "ZADD", QUEUES_KEY, "1", KEY);
        struct reply reply = CALL(&server, SCRIPT_RELEASE, "1", KEY, PASSER);
        assert_string_equal(reply.text, "y");
        assert_int_equal(server.pushes, 2);
        assert_int_equal(strncmp(server.first_push, "0000 ", 5), 0);
        assert_non_null(strstr(server.first_push, " 0 " WRITER " " KEY));
        assert_int_not_equal(strncmp(server.last_push, "0000 ", 5), 0); /* the next has the key */
        store_finish(&server.store);
    }
}

/*
 * The more are ahead, the less often a waiter asks. The dead, which do not ask, count only among
 * 16; of more entries, the share of the last 2 that listens.
 */
static void test_of_many_ahead_those_that_listen_count(void **state) {
    (void)state;
    static const struct {
        unsigned dead, listen, dead_after;
        const char *end; /* of the answer */
    } rows[] = {{0, 0, 0, "q0"},   {0, 16, 0, "q16"}, {16, 0, 0, "q16"},   {17, 0, 0, "q0"},
                {200, 0, 0, "q0"}, {0, 17, 0, "q17"}, {0, 300, 0, "q300"}, {98, 2, 0, "q100"},
                {99, 1, 0, "q50"}, {0, 99, 1, "q50"}, {0, 98, 2, "q0"}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct script_server server;
        unsigned number = 0;
        char ticket[32];
        script_server_start(&server);
        RUN(&server, "SET", KEY, HOLDER, "PX", TTL);
        while (number < rows[i].dead + rows[i].listen + rows[i].dead_after) {
            bool listens = number >= rows[i].dead && number < rows[i].dead + rows[i].listen;
            put(&server, ++number, listens ? CHANNEL : DEAF, '0');
        }
        struct reply reply = ask(&server, ASKER, "0", script_server_ticket(&server, ticket));
        assert_int_equal(reply.type, REPLY_STRING);
        assert_string_equal(reply.text + strcspn(reply.text, "q"), rows[i].end);
        store_finish(&server.store);
    }
}

/*
 * Nobody notifies a reader that all others ahead of it have died while readers hold the key: so
 * only readers have it ask less often, by their share of the 16 nearest entries.
 */
static void test_of_those_ahead_of_a_reader_the_readers_count(void **state) {
    (void)state;
    static const struct {
        const char *forms; /* of the waiters ahead: a letter for each, the first one repeated */
        unsigned ahead;
        const char *end;
    } rows[] = {{"0", 0, "q0"},       {"w", 1, "q1"},     {"r", 1, "q1"},
                {"w", 300, "q1"},     {"r", 10, "q10"},   {"r", 300, "q300"},
                {"rwwww", 14, "q10"}, {"wr", 160, "q10"}, {"rwwwwwwwwwwwwwwww", 300, "q1"}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct script_server server;
        size_t forms = strlen(rows[i].forms);
        char ticket[32];
        script_server_start(&server);
        RUN(&server, "SET", KEY, HOLDER, "PX", TTL);
        for (unsigned number = 1; number <= rows[i].ahead; number++) {
            unsigned after = rows[i].ahead - number;
            put(&server, number, CHANNEL, rows[i].forms[after < forms ? forms - 1 - after : 0]);
        }
        script_server_ticket(&server, ticket);
        struct reply reply =
            CALL(&server, SCRIPT_SHARE_QUEUE, "3", KEY, KEY READERS_SUFFIX, KEY WRITER_SUFFIX,
                 CHANNEL, READER, TTL, "1000", "r", "0", ticket);
        assert_int_equal(reply.type, REPLY_STRING);
        assert_string_equal(reply.text + strcspn(reply.text, "q"), rows[i].end);
        store_finish(&server.store);
    }
}

/*
 * A writer that hangs keeps readers out for 4 of its reservations after it was notified, also if
 * dead waiters come before it meanwhile.
 */
static void test_the_dead_give_a_waiter_that_hangs_no_more_time(void **state) {
    (void)state;
    for (unsigned dead = 0; dead < 2; dead++) {
        struct script_server server;
        char first[32], second[32];
        start_with_writer(&server, first);
        server.now_ms++;
        script_server_ticket(&server, second);
        assert_false(is_admitted(&server, second)); /* enters the queue; the writer is notified */
        assert_int_equal(server.pushes, 1);
        server.now_ms += 4 * RESERVATION_MS - 1;
        assert_false(is_admitted(&server, second)); /* and again */
        assert_int_equal(server.pushes, 2);
        for (unsigned i = 1; i <= dead; i++) {
            put(&server, i, DEAF, 'w');
        }
        server.now_ms++;
        assert_true(is_admitted(&server, second));
        store_finish(&server.store);
    }
}

/*
 * Readers hold the key, and others come and go, each of whom asks once. A writer that hangs keeps
 * them out for 4 reservations after the first of them, who notifies it. One that lives asks.
 */
static void test_readers_who_ask_once_do_not_wait_for_a_writer_that_hangs(void **state) {
    (void)state;
    for (unsigned lives = 0; lives < 2; lives++) {
        struct script_server server;
        char first[32], next[32];
        start_with_writer(&server, first);
        for (unsigned quarter = 0; quarter < 16; quarter++) {
            server.now_ms++;
            assert_false(is_admitted(&server, script_server_ticket(&server, next)));
            assert_int_equal(server.pushes, quarter + 1);
            CALL(&server, SCRIPT_SHARE_LEAVE, "2", KEY, KEY READERS_SUFFIX, READER, next);
            server.now_ms += RESERVATION_MS / 4 - 1;
            if (lives && quarter == 3) {
                ask(&server, WRITER, "w", first);
            }
        }
        server.now_ms++;
        assert_int_equal(is_admitted(&server, script_server_ticket(&server, next)), !lives);
        store_finish(&server.store);
    }
}

/*
 * Readers hold the key, and dead writers are ahead of another reader: its poll removes 64 of them,
 * and the calls that follow at once the others.
 */
static void test_calls_that_go_on_remove_the_dead_ahead_of_a_reader(void **state) {
    (void)state;
    struct script_server server;
    char ticket[32];
    script_server_start(&server);
    struct reply reply = share(&server, HOLDER);
    assert_true(script_server_granted(&reply));
    for (unsigned i = 1; i <= 200; i++) {
        put(&server, i, DEAF, 'w');
    }
    script_server_ticket(&server, ticket);
    assert_false(is_admitted(&server, ticket)); /* enters the queue */
    assert_int_equal(server.pushes, 0);
    for (unsigned calls = 1; calls <= 3; calls++) {
        reply = CALL(&server, SCRIPT_PASS, "1", KEY, "r");
        assert_string_equal(reply.text, calls < 3 ? "y+" : "y");
    }
    reply = RUN(&server, "ZSCORE", KEY READERS_SUFFIX, READER);
    assert_int_equal(reply.type, REPLY_STRING);
    store_finish(&server.store);
}

/*
 * A waiter that has a key reserved enters the queue again, and then gives the key up: it goes to
 * the next waiter, and not to that entry.
 */
static void test_a_key_does_not_go_back_to_the_one_that_gives_it_up(void **state) {
    (void)state;
    struct script_server server;
    char ticket[32], later[32];
    script_server_start(&server);
    script_server_ticket(&server, ticket);
    server.now_ms++;
    RUN(&server, "SET", KEY, PASSER, "PX", TTL);
    CALL(&server, SCRIPT_QUEUE, "1", KEY, CHANNEL, PASSER, "0", "1000", "0", "0", ticket);
    ask(&server, READER, "0", script_server_ticket(&server, later));
    struct reply reply = RUN(&server, "ZCOUNT", KEY QUEUE_SUFFIX, "1", "+inf");
    assert_int_equal(reply.integer, 2);
    CALL(&server, SCRIPT_RELEASE, "1", KEY, PASSER);
    reply = RUN(&server, "GET", KEY);
    assert_memory_equal(reply.text, READER, strlen(READER));
    reply = RUN(&server, "EXISTS", KEY QUEUE_SUFFIX);
    assert_int_equal(reply.integer, 0);
    store_finish(&server.store);
}

/*
 * 1 release in 128 opens the queue for 1/32 of the time that the first waiter has waited, 1 to 100
 * ms. If n wait, more than 256, it is open for 256/n of that.
 */
static void test_a_release_opens_the_queue_for_a_while(void **state) {
    (void)state;
    static const struct {
        unsigned waiters;
        uint64_t waited_ms, open_ms;
    } rows[] = {{1, 31, 1},      {1, 3199, 99},    {1, 40000, 100},   {256, 1600, 50},
                {512, 1600, 25}, {1000, 2200, 17}, {1000, 40000, 25}, {5000, 8000, 5}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct script_server server;
        char ticket[32], member[40];
        script_server_start(&server);
        RUN(&server, "SET", KEY, OPENER, "PX", TTL);
        ask(&server, ASKER, "0", script_server_ticket(&server, ticket));
        for (unsigned number = 1; number < rows[i].waiters; number++) {
            put_at(&server, number, ticket, CHANNEL, '0');
        }
        server.now_ms += rows[i].waited_ms;
        CALL(&server, SCRIPT_RELEASE, "1", KEY, OPENER);
        snprintf(member, sizeof(member), "open %" PRIu64, server.now_ms + rows[i].open_ms);
        struct reply reply = RUN(&server, "ZSCORE", KEY QUEUE_SUFFIX, member);
        assert_int_equal(reply.type, REPLY_STRING);
        store_finish(&server.store);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_waiter_with_a_used_up_counter_asks_again),
        cmocka_unit_test(test_of_many_ahead_those_that_listen_count),
        cmocka_unit_test(test_of_those_ahead_of_a_reader_the_readers_count),
        cmocka_unit_test(test_readers_who_ask_once_do_not_wait_for_a_writer_that_hangs),
        cmocka_unit_test(test_the_dead_give_a_waiter_that_hangs_no_more_time),
        cmocka_unit_test(test_calls_that_go_on_remove_the_dead_ahead_of_a_reader),
        cmocka_unit_test(test_a_key_does_not_go_back_to_the_one_that_gives_it_up),
        cmocka_unit_test(test_a_release_opens_the_queue_for_a_while),
    };
    return cmocka_run_group_tests_name("wait_queue", tests, NULL, NULL);
}
