/*
 * Many want one of a few permits: never more than so many have one at a time, and each gets one in
 * the end. Processes with several clients each contend; memory that they share says who is inside.
 */
#include "crew.h"
#include "harness.h"
#include "look.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define KEY "pool:7"
#define PERMITS 3
#define PROCESSES 3
#define CLIENTS 4
#define TURNS 200

/* What all processes see. */
struct arena {
    atomic_int inside;
    atomic_int with[PERMITS];  /* how many have each permit */
    atomic_size_t intruders;   /* acquisitions while as many were inside as may be */
    atomic_size_t doubles;     /* and while another had the same permit */
    atomic_size_t most;        /* that were inside at once */
    atomic_size_t by_tries[4]; /* acquisitions: by the first try, the second, the third, later */
    atomic_size_t turns[PROCESSES][CLIENTS];
    size_t wanted; /* turns of each */
};

struct contender {
    struct fixture *f;
    struct arena *arena;
    redlock_client *client;
    atomic_size_t *turns;
    struct call *call;
    unsigned permit;
    unsigned stay; /* extensions until it releases */
};

static void contend(struct contender *contender);

static void on_out(struct call *call, void *arg) {
    assert_ended(call, REDLOCK_OK);
    contend(arg);
}

static void stay(struct contender *contender, struct call *call);

static void leave(struct contender *contender, struct call *call) {
    struct call *release;

    atomic_fetch_sub(&contender->arena->with[contender->permit], 1);
    atomic_fetch_sub(&contender->arena->inside, 1);
    release = begin_release(contender->f, call->lock);
    release->then = on_out;
    release->then_arg = contender;
}

static void on_stayed(struct call *call, void *arg) {
    struct contender *contender = arg;

    assert_ended(call, REDLOCK_OK);
    if (contender->stay-- > 0) {
        stay(contender, call);
    } else {
        leave(contender, call);
    }
}

/* Extensions pass the time, while the others try. */
static void stay(struct contender *contender, struct call *call) {
    struct call *extension = begin_extend(contender->f, call->lock, 0);

    extension->then = on_stayed;
    extension->then_arg = contender;
}

/* "acquired after 2 tries in 1 ms, ..." */
static size_t tries_of(const struct call *call) {
    const char *after = strstr(call->why, "after ");

    assert_non_null(after);
    return strtoul(after + strlen("after "), NULL, 10);
}

static void note_most(struct arena *arena, size_t inside) {
    size_t most = atomic_load(&arena->most);

    while (inside > most && !atomic_compare_exchange_weak(&arena->most, &most, inside)) {
    }
}

static void on_in(struct call *call, void *arg) {
    struct contender *contender = arg;
    struct arena *arena = contender->arena;
    size_t length;
    size_t tries = tries_of(call);

    assert_ended(call, REDLOCK_OK);
    contender->permit = (unsigned)(redlock_key(call->lock, &length)[strlen(KEY) + 1] - '0');
    assert_in_range(contender->permit, 0, PERMITS - 1);
    int before = atomic_fetch_add(&arena->inside, 1);
    atomic_fetch_add(&arena->intruders, before >= PERMITS);
    atomic_fetch_add(&arena->doubles, atomic_fetch_add(&arena->with[contender->permit], 1) != 0);
    note_most(arena, (size_t)before + 1);
    atomic_fetch_add(&arena->by_tries[tries < 4 ? tries - 1 : 3], 1);
    atomic_fetch_add(contender->turns, 1);
    contender->stay = 3;
    stay(contender, call);
}

static void contend(struct contender *contender) {
    redlock_request request = request_for(KEY, LONG_TTL_MS);

    contender->call = NULL;
    if (atomic_load(contender->turns) < contender->arena->wanted) {
        request.permits = PERMITS;
        request.wait_ms = REDLOCK_FOREVER;
        contender->call = begin_acquire(contender->f, contender->client, &request);
        contender->call->then = on_in;
        contender->call->then_arg = contender;
    }
}

/* How far a process's clients have come, all together. */
struct progress {
    struct contender contenders[CLIENTS];
    size_t target;
};

static bool has_progressed(void *arg) {
    const struct progress *progress = arg;
    size_t turns = 0;

    for (size_t i = 0; i < CLIENTS; i++) {
        turns += atomic_load(progress->contenders[i].turns);
    }
    return turns >= progress->target;
}

static bool is_idle(void *arg) {
    const struct progress *progress = arg;

    for (size_t i = 0; i < CLIENTS; i++) {
        if (progress->contenders[i].call != NULL) {
            return false;
        }
    }
    return true;
}

static void join(struct contender *contender, struct fixture *f, struct arena *arena,
                 const char *const *uris, size_t count) {
    redlock_options options = patient_options(f, uris, count);

    options.log_level = REDLOCK_LOG_INFO;
    options.retry_delay_ms = 1;
    options.retry_delay_max_ms = 4;
    *contender = (struct contender){.f = f, .arena = arena};
    contender->client = create_client(f, &options);
    wait_connected(f, contender->client, count);
}

/* One of the processes. A failed assertion ends it. */
static int run_process(size_t process, void *memory, char **uris, size_t count) {
    struct arena *arena = memory;
    struct progress progress = {.target = 0};
    void *state = NULL;

    if (start_fixture(&state, 0, NULL) != 0) {
        return EXIT_FAILURE;
    }
    for (size_t i = 0; i < CLIENTS; i++) {
        join(&progress.contenders[i], state, arena, (const char *const *)uris, count);
        progress.contenders[i].turns = &arena->turns[process][i];
    }
    for (size_t i = 0; i < CLIENTS; i++) {
        contend(&progress.contenders[i]);
    }
    for (progress.target = 1; progress.target <= CLIENTS * arena->wanted; progress.target++) {
        run_until(state, has_progressed, &progress, "one of the clients has had another turn");
    }
    run_until(state, is_idle, &progress, "all clients have released");
    finish(&state);
    return EXIT_SUCCESS;
}

static void no_more_than_there_are_permits_have_one(void **state) {
    struct fixture *f = *state;
    struct crew crew;
    struct arena *arena;

    crew_init(&crew, sizeof(*arena));
    arena = crew.memory;
    arena->wanted = cycles_here(TURNS);
    crew_start(&crew, f, PROCESSES);
    crew_wait(&crew);
    assert_int_equal(arena->intruders, 0);
    assert_int_equal(arena->doubles, 0);
    assert_int_equal(arena->inside, 0);
    assert_int_equal(arena->most, PERMITS); /* and they were in each other's way */
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
    crew_finish(&crew);
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
