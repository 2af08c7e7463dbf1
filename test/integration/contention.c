/*
 * Many clients contend for one key: only one client at a time holds the key, and each acquires it
 * in the end.
 *
 * Four processes with four clients each split the votes again and again. Shared memory records
 * which client is inside.
 */
#include "contest.h"
#include "crew.h"
#include "harness.h"
#include "master_data.h"

#include <stdatomic.h>
#include <stdio.h>

#define KEY "orders:42"
#define PROCESSES 4
#define CLIENTS 4

/* Memory shared by all processes. */
struct arena {
    atomic_int inside;
    atomic_size_t intruders; /* acquisitions while another client was inside */
    atomic_size_t turns[PROCESSES][CLIENTS];
    size_t wanted;     /* turns of each client */
    size_t race_turns; /* above 0: a race that ends after this many turns in all */
    atomic_size_t reported;
};

/* The spread of the turns of all contenders. */
struct spread {
    size_t least, most;
};

static void come_in(struct call *call, void *memory) {
    struct arena *arena = memory;

    (void)call;
    atomic_fetch_add(&arena->intruders, atomic_fetch_add(&arena->inside, 1) != 0);
    atomic_fetch_add(&arena->reported, 1);
}

static void go_out(struct call *call, void *memory) {
    struct arena *arena = memory;

    (void)call;
    atomic_fetch_sub(&arena->inside, 1);
}

static struct spread spread_of(struct arena *arena) {
    struct spread spread = {SIZE_MAX, 0};

    for (size_t i = 0; i < PROCESSES * CLIENTS; i++) {
        size_t turns = atomic_load(&arena->turns[i / CLIENTS][i % CLIENTS]);

        spread.least = turns < spread.least ? turns : spread.least;
        spread.most = turns > spread.most ? turns : spread.most;
    }
    return spread;
}

static bool is_over(void *memory) {
    struct arena *arena = memory;

    return arena->reported >= arena->race_turns || spread_of(arena).least >= arena->wanted;
}

/* Runs one of the processes, which ends at a failed assertion. */
static int run_process(size_t process, void *memory, char **uris, size_t count) {
    struct arena *arena = memory;
    bool is_race = arena->race_turns > 0;
    const struct contest contest = {
        .request = request_for(KEY, LONG_TTL_MS),
        .turns = is_race ? arena->race_turns : arena->wanted,
        .usual_delays = is_race,
        .stay = is_race ? 10 : 6,
        .is_over = is_race ? is_over : NULL,
        .on_in = come_in,
        .on_out = go_out,
        .arg = arena,
    };

    return contest_run(&contest, uris, count, CLIENTS, arena->turns[process]);
}

/*
 * Waits until no key is left. A server, or a process with a pushed key, that gets no core for the
 * time of a reservation lets the key expire: at most one turn in a hundred ends so.
 */
static void wait_for_the_end(struct fixture *f, const struct arena *arena) {
    wait_holders(f, KEY, 0);
    for (size_t i = 0; i < masters_count(f->masters); i++) {
        assert_int_in_range(master_number(f, i, "expired_keys"), 0, arena->reported / 100);
    }
}

static void each_process_gets_the_lock_and_none_while_another_has_it(void **state) {
    struct fixture *f = *state;
    struct crew *crew = crew_create(f, sizeof(struct arena));
    struct arena *arena;

    arena = crew->memory;
    arena->wanted = 100;
    crew_start(crew, PROCESSES);
    crew_wait(crew);
    assert_int_equal(arena->intruders, 0);
    assert_int_equal(arena->inside, 0);
    for (size_t i = 0; i < PROCESSES; i++) {
        for (size_t j = 0; j < CLIENTS; j++) {
            assert_int_equal(arena->turns[i][j], arena->wanted);
        }
    }
    /* The clients did contend: most turns began with a key that most masters passed on. */
    size_t passing = 0;
    for (size_t i = 0; i < masters_count(f->masters); i++) {
        size_t published = executed(f, i, "publish");
        fprintf(stderr, "# master %zu has published %zu times\n", i, published);
        passing += published > PROCESSES * CLIENTS * arena->wanted / 2;
    }
    assert_in_range(passing, masters_count(f->masters) / 2 + 1, masters_count(f->masters));
    wait_for_the_end(f, arena);
}

/*
 * Races with the default delays. A bound on delays that grows with each failed try would favour
 * recently served clients: with a bound of 2 s some clients had a single turn while others had
 * thousands. The race ends when each client has had some hundred turns, or after as many as should
 * suffice for that.
 */
static void nobody_starves_by_default(void **state) {
    struct fixture *f = *state;
    struct crew *crew = crew_create(f, sizeof(struct arena));
    struct arena *arena;
    struct spread spread;

    arena = crew->memory;
    arena->wanted = 250;
    arena->race_turns = 30000;
    crew_start(crew, PROCESSES);
    crew_wait(crew);
    assert_int_equal(arena->intruders, 0);
    spread = spread_of(arena);
    print_message("# %zu turns: %zu to %zu each\n", (size_t)arena->reported, spread.least,
                  spread.most);
    assert_true(spread.most <= 20 * spread.least);
    wait_for_the_end(f, arena);
}

static void let_go_in_call(struct call *call, void *arg) {
    (void)arg;
    assert_ended(call, REDLOCK_OK);
    begin_release(call->fixture, call->lock);
}

/* Clients of one loop start in step: without jitter they would split the votes forever. */
static void clients_that_start_in_step_do_not_stay_in_step(void **state) {
    struct fixture *f = *state;
    redlock_client *clients[CLIENTS];

    for (size_t i = 0; i < CLIENTS; i++) {
        clients[i] = connect_client(f);
    }
    for (size_t round = cycles_here(20); round > 0; round--) {
        redlock_request request = request_for(KEY, LONG_TTL_MS);
        struct call *calls[CLIENTS];

        request.wait_ms = REDLOCK_FOREVER;
        for (size_t i = 0; i < CLIENTS; i++) {
            calls[i] = begin_acquire(f, clients[i], &request);
            calls[i]->then = let_go_in_call;
        }
        for (size_t i = 0; i < CLIENTS; i++) {
            assert_int_equal(await(f, calls[i]), REDLOCK_OK);
        }
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        ON_FIVE_MASTERS(each_process_gets_the_lock_and_none_while_another_has_it),
        ON_FIVE_MASTERS(nobody_starves_by_default),
        ON_FIVE_MASTERS(clients_that_start_in_step_do_not_stay_in_step),
    };

    int result;

    if (crew_member(argc, argv, sizeof(struct arena), run_process, &result)) {
        return result;
    }
    return cmocka_run_group_tests_name("contention", tests, NULL, NULL);
}
