/*
 * Many clients want one of a few permits: there are never more holders than permits, and each
 * client gets a permit in the end. Processes with several clients each contend; shared memory
 * records which clients are inside.
 */
#include "contest.h"
#include "crew.h"
#include "harness.h"
#include "master_data.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define KEY "pool:7"
#define PERMITS 3
#define PROCESSES 3
#define CLIENTS 4
#define TURNS 200

/* Memory shared by all processes. */
struct arena {
    atomic_int inside;
    atomic_int with[PERMITS]; /* number of holders of each permit */
    atomic_size_t intruders;  /* acquisitions while all permits were held */
    atomic_size_t doubles;    /* acquisitions while another client held the permit */
    atomic_size_t most;       /* the most clients inside at once */
    /* number of acquisitions by the first, the second, the third, and a later try */
    atomic_size_t by_tries[4];
    atomic_size_t turns[PROCESSES][CLIENTS];
    size_t wanted; /* turns of each client */
};

/* Reads the tries from "acquired after 2 tries in 1 ms, ...". */
static size_t tries_of(const struct call *call) {
    const char *after = strstr(call->why, "after ");

    assert_non_null(after);
    return strtoul(after + strlen("after "), NULL, 10);
}

static void record_most(struct arena *arena, size_t inside) {
    size_t most = atomic_load(&arena->most);

    while (inside > most && !atomic_compare_exchange_weak(&arena->most, &most, inside)) {
    }
}

/* Returns the number of holders of a lock's permit. */
static atomic_int *with(struct arena *arena, const struct call *call) {
    size_t length;
    unsigned permit = (unsigned)(redlock_key(call->lock, &length)[strlen(KEY) + 1] - '0');

    assert_int_in_range(permit, 0, PERMITS - 1);
    return &arena->with[permit];
}

static void come_in(struct call *call, void *memory) {
    struct arena *arena = memory;
    size_t tries = tries_of(call);
    int before = atomic_fetch_add(&arena->inside, 1);

    atomic_fetch_add(&arena->intruders, before >= PERMITS);
    atomic_fetch_add(&arena->doubles, atomic_fetch_add(with(arena, call), 1) != 0);
    record_most(arena, (size_t)before + 1);
    atomic_fetch_add(&arena->by_tries[tries < 4 ? tries - 1 : 3], 1);
}

static void go_out(struct call *call, void *memory) {
    struct arena *arena = memory;

    atomic_fetch_sub(with(arena, call), 1);
    atomic_fetch_sub(&arena->inside, 1);
}

/* Runs one of the processes, which ends at a failed assertion. */
static int run_process(size_t process, void *memory, char **uris, size_t count) {
    struct arena *arena = memory;
    struct contest contest = {
        .request = request_for(KEY, LONG_TTL_MS),
        .turns = arena->wanted,
        .stay = 4,
        .on_in = come_in,
        .on_out = go_out,
        .arg = arena,
    };

    contest.request.permits = PERMITS;
    return contest_run(&contest, uris, count, CLIENTS, arena->turns[process]);
}

static void no_more_than_there_are_permits_have_one(void **state) {
    struct fixture *f = *state;
    struct crew *crew = crew_create(f, sizeof(struct arena));
    struct arena *arena;

    arena = crew->memory;
    arena->wanted = cycles_here(TURNS);
    crew_start(crew, PROCESSES);
    crew_wait(crew);
    assert_int_equal(arena->intruders, 0);
    assert_int_equal(arena->doubles, 0);
    assert_int_equal(arena->inside, 0);
    assert_int_equal(arena->most, PERMITS); /* the clients did contend */
    for (size_t i = 0; i < PROCESSES; i++) {
        for (size_t j = 0; j < CLIENTS; j++) {
            assert_int_equal(arena->turns[i][j], arena->wanted);
        }
    }
    print_message("# %zu by the first try, %zu by the second, %zu by the third, %zu later\n",
                  (size_t)arena->by_tries[0], (size_t)arena->by_tries[1],
                  (size_t)arena->by_tries[2], (size_t)arena->by_tries[3]);
    wait_released(f, KEY ":0");
    wait_released(f, KEY ":1");
    wait_released(f, KEY ":2");
}

static int three_masters(void **state) {
    return start_fixture(state, 3, NULL);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        ON_FIVE_MASTERS(no_more_than_there_are_permits_have_one),
        cmocka_unit_test_setup_teardown(no_more_than_there_are_permits_have_one, three_masters,
                                        finish),
    };
    int result;

    if (crew_member(argc, argv, sizeof(struct arena), run_process, &result)) {
        return result;
    }
    return cmocka_run_group_tests_name("permit_race", tests, NULL, NULL);
}
