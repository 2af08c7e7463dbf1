/*
 * One test's world: an event base, the masters, the clients that the test made on them, and every
 * accepted request. `finish`, the teardown, closes the clients that are still open and then asserts
 * what must hold after any test:
 *   - every accepted request had exactly one callback, after its call had returned;
 *   - all blocks were returned to the allocator hook;
 *   - no descriptor is left open, and no event of the library is left in the base.
 *
 * With REDLOCK_TEST_LOOP=pollable in the environment, the clients are on a redlock_loop whose
 * descriptor the event base watches, as in a program with an event loop of another kind.
 *
 * Tests wait for conditions, never for time: `run_until` runs the loop until a condition holds, and
 * fails the test when that takes absurdly long. Clients have timeouts that no delay of a busy
 * machine reaches; a test of a timeout advances its own clocks (clocks.h), after all events that
 * must precede the timeout.
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

#include "counting_allocator.h"
#include "log_capture.h"
#include "masters.h"
#include "redlock.h"
#include "redlock/loop.h"

/* A TTL so long that no key expires while a test waits for its removal. */
#define LONG_TTL_MS 3000000

/* A timeout that no real delay reaches: it expires only when a test advances the clock. */
#define PATIENT_MS 30000

struct call;
struct fixture;

/* One node's vote on a call, copied. */
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
    redlock_lock *lock; /* NULL once the handle is gone */
    bool returned;      /* the call that made the request has returned */
    size_t ended;       /* number of callbacks so far */
    redlock_status status;
    char *why; /* redlock_explain's sentence, once the call has ended */
    size_t opinion_count;
    struct opinion *opinions; /* redlock_report's entries, once the call has ended */

    /* Runs inside the callback, unless NULL, after the fields above are set; may do anything. */
    void (*then)(struct call *call, void *arg);
    void *then_arg;
};

/* The record of an on_lost. Lives until the end of the test. */
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
    size_t closed;       /* number of callbacks so far */
    uint64_t unreleased; /* number of releases left over, as redlock_client_drain reported */
    void (*then)(struct member *member, void *arg);
    void *then_arg;
};

/* An object to destroy after the clients were closed. */
struct duty;

struct fixture {
    const void *row; /* row of a table of tests; NULL: the test has none */
    struct event_base *base;
    struct masters *masters; /* NULL: none */
    uint32_t frozen;         /* mask of the masters that freeze() has stopped */
    struct counting_allocator allocator;
    struct log_capture capture;
    size_t accepted; /* number of requests */
    size_t ended;    /* number of their callbacks */
    int descriptors; /* number of descriptors open when the test began */
    struct event *tick;
    redlock_loop *loop;   /* of the clients; NULL: `base` itself */
    struct event *nested; /* watches the loop's descriptor in `base` */
    int64_t ahead_ms;     /* by how much pass_time had advanced the clock at the last tick */
    TAILQ_HEAD(call_list, call) calls;
    TAILQ_HEAD(, loss) losses;
    TAILQ_HEAD(member_list, member) members;
    SLIST_HEAD(, duty) duties;
};

/* ------------------------------------------------------------------------- setup and teardown */

/* cmocka setup functions; *state becomes the fixture. */
int no_masters(void **state);
int five_masters(void **state);
/* Sets up a fixture with `masters` masters, and with arguments of redis-server. */
int start_fixture(void **state, size_t masters, const char *const *arguments);
int start_fixture_with(void **state, size_t masters, const struct masters_options *options);
/* Ends the test as described above: cmocka's teardown function. */
int finish(void **state);

/* A test of a table: the test's name, and the row that the fixture's `row` points to. */
#define ON_ROW(name, test, setup, row)                                                             \
    { name, test, setup, finish, (void *)(uintptr_t)(row) }

#define ON_NO_MASTERS(test) cmocka_unit_test_setup_teardown(test, no_masters, finish)
#define ON_FIVE_MASTERS(test) cmocka_unit_test_setup_teardown(test, five_masters, finish)

/*
 * Registers an object to destroy after all clients were closed, in reverse order of registration.
 */
void at_finish(struct fixture *f, void (*destroy)(void *object), void *object);

/* Makes a temporary folder (folder.h), which is removed with the fixture. */
const char *folder_for(struct fixture *f, const char *name);

/* Returns milliseconds by a clock that no test advances. */
uint64_t real_ms(void);

/* Returns whether this process runs under valgrind, which is 10 to 50 times slower. */
bool under_valgrind(void);

/*
 * Returns the number of cycles for a test that would repeat `cycles` times: fewer under valgrind,
 * and never more than the environment variable REDLOCK_TEST_CYCLES.
 */
size_t cycles_here(size_t cycles);

/* --------------------------------------------------------------------------------- the loop */

/* Runs the loop until the condition holds. `what` names the condition for the failure. */
void run_until(struct fixture *f, bool (*condition)(void *arg), void *arg, const char *what);

/*
 * Advances the clock in steps, with some turns of the loop after each, until the condition holds.
 * Waits before each step until the client's nodes have answered, except those of the mask `silent`.
 */
void pass_until(struct fixture *f, redlock_client *client, uint32_t silent, uint64_t step_ms,
                bool (*condition)(void *arg), void *arg, const char *what);

/*
 * Advances the clock in steps until the node, which is silent, is disconnected for the n-th time.
 */
void pass_until_disconnected(struct fixture *f, redlock_client *client, size_t node,
                             uint64_t step_ms, uint64_t times);

/* Runs the loop until it has polled `turns` times, for events that are due at once. */
void run_turns(struct fixture *f, unsigned turns);

/* Runs the loop until each accepted request has had its callback. `what` as in run_until. */
void wait_all_ended(struct fixture *f, const char *what);

void wait_logged(struct fixture *f, const char *text);

/* ------------------------------------------------------------------------------------ clients */

/*
 * Returns options whose timeouts no slow machine reaches, with a log of all levels to the log
 * capture.
 */
redlock_options patient_options(struct fixture *f, const char *const *nodes, size_t count);

/*
 * Returns the URIs of the fixture's masters, which say that these are durable: with guards, too,
 * the votes of new masters count from the first heartbeat on. The list lives as long as the test.
 */
const char *const *durable_uris(struct fixture *f);

/* Creates a client on the fixture's loop. On success the caller closes it. */
redlock_status try_to_create(struct fixture *f, const redlock_options *options,
                             redlock_client **client, redlock_error *error);

/* Makes a client with these options; asserts that they are accepted. */
redlock_client *create_client(struct fixture *f, const redlock_options *options);

/* Makes a client as create_client does, connected to all of its nodes. */
redlock_client *connect_with(struct fixture *f, const redlock_options *options);

/* Makes a patient client of all the fixture's masters, connected to all. */
redlock_client *connect_client(struct fixture *f);

/* Runs the loop until exactly `count` nodes are connected. */
void wait_connected(struct fixture *f, redlock_client *client, size_t count);

/* Runs the loop until exactly `count` nodes are trusted. */
void wait_trusted(struct fixture *f, redlock_client *client, size_t count);

/*
 * The most commands of its own that a client without guards may await at a node, beyond
 * max_commands: the question for the role, about once a second.
 */
#define OWN_COMMANDS 1

/* Returns the current entry of redlock_client_nodes for the node. */
redlock_node_info node_info(const redlock_client *client, size_t node);

/* Runs the loop until the node's connections have failed or ended at least `times` times. */
void wait_disconnected(struct fixture *f, redlock_client *client, size_t node, uint64_t times);

/* Runs the loop until the node has no pending release. */
void wait_releases_done(struct fixture *f, redlock_client *client, size_t node);

/* Runs the loop until the node has answered all commands. */
void wait_answered(struct fixture *f, redlock_client *client, size_t node);

/*
 * Runs the loop until each of the client's nodes has answered all commands, also after a quorum was
 * reached.
 */
void wait_all_answered(struct fixture *f, redlock_client *client);

struct member *begin_close(struct fixture *f, redlock_client *client);
struct member *begin_drain(struct fixture *f, redlock_client *client);
void wait_closed(struct fixture *f, struct member *member);
void close_client(struct fixture *f, redlock_client *client); /* waits for on_closed */

/* ------------------------------------------------------------------------------------ requests */

/* Returns a request for one try without watchdog. */
redlock_request request_for(const char *key, uint64_t ttl_ms);

/* Sets the request's on_lost, and returns the record that it will fill. */
struct loss *watch_loss(struct fixture *f, redlock_request *request);
redlock_status wait_lost(struct fixture *f, struct loss *loss);

/* Make a request; assert that it is accepted. */
struct call *begin_acquire(struct fixture *f, redlock_client *client,
                           const redlock_request *request);
struct call *begin_extend(struct fixture *f, redlock_lock *lock, uint64_t ttl_ms);
struct call *begin_release(struct fixture *f, redlock_lock *lock);

/* Runs the loop until the lock is valid for more than `above_ms`, which shows a renewal. */
void wait_valid(struct fixture *f, const redlock_lock *lock, uint64_t above_ms);

/* Runs the loop until the call's callback has come; returns its status. */
redlock_status await(struct fixture *f, struct call *call);

/* Make a request as begin_... does, and wait for its callback. */
struct call *acquire(struct fixture *f, redlock_client *client, const redlock_request *request);
redlock_status try_lock(struct fixture *f, redlock_client *client, const char *key,
                        uint64_t ttl_ms);
redlock_status extend(struct fixture *f, redlock_lock *lock, uint64_t ttl_ms);
redlock_status let_go(struct fixture *f, redlock_lock *lock);

/* Acquires in one try, and asserts success. */
redlock_lock *hold(struct fixture *f, redlock_client *client, const char *key, uint64_t ttl_ms);
/* Does what hold() does, for a whole request. */
redlock_lock *hold_for(struct fixture *f, redlock_client *client, const redlock_request *request);

/* Returns the number of nodes that gave this vote in the call's last round. */
size_t votes(const struct call *call, redlock_vote vote);

/* Asserts the status of a call; prints the explanation of any other status. */
void assert_ended(const struct call *call, redlock_status status);

/* Asserts that the text occurs in the call's explanation. */
void assert_explained(const struct call *call, const char *text);

/* Asserts that `status` is the `expected` refusal, and that the client's error names `named`. */
void assert_refused(const redlock_client *client, redlock_status status, redlock_status expected,
                    const char *named);

#endif
