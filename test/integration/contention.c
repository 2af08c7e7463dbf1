/*
 * Many want the same key: only one at a time has it, and each gets it in the end.
 *
 * Four processes with four clients each split the votes over and over. Memory that they share says
 * who is inside.
 */
#include "crew.h"
#include "harness.h"
#include "look.h"

#include <stdatomic.h>
#include <stdlib.h>

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

struct contender {
    struct fixture *f;
    struct arena *arena;
    redlock_client *client;
    atomic_size_t *turns;
    struct call *call;
    unsigned stay; /* extensions until it releases */
};

static void contend(struct contender *contender);

static void on_out(struct call *call, void *arg) {
    assert_ended(call, REDLOCK_OK);
    contend(arg);
}

static void stay(struct contender *contender, struct call *call);

static void on_stayed(struct call *call, void *arg) {
    struct contender *contender = arg;
    struct call *release;

    assert_ended(call, REDLOCK_OK);
    if (contender->stay-- > 0) {
        stay(contender, call);
        return;
    }
    atomic_fetch_sub(&contender->arena->inside, 1);
    release = begin_release(contender->f, call->lock);
    release->then = on_out;
    release->then_arg = contender;
}

/* Extensions pass the time, while the others try. */
static void stay(struct contender *contender, struct call *call) {
    struct call *extension = begin_extend(contender->f, call->lock, 0);

    extension->then = on_stayed;
    extension->then_arg = contender;
}

static void on_in(struct call *call, void *arg) {
    struct contender *contender = arg;

    assert_ended(call, REDLOCK_OK);
    if (atomic_fetch_add(&contender->arena->inside, 1) != 0) {
        atomic_fetch_add(&contender->arena->intruders, 1);
    }
    atomic_fetch_add(contender->turns, 1);
    contender->stay = 5;
    stay(contender, call);
}

static void contend(struct contender *contender) {
    redlock_request request = request_for(KEY, LONG_TTL_MS);

    contender->call = NULL;
    if (atomic_load(contender->turns) < contender->arena->wanted) {
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

static size_t turns_so_far(const struct progress *progress) {
    size_t turns = 0;

    for (size_t i = 0; i < CLIENTS; i++) {
        turns += atomic_load(progress->contenders[i].turns);
    }
    return turns;
}

static bool has_progressed(void *arg) {
    const struct progress *progress = arg;

    return turns_so_far(progress) >= progress->target;
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

static void compete(struct fixture *f, struct progress *progress, size_t wanted) {
    for (size_t i = 0; i < CLIENTS; i++) {
        contend(&progress->contenders[i]);
    }
    for (progress->target = 1; progress->target <= CLIENTS * wanted; progress->target++) {
        run_until(f, has_progressed, progress, "one of the clients has had another turn");
    }
    run_until(f, is_idle, progress, "all clients have released");
}

/* One of the processes. A failed assertion ends it. */
static int run_process(size_t process, void *memory, char **uris, size_t count) {
    struct arena *arena = memory;
    struct progress progress = {.target = 0};
    void *state = NULL;
    struct fixture *f;

    if (start_fixture(&state, 0, NULL) != 0) {
        return EXIT_FAILURE;
    }
    f = state;
    for (size_t i = 0; i < CLIENTS; i++) {
        redlock_options options = patient_options(f, (const char *const *)uris, count);

        options.log_level = REDLOCK_LOG_INFO;
        options.retry_delay_ms = 1;
        options.retry_delay_max_ms = 4;
        progress.contenders[i] = (struct contender){.f = f,
                                                    .arena = arena,
                                                    .client = create_client(f, &options),
                                                    .turns = &arena->turns[process][i]};
        wait_connected(f, progress.contenders[i].client, count);
    }
    compete(f, &progress, arena->wanted);
    finish(&state);
    return EXIT_SUCCESS;
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
