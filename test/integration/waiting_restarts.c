/* Masters that restart while locks are held, and others wait for these locks. */
#include "harness.h"
#include "master_data.h"
#include "wait_queue.h"

#define THREE 3

/* A TTL long enough for the work within it, even on a slow machine. */
#define TTL_MS 6000

static int three_masters(void **state) {
    return start_fixture(state, THREE, NULL);
}

static redlock_client *trusting_client(struct fixture *f) {
    redlock_options options = patient_options(f, masters_uris(f->masters), THREE);

    options.guards = REDLOCK_GUARDS_ON;
    options.max_ttl_ms = TTL_MS;
    redlock_client *client = create_client(f, &options);
    wait_trusted(f, client, THREE);
    return client;
}

/* Restarts a master without its memory; waits until both clients are connected to it again. */
static void restart_empty(struct fixture *f, size_t master, redlock_client *one,
                          redlock_client *other) {
    redlock_client *clients[] = {one, other};
    uint64_t ended[] = {node_info(one, master).disconnected, node_info(other, master).disconnected};

    masters_kill(f->masters, master);
    masters_restart(f->masters, master);
    for (size_t i = 0; i < 2; i++) {
        wait_disconnected(f, clients[i], master, ended[i] + 1);
        wait_connected(f, clients[i], THREE);
    }
}

/* A lock and a request that waits for it. */
struct pair {
    redlock_mode held, wanted;
    uint32_t permits;
    const char *key;
    redlock_lock *lock;
    struct loss *loss;
    struct call *waiter;
};

struct pairs {
    struct fixture *f;
    struct pair all[4];
    size_t master;
};

/* Returns whether each request has asked the master since it lost all keys. */
static bool have_all_asked(void *arg) {
    const struct pairs *pairs = arg;
    size_t asked = 0;

    for (size_t i = 0; i < 4; i++) {
        const char *key = pairs->all[i].key;
        asked +=
            masters_query_integer(pairs->f->masters, pairs->master,
                                  "EXISTS %s %s:0 %s::queue %s::permits", key, key, key, key) > 0;
    }
    return asked == 4;
}

/*
 * A waiter takes no key at a young master, where its holder's next renewal needs it: locks survive
 * the restarts of all masters, one max_ttl apart, while others wait for them.
 */
static void held_locks_survive_restarts_while_others_wait(void **state) {
    struct fixture *f = *state;
    redlock_client *client = trusting_client(f);
    redlock_client *other = trusting_client(f);
    struct pairs pairs = {.f = f,
                          .all = {{REDLOCK_EXCLUSIVE, REDLOCK_EXCLUSIVE, 0, .key = "a"},
                                  {REDLOCK_WRITER, REDLOCK_READER, 0, .key = "b"},
                                  {REDLOCK_READER, REDLOCK_WRITER, 0, .key = "c"},
                                  {REDLOCK_EXCLUSIVE, REDLOCK_EXCLUSIVE, 1, .key = "d"}}};

    for (size_t i = 0; i < 4; i++) {
        struct pair *pair = &pairs.all[i];
        redlock_request request = waiting_request_of(pair->key, pair->held, pair->permits);
        request.ttl_ms = TTL_MS;
        pair->loss = watch_loss(f, &request);
        pair->lock = hold_for(f, client, &request);
        /* A master that had it later would give the key to the waiter. */
        wait_holders(f, pair->permits > 0 ? "d:0" : pair->key, THREE);
        request.mode = pair->wanted;
        pair->waiter = begin_acquire(f, other, &request);
    }
    for (pairs.master = 0; pairs.master < THREE; pairs.master++) {
        restart_empty(f, pairs.master, client, other);
        run_until(f, have_all_asked, &pairs, "all have asked the new master");
        for (size_t i = 0; i < 4; i++) {
            assert_int_equal(extend(f, pairs.all[i].lock, 0), REDLOCK_OK);
        }
        wait_trusted(f, client, THREE);
        wait_trusted(f, other, THREE);
    }
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(extend(f, pairs.all[i].lock, 0), REDLOCK_OK);
        assert_int_equal(pairs.all[i].loss->count, 0);
        assert_int_equal(let_go(f, pairs.all[i].lock), REDLOCK_OK);
        take_turn(f, pairs.all[i].waiter);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(held_locks_survive_restarts_while_others_wait,
                                        three_masters, finish),
    };
    return cmocka_run_group_tests_name("waiting_restarts", tests, NULL, NULL);
}
