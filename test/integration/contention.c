/*
 * Many want the same key: only one at a time has it, and each gets it in the end.
 *
 * Four processes with four clients each split the votes over and over. Memory that they share says
 * who is inside.
 */
#include "contest.h"
#include "crew.h"
#include "harness.h"
#include "look.h"

#include <stdatomic.h>

#define KEY "orders:42"
#define PROCESSES 4
#define CLIENTS 4

/* What all processes see. */
struct arena {
    atomic_int inside;
    atomic_size_t intruders; /* acquisitions while another was inside */
    atomic_size_t turns[PROCESSES][CLIENTS];
    size_t wanted; /* turns of each */
};

static void come_in(struct call *call, void *memory) {
    struct arena *arena = memory;

    (void)call;
    atomic_fetch_add(&arena->intruders, atomic_fetch_add(&arena->inside, 1) != 0);
}

static void go_out(struct call *call, void *memory) {
    struct arena *arena = memory;

    (void)call;
    atomic_fetch_sub(&arena->inside, 1);
}

/* One of the processes. A failed assertion ends it. */
static int run_process(size_t process, void *memory, char **uris, size_t count) {
    struct arena *arena = memory;
    const struct contest contest = {
        .request = request_for(KEY, LONG_TTL_MS),
        .turns = arena->wanted,
        .stay = 6,
        .on_in = come_in,
        .on_out = go_out,
        .arg = arena,
    };

    return contest_run(&contest, uris, count, CLIENTS, arena->turns[process]);
}

static void each_process_gets_the_lock_and_none_while_another_has_it(void **state) {
    struct fixture *f = *state;
    struct crew crew;
    struct arena *arena;

    crew_init(&crew, sizeof(*arena));
    arena = crew.memory;
    arena->wanted = 100;
    crew_start(&crew, f, PROCESSES);
    crew_wait(&crew);
    assert_int_equal(arena->intruders, 0);
    assert_int_equal(arena->inside, 0);
    for (size_t i = 0; i < PROCESSES; i++) {
        for (size_t j = 0; j < CLIENTS; j++) {
            assert_int_equal(arena->turns[i][j], arena->wanted);
        }
    }
    /* They were in each other's way: there were more tries than turns. */
    assert_true(executed(f, 0, "set") > PROCESSES * CLIENTS * arena->wanted);
    wait_released(f, KEY);
    crew_finish(&crew);
}

static void let_go_in_call(struct call *call, void *arg) {
    (void)arg;
    assert_ended(call, REDLOCK_OK);
    begin_release(call->fixture, call->lock);
}

/* Clients of one loop, in step: without jitter they would split the votes for ever. */
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
        ON_FIVE_MASTERS(clients_that_start_in_step_do_not_stay_in_step),
    };

    int result;

    if (crew_member(argc, argv, sizeof(struct arena), run_process, &result)) {
        return result;
    }
    return cmocka_run_group_tests_name("contention", tests, NULL, NULL);
}
