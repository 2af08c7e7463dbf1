/*
 * Inspection of the waiters in a key's queue: their number and the owners of the first ones, if
 * nodes differ, refuse, or answer anything.
 */
#include "harness.h"
#include "harness_peer.h"
#include "master_data.h"
#include "wait_queue.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY "orders:42"
#define QUEUE "orders:42::queue"
#define FIVE 5
#define TOKEN_DIGITS 40

/* A copy of an inspection's answer. */
struct sight {
    bool is_reported;
    redlock_status status;
    bool held;
    uint32_t readers;
    uint32_t queue_length;
    char holder[80];
    char owners[1024]; /* owners in the queue, each followed by ';' */
    bool answered[FIVE];
    uint32_t lengths[FIVE];
    char details[FIVE][96];
};

static void on_view(redlock_status status, const redlock_view *view, void *arg) {
    struct sight *sight = arg;
    size_t used = 0;

    assert_false(sight->is_reported);
    *sight = (struct sight){.is_reported = true,
                            .status = status,
                            .held = view->held,
                            .readers = view->readers,
                            .queue_length = view->queue_length};
    snprintf(sight->holder, sizeof(sight->holder), "%s", view->owner);
    assert_true(view->queue_owner_count <= REDLOCK_MAX_QUEUE_OWNERS);
    assert_true(view->queue_owner_count <= view->queue_length);
    for (size_t i = 0; i < view->queue_owner_count; i++) {
        used += (size_t)snprintf(sight->owners + used, sizeof(sight->owners) - used, "%s;",
                                 view->queue_owners[i]);
    }
    for (size_t i = 0; i < view->node_count; i++) {
        sight->answered[i] = view->nodes[i].answered;
        sight->lengths[i] = view->nodes[i].queue_length;
        snprintf(sight->details[i], sizeof(sight->details[i]), "%s", view->nodes[i].detail);
    }
}

static bool is_reported(void *arg) {
    return ((const struct sight *)arg)->is_reported;
}

static struct sight look_at(struct fixture *f, redlock_client *client, const char *key) {
    struct sight sight = {.is_reported = false};

    assert_int_equal(redlock_inspect(client, key, 0, on_view, &sight), REDLOCK_OK);
    run_until(f, is_reported, &sight, "the inspection was reported");
    return sight;
}

static struct sight look(struct fixture *f, redlock_client *client) {
    return look_at(f, client, KEY);
}

/* Returns whether each master lists two readers. */
static bool is_shared_by_two(void *arg) {
    struct fixture *f = arg;
    bool is_shared = true;

    for (size_t i = 0; i < FIVE; i++) {
        is_shared &= masters_query_integer(f->masters, i, "ZCARD " KEY "::readers") == 2;
    }
    return is_shared;
}

/* --------------------------------------------------------------------------------------- queues */

static redlock_client *owned_client(struct fixture *f, const char *owner) {
    redlock_options options = patient_options(f, masters_uris(f->masters), FIVE);

    options.owner = owner;
    return connect_with(f, &options);
}

static struct call *begin_waiting(struct fixture *f, redlock_client *client) {
    redlock_request request = waiting_request(KEY);

    return begin_acquire(f, client, &request);
}

static void those_in_queue_are_reported(void **state) {
    struct fixture *f = *state;
    static const char *const owners[] = {"billing", NULL, "web"};
    redlock_client *client = owned_client(f, "boss");
    redlock_lock *lock = hold(f, client, KEY, LONG_TTL_MS);
    redlock_client *waiters[3];
    struct call *calls[3];

    for (size_t i = 0; i < 3; i++) {
        waiters[i] = owned_client(f, owners[i]);
        calls[i] = begin_waiting(f, waiters[i]);
        begin_waiting(f, waiters[i]); /* shares the entry of the first request */
        wait_in_queue(f, KEY, (int64_t)i + 1);
    }
    struct sight sight = look(f, client);
    assert_int_equal(sight.status, REDLOCK_OK);
    assert_string_equal(sight.holder, "boss");
    assert_int_equal(sight.queue_length, 3);
    assert_string_equal(sight.owners, "billing;;web;");
    for (size_t i = 0; i < FIVE; i++) {
        assert_int_equal(sight.lengths[i], 3);
    }
    close_client(f, waiters[1]);
    wait_in_queue(f, KEY, 2);
    assert_string_equal(look(f, client).owners, "billing;web;");
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    assert_int_equal(await(f, calls[0]), REDLOCK_OK);
    assert_string_equal(look(f, client).holder, "billing");
}

/* Joins the queue for the key with the request. */
static struct call *join_queue(struct fixture *f, const char *owner, const redlock_request *request,
                               long long before) {
    struct call *call = begin_acquire(f, owned_client(f, owner), request);

    wait_in_queue(f, KEY, before + 1);
    return call;
}

/*
 * Readers and writers have one queue; a reader that has the key is counted, but is not in the
 * queue.
 */
static void readers_and_writers_in_queue_are_reported(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_request reader = waiting_request_of(KEY, REDLOCK_READER, 0);
    redlock_request writer = waiting_request_of(KEY, REDLOCK_WRITER, 0);
    redlock_lock *lock = hold_for(f, owned_client(f, "first"), &reader);
    struct call *calls[] = {join_queue(f, "scribe", &writer, 0),
                            join_queue(f, "second", &reader, 1),
                            join_queue(f, "third", &reader, 2)};

    struct sight sight = look(f, client);
    assert_int_equal(sight.status, REDLOCK_OK);
    assert_true(sight.held);
    assert_int_equal(sight.readers, 1);
    assert_int_equal(sight.queue_length, 3);
    assert_string_equal(sight.owners, "scribe;second;third;");
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    assert_int_equal(await(f, calls[0]), REDLOCK_OK);
    wait_in_queue(f, KEY, 2);
    sight = look(f, client);
    assert_int_equal(sight.readers, 0);
    assert_string_equal(sight.holder, "scribe");
    assert_string_equal(sight.owners, "second;third;");
    assert_int_equal(let_go(f, calls[0]->lock), REDLOCK_OK);
    assert_int_equal(await(f, calls[1]), REDLOCK_OK);
    assert_int_equal(await(f, calls[2]), REDLOCK_OK);
    run_until(f, is_shared_by_two, f, "each master lists two readers");
    sight = look(f, client);
    assert_int_equal(sight.readers, 2);
    assert_int_equal(sight.queue_length, 0);
}

/* A waiter for several keys is reported at the key that is held, and at no other. */
static void sets_in_queue_are_reported_where_they_wait(void **state) {
    struct fixture *f = *state;
    static const char *const keys[] = {KEY, "other"};
    redlock_client *client = connect_client(f);
    redlock_request request = waiting_request(NULL);
    redlock_request alone = waiting_request(KEY);
    redlock_lock *lock = hold(f, owned_client(f, "boss"), KEY, LONG_TTL_MS);

    wait_holders(f, KEY, FIVE);
    request.keys = keys;
    request.key_count = 2;
    struct call *calls[] = {join_queue(f, "set", &request, 0), join_queue(f, "next", &alone, 1)};
    struct sight sight = look(f, client);
    assert_string_equal(sight.holder, "boss");
    assert_int_equal(sight.queue_length, 2);
    assert_string_equal(sight.owners, "set;next;");
    assert_int_equal(look_at(f, client, "other").queue_length, 0);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    assert_int_equal(await(f, calls[0]), REDLOCK_OK);
    wait_in_queue(f, KEY, 1);
    wait_holders(f, "other", FIVE);
    assert_string_equal(look_at(f, client, "other").holder, "set");
    assert_string_equal(look(f, client).owners, "next;");
    assert_int_equal(let_go(f, calls[0]->lock), REDLOCK_OK);
    assert_int_equal(await(f, calls[1]), REDLOCK_OK);
}

static void an_empty_line_is_reported(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_lock *lock = hold(f, client, KEY, LONG_TTL_MS);
    struct sight sight = look(f, client);

    assert_true(sight.held);
    assert_int_equal(sight.queue_length, 0);
    assert_string_equal(sight.owners, "");
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
}

/* --------------------------------------------------------------------------- nodes that differ */

/* Inserts an entry directly, for a waiter whose token repeats the digit. */
static void add_entry(struct fixture *f, size_t master, const char *score, char digit,
                      const char *owner) {
    char entry[200];
    char token[TOKEN_DIGITS + 1];

    memset(token, digit, TOKEN_DIGITS);
    token[TOKEN_DIGITS] = '\0';
    snprintf(entry, sizeof(entry), "%s/%s redlock:gone 1000 0 0", token, owner);
    assert_int_equal(
        masters_query_integer(f->masters, master, "ZADD " QUEUE " %s %s", score, entry), 1);
}

/* A node has a waiter that the others lack, lacks one that the others have, or has none. */
static void a_quorum_reports_who_is_in_queue(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);

    for (size_t i = 0; i < FIVE; i++) {
        if (i != 1) {
            add_entry(f, i, "1700000000000001", 'b', "second");
        }
        if (i != 2) {
            add_entry(f, i, "1700000000000000", 'a', "first");
        }
    }
    add_entry(f, 3, "5", 'c', "ghost");
    add_entry(f, 4, "5", 'c', "ghost");
    struct sight sight = look(f, client);
    assert_int_equal(sight.status, REDLOCK_OK);
    assert_int_equal(sight.queue_length, 2);
    assert_string_equal(sight.owners, "first;second;");
    assert_int_equal(sight.lengths[1], 1);
    assert_int_equal(sight.lengths[3], 3);
    kill_masters(f, 0, 3);
    wait_connected(f, client, 2);
    sight = look(f, client);
    assert_int_equal(sight.status, REDLOCK_ENOQUORUM);
    assert_int_equal(sight.queue_length, 0);
    assert_string_equal(sight.owners, "");
}

static void eight_of_a_long_line_are_reported(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);

    for (size_t i = 0; i < FIVE; i++) {
        for (int k = 0; k < 30; k++) {
            char score[8];
            char owner[8];
            snprintf(score, sizeof(score), "%d", 100 - k);
            snprintf(owner, sizeof(owner), "w%d", k);
            add_entry(f, i, score, (char)('A' + k), owner);
        }
    }
    struct sight sight = look(f, client);
    assert_int_equal(sight.queue_length, 30);
    assert_string_equal(sight.owners, "w29;w28;w27;w26;w25;w24;w23;w22;");
}

/*
 * A foreign client may write anything: a member without a ticket is no entry, one without a value
 * has no name.
 */
static void foreign_entries_are_harmless(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    char longer[3000];

    memset(longer, 'x', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    for (size_t i = 0; i < FIVE; i++) {
        add_entry(f, i, "1", 'a', "a\x1b[31mb");
        add_entry(f, i, "-1.5", 'b', longer);
        add_entry(f, i, "0.5", 'c', "half");
        add_entry(f, i, "inf", 'd', "last");
        assert_int_equal(masters_query_integer(f->masters, i, "ZADD " QUEUE " 0 %s", "open 9"), 1);
        assert_int_equal(masters_query_integer(f->masters, i, "ZADD " QUEUE " 1 %s", " x"), 1);
        assert_int_equal(masters_query_integer(f->masters, i, "ZADD " QUEUE " 1 %s", "word"), 1);
        assert_int_equal(
            masters_query_integer(f->masters, i, "ZADD " QUEUE " 1 %b", "\0\xff 1", (size_t)4), 1);
    }
    struct sight sight = look(f, client);
    assert_int_equal(sight.status, REDLOCK_OK);
    assert_int_equal(sight.queue_length, 5);
    assert_string_equal(sight.owners, ";a?[31mb;last;");
}

static void a_queue_that_is_none_hides_nothing(void **state) {
    struct fixture *f = *state;
    redlock_client *client = owned_client(f, "boss");
    redlock_lock *lock = hold(f, client, KEY, LONG_TTL_MS);

    wait_holders(f, KEY, FIVE);
    for (size_t i = 0; i < FIVE; i++) {
        free(masters_query(f->masters, i, "LPUSH " QUEUE " x"));
    }
    struct sight sight = look(f, client);
    assert_int_equal(sight.status, REDLOCK_OK);
    assert_string_equal(sight.holder, "boss");
    assert_int_equal(sight.queue_length, 0);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
}

/* --------------------------------------------------------------------------------------- rights */

/* Connects as a user with the rights to inspect the key, and these. */
static redlock_client *connect_with_rights(struct fixture *f, const char *rights) {
    char command[256];
    char uris[FIVE][128];
    const char *nodes[FIVE];

    snprintf(command, sizeof(command),
             "ACL SETUSER app reset on >pw resetchannels +get +pttl +eval +evalsha ~" KEY " ~" KEY
             "::fence ~" KEY "::readers %s",
             rights);
    for (size_t i = 0; i < FIVE; i++) {
        free(masters_query(f->masters, i, command));
        snprintf(uris[i], sizeof(uris[i]), "redis://app:pw@%s", masters_address(f->masters, i));
        nodes[i] = uris[i];
    }
    redlock_options options = patient_options(f, nodes, FIVE);
    return connect_with(f, &options);
}

/* A user without the right to the queue gets all other information. */
static void without_the_rights_all_else_is_reported(void **state) {
    struct fixture *f = *state;
    static const struct {
        const char *rights;
        uint32_t length;
        const char *owners;
    } rows[] = {{"", 0, ""},
                {"+zcount +zrange", 0, ""},
                {"+zrange ~" QUEUE, 0, ""},
                {"+zcount ~" QUEUE, 1, ""},
                {"+zcount +zrange ~" QUEUE, 1, "next;"}};
    redlock_lock *lock = hold(f, owned_client(f, "boss"), KEY, LONG_TTL_MS);

    wait_holders(f, KEY, FIVE);
    for (size_t i = 0; i < FIVE; i++) {
        add_entry(f, i, "1", 'a', "next");
    }
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        redlock_client *client = connect_with_rights(f, rows[i].rights);
        struct sight sight = look(f, client);
        assert_int_equal(sight.status, REDLOCK_OK);
        assert_string_equal(sight.holder, "boss");
        assert_int_equal(sight.queue_length, rows[i].length);
        assert_string_equal(sight.owners, rows[i].owners);
        close_client(f, client);
    }
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
}

/* -------------------------------------------------------------------------------- hostile nodes */

#define BAD 2

static const char *forged; /* the answer to each script */
static size_t forged_length;

static void forge(struct peer_link *link, const struct command *command, void *arg) {
    if (command_is_script(command)) {
        char header[32];
        int length = snprintf(header, sizeof(header), "$%zu\r\n", forged_length);
        peer_send(link, header, (size_t)length);
        peer_send(link, forged, forged_length);
        peer_send(link, "\r\n", 2);
    } else {
        peer_answer_well(link, command, arg);
    }
}

static redlock_client *join_forger(struct fixture *f) {
    const char *uris[FIVE];

    memcpy(uris, masters_uris(f->masters), sizeof(uris));
    uris[BAD] = peer_uri(peer_create(f, forge, NULL));
    redlock_options options = patient_options(f, uris, FIVE);
    return connect_with(f, &options);
}

static void answers_that_make_no_sense_do_not_count(void **state) {
    struct fixture *f = *state;
    static char longest[8000];
    static const char *const answers[] = {
        "",
        "f 0 0 0 ",
        "f 0 0 0 1 1 ",
        "f 0 0 0 1 1 5 a",
        "f 0 0 0 1 1 -1 a ",
        "f 0 0 0 1 1 nan a ",
        "f 0 0 0 0 1 1 a ",
        "f 0 0 0 99 9 1 a 2 b 3 c 4 d 5 e 6 f 7 g 8 h 9 i ",
        "f 0 0 0 9 4294967297 1 a ",
        longest,
    };
    redlock_client *client = join_forger(f);

    memset(longest, 'x', sizeof(longest) - 1);
    memcpy(longest, "f 0 0 0 1 1 1 ", 14);
    longest[sizeof(longest) - 2] = ' ';
    for (size_t i = 0; i < FIVE; i++) {
        add_entry(f, i, "1", 'a', "next");
    }
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        forged = answers[i];
        forged_length = strlen(forged);
        struct sight sight = look(f, client);
        assert_false(sight.answered[BAD]);
        assert_string_equal(sight.details[BAD], "an answer that makes no sense");
        assert_int_equal(sight.status, REDLOCK_OK);
        assert_int_equal(sight.queue_length, 1);
        assert_string_equal(sight.owners, "next;");
    }
}

/* One node's lies about the queue are not reported; more than 8 KiB end its connection. */
static void a_liar_changes_no_report(void **state) {
    struct fixture *f = *state;
    static const char lies[] = "f 0 0 0 9007199254740991 3 0 evil 0 evil 9 evil ";
    static char flood[9000];
    redlock_client *client = join_forger(f);

    for (size_t i = 0; i < FIVE; i++) {
        add_entry(f, i, "1", 'a', "next");
    }
    forged = lies;
    forged_length = sizeof(lies) - 1;
    struct sight sight = look(f, client);
    assert_true(sight.answered[BAD]);
    assert_int_equal(sight.lengths[BAD], UINT32_MAX);
    assert_int_equal(sight.queue_length, 1);
    assert_string_equal(sight.owners, "next;");
    memset(flood, 'x', sizeof(flood));
    memcpy(flood, "f 0 0 0 1 1 1 ", 14);
    forged = flood;
    forged_length = sizeof(flood);
    sight = look(f, client);
    assert_false(sight.answered[BAD]);
    assert_int_equal(sight.status, REDLOCK_OK);
    assert_string_equal(sight.owners, "next;");
    wait_disconnected(f, client, BAD, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        ON_FIVE_MASTERS(those_in_queue_are_reported),
        ON_FIVE_MASTERS(readers_and_writers_in_queue_are_reported),
        ON_FIVE_MASTERS(sets_in_queue_are_reported_where_they_wait),
        ON_FIVE_MASTERS(an_empty_line_is_reported),
        ON_FIVE_MASTERS(a_quorum_reports_who_is_in_queue),
        ON_FIVE_MASTERS(eight_of_a_long_line_are_reported),
        ON_FIVE_MASTERS(foreign_entries_are_harmless),
        ON_FIVE_MASTERS(a_queue_that_is_none_hides_nothing),
        ON_FIVE_MASTERS(without_the_rights_all_else_is_reported),
        ON_FIVE_MASTERS(answers_that_make_no_sense_do_not_count),
        ON_FIVE_MASTERS(a_liar_changes_no_report),
    };

    return cmocka_run_group_tests_name("inspect_queue", tests, NULL, NULL);
}
