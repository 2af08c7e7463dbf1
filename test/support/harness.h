/*
 * One test's world: an event base, the masters, the clients that the test made on them, and every
 * request that was accepted. `finish`, the teardown, closes what is still open and then asserts
 * what must hold after any test:
 *   - every accepted request had exactly one callback, after its call had returned;
 *   - the allocator hook got back all that it gave;
 *   - no descriptor is left open, and no event of the library's is left in the base.
 *
 * Tests wait for conditions, never for time: `run_until` runs the loop until a condition holds,
 * and fails the test when that takes absurdly long. Clients have timeouts that no delay of a busy
 * machine reaches; a test about a timeout lets that time pass on its own clocks (clocks.h), when
 * all that is to come before the timeout has come.
 */
#ifndef REDLOCK_TEST_HARNESS_H
#define REDLOCK_TEST_HARNESS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include <cmocka.h>

#include "diary.h"
#include "gauge.h"
#include "masters.h"
#include "redlock.h"

/* A TTL so long that no key vanishes by expiry while a test waits for it to vanish. */
#define LONG_TTL_MS 3000000

/* A timeout that no delay reaches: unless a test lets as much time pass, it never ends. */
#define PATIENT_MS 30000

struct call;
struct fixture;

/* One node's answer to a call, copied. */
struct opinion {
    redlock_vote vote;
    uint64_t ttl_ms;
    char detail[96];
};

/* An accepted request. Lives until the end of the test. */
struct call {
    TAILQ_ENTRY(call) link;
    struct fixture *fixture;
    const char *verb;   /* "acquire", "extend" or "release" */
    redlock_lock *lock; /* NULL when the handle has ended */
    bool returned;      /* the call that made the request did */
    size_t ended;       /* callbacks so far */
    redlock_status status;
    char *why; /* redlock_explain, once it has ended */
    size_t opinion_count;
    struct opinion *opinions; /* redlock_report, once it has ended */

    /* Runs inside the callback, after all of the above is set; may do anything. NULL: nothing. */
    void (*then)(struct call *call, void *arg);
    void *then_arg;
};

/* The news of an on_lost. Lives until the end of the test. */
struct loss {
    TAILQ_ENTRY(loss) link;
    size_t count;
    redlock_status status;
    redlock_lock *lock;
    void (*then)(struct loss *loss, void *arg); /* runs inside the callback */
    void *then_arg;
};

/* A client, and whether it was closed. */
struct member {
    TAILQ_ENTRY(member) link;
    redlock_client *client;
    bool closing;
    size_t closed;       /* callbacks so far */
    uint64_t unreleased; /* releases left over, as redlock_client_drain told */
    void (*then)(struct member *member, void *arg);
    void *then_arg;
};

/* Something to be destroyed after the clients were closed. */
struct duty;

struct fixture {
    const void *row; /* of the table that the test is in; NULL: it is in none */
    struct event_base *base;
    struct masters *masters; /* NULL: none */
    uint32_t frozen;         /* one bit for each master that was stopped by freeze() */
    struct gauge gauge;
    struct diary diary;
    size_t accepted; /* requests */
    size_t ended;    /* their callbacks */
    int descriptors; /* open when the test began */
    struct event *tick;
    TAILQ_HEAD(call_list, call) calls;
    TAILQ_HEAD(, loss) losses;
    TAILQ_HEAD(member_list, member) members;
    SLIST_HEAD(, duty) duties;
};

/* ------------------------------------------------------------------------- setup and teardown */

/* cmocka setup functions; *state becomes the fixture. */
int no_masters(void **state);
int five_masters(void **state);
/* For other numbers of masters, or with arguments of redis-server. */
int start_fixture(void **state, size_t masters, const char *const *arguments);
int start_fixture_with(void **state, size_t masters, const struct masters_options *options);
/* The teardown. */
int finish(void **state);

/* Tests of one form, each a row of a table: the test's name, and what the fixture's row points to.
 */
#define ON_ROW(name, test, setup, row)                                                             \
    { name, test, setup, finish, (void *)(uintptr_t)(row) }

#define ON_NO_MASTERS(test) cmocka_unit_test_setup_teardown(test, no_masters, finish)
#define ON_FIVE_MASTERS(test) cmocka_unit_test_setup_teardown(test, five_masters, finish)

/* Has `destroy(object)` called after all clients were closed, the newest first. */
void at_finish(struct fixture *f, void (*destroy)(void *object), void *object);

/* A temporary folder of the test's own (folder.h), which ends with the fixture. */
const char *folder_for(struct fixture *f, const char *name);

/* Whether this process runs under valgrind, which makes it ten to fifty times slower. */
bool under_valgrind(void);

/*
 * How many cycles a test that repeats itself `cycles` times shall do here: fewer under valgrind,
 * never more than the environment variable REDLOCK_TEST_CYCLES says.
 */
size_t cycles_here(size_t cycles);

/* --------------------------------------------------------------------------------- the loop */

/* Runs the loop until the condition holds; `what` completes "waited in vain until ...". */
void run_until(struct fixture *f, bool (*condition)(void *arg), void *arg, const char *what);

/*
 * Lets time pass in steps, with some turns of the loop after each, until the condition holds. Waits
 * before each step until the client's nodes have answered, but for those of the mask `silent`.
 */
void pass_until(struct fixture *f, redlock_client *client, uint32_t silent, uint64_t step_ms,
                bool (*condition)(void *arg), void *arg, const char *what);

/* Lets time pass in steps until the node, which is silent, is disconnected for the n-th time. */
void pass_until_disconnected(struct fixture *f, redlock_client *client, size_t node,
                             uint64_t step_ms, uint64_t times);

/* Runs the loop until it has polled so many times: for what should have happened at once. */
void run_turns(struct fixture *f, unsigned turns);

void wait_logged(struct fixture *f, const char *text);

/* ------------------------------------------------------------------------------------ clients */

/* Options that never cut short a slow machine, and that log to the diary, all levels. */
redlock_options patient_options(struct fixture *f, const char *const *nodes, size_t count);

/* A client on these options; asserts that they are accepted. */
redlock_client *create_client(struct fixture *f, const redlock_options *options);

/* Makes a client as create_client does, connected to all of its nodes. */
redlock_client *connect_with(struct fixture *f, const redlock_options *options);

/* A patient client on all of the fixture's masters, connected to all. */
redlock_client *connect_client(struct fixture *f);

/* Runs the loop until exactly so many nodes are connected. */
void wait_connected(struct fixture *f, redlock_client *client, size_t count);

/* Runs the loop until exactly so many nodes are trusted. */
void wait_trusted(struct fixture *f, redlock_client *client, size_t count);

/* Returns the node's entry of redlock_client_nodes now. */
redlock_node_info node_info(const redlock_client *client, size_t node);

/* Runs the loop until connections to the node failed or ended so many times or more. */
void wait_disconnected(struct fixture *f, redlock_client *client, size_t node, uint64_t times);

/* Runs the loop until the node owes no release. */
void wait_no_debts(struct fixture *f, redlock_client *client, size_t node);

/* Runs the loop until the node has answered all that it was sent. */
void wait_answered(struct fixture *f, redlock_client *client, size_t node);

/*
 * Runs the loop until each of the client's nodes has answered all commands, also those behind a
 * quorum.
 */
void wait_all_answered(struct fixture *f, redlock_client *client);

struct member *begin_close(struct fixture *f, redlock_client *client);
struct member *begin_drain(struct fixture *f, redlock_client *client);
void wait_closed(struct fixture *f, struct member *member);
void close_client(struct fixture *f, redlock_client *client); /* and waits */

/* ------------------------------------------------------------------------------------ requests */

/* A request for one try, without watchdog. */
redlock_request request_for(const char *key, uint64_t ttl_ms);

/* Sets the request's on_lost, and returns where it will be written down. */
struct loss *watch_loss(struct fixture *f, redlock_request *request);
redlock_status wait_lost(struct fixture *f, struct loss *loss);

/* Each asserts that the request is accepted. */
struct call *begin_acquire(struct fixture *f, redlock_client *client,
                           const redlock_request *request);
struct call *begin_extend(struct fixture *f, redlock_lock *lock, uint64_t ttl_ms);
struct call *begin_release(struct fixture *f, redlock_lock *lock);

/* Runs the loop until the lock is valid for more than so long: it was renewed. */
void wait_valid(struct fixture *f, const redlock_lock *lock, uint64_t above_ms);

/* Runs the loop until the call's callback came; returns its status. */
redlock_status await(struct fixture *f, struct call *call);

/* begin_..., then await. */
struct call *acquire(struct fixture *f, redlock_client *client, const redlock_request *request);
redlock_status try_lock(struct fixture *f, redlock_client *client, const char *key,
                        uint64_t ttl_ms);
redlock_status extend(struct fixture *f, redlock_lock *lock, uint64_t ttl_ms);
redlock_status let_go(struct fixture *f, redlock_lock *lock);

/* Acquires in one try, and asserts that it could. */
redlock_lock *hold(struct fixture *f, redlock_client *client, const char *key, uint64_t ttl_ms);
/* The same for a whole request. */
redlock_lock *hold_for(struct fixture *f, redlock_client *client, const redlock_request *request);

/* How many nodes gave this vote in the call's last round. */
size_t votes(const struct call *call, redlock_vote vote);

/* Asserts the status; when it is another, shows the explanation. */
void assert_ended(const struct call *call, redlock_status status);

/* Asserts that the text occurs in the call's explanation. */
void assert_explained(const struct call *call, const char *text);

/* Asserts that `lock` is refused with this status, and that the client's error names `named`. */
void assert_refused(const redlock_client *client, redlock_status status, redlock_status expected,
                    const char *named);

#endif
