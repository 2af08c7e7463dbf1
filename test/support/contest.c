#include "contest.h"

#include <stdlib.h>

struct contestant {
    struct fixture *f;
    const struct contest *contest;
    redlock_client *client;
    atomic_size_t *done;
    struct call *call; /* the latest acquisition; NULL: the client has had all its turns */
    unsigned stay;
};

static void contend(struct contestant *contestant);

static void on_released(struct call *call, void *arg) {
    assert_ended(call, REDLOCK_OK);
    contend(arg);
}

static void stay_or_leave(struct contestant *contestant);

static void on_stayed(struct call *call, void *arg) {
    assert_ended(call, REDLOCK_OK);
    stay_or_leave(arg);
}

static void stay_or_leave(struct contestant *contestant) {
    const struct contest *contest = contestant->contest;
    redlock_lock *lock = contestant->call->lock;
    struct call *call;

    if (contestant->stay > 0) {
        contestant->stay--;
        call = begin_extend(contestant->f, lock, 0);
        call->then = on_stayed;
    } else {
        contest->on_out(contestant->call, contest->arg);
        call = begin_release(contestant->f, lock);
        call->then = on_released;
    }
    call->then_arg = contestant;
}

static void on_acquired(struct call *call, void *arg) {
    struct contestant *contestant = arg;
    const struct contest *contest = contestant->contest;

    assert_ended(call, REDLOCK_OK);
    contest->on_in(call, contest->arg);
    atomic_fetch_add(contestant->done, 1);
    contestant->stay = contest->stay;
    stay_or_leave(contestant);
}

static bool has_had_enough(const struct contestant *contestant) {
    const struct contest *contest = contestant->contest;

    return atomic_load(contestant->done) >= contest->turns ||
           (contest->is_over != NULL && contest->is_over(contest->arg));
}

static void contend(struct contestant *contestant) {
    redlock_request request = contestant->contest->request;

    contestant->call = NULL;
    if (!has_had_enough(contestant)) {
        request.wait_ms = REDLOCK_FOREVER;
        contestant->call = begin_acquire(contestant->f, contestant->client, &request);
        contestant->call->then = on_acquired;
        contestant->call->then_arg = contestant;
    }
}

static void join(struct contestant *contestant, char **uris, size_t uri_count) {
    redlock_options options = patient_options(contestant->f, (const char *const *)uris, uri_count);
    const redlock_options usual = REDLOCK_OPTIONS_INIT;
    bool is_usual = contestant->contest->usual_delays;

    options.log_level = REDLOCK_LOG_INFO;
    options.retry_delay_ms = is_usual ? usual.retry_delay_ms : 1;
    options.retry_delay_max_ms = is_usual ? usual.retry_delay_max_ms : 4;
    contestant->client = connect_with(contestant->f, &options);
}

/* The turns of all clients together. */
struct progress {
    const struct contestant *contestants;
    size_t count;
    size_t target; /* turns */
};

static bool is_idle(void *arg) {
    const struct progress *progress = arg;

    for (size_t i = 0; i < progress->count; i++) {
        if (progress->contestants[i].call != NULL) {
            return false;
        }
    }
    return true;
}

static bool has_progressed(void *arg) {
    const struct progress *progress = arg;
    size_t turns = 0;

    for (size_t i = 0; i < progress->count; i++) {
        turns += atomic_load(progress->contestants[i].done);
    }
    return turns >= progress->target || is_idle(arg);
}

int contest_run(const struct contest *contest, char **uris, size_t uri_count, size_t clients,
                atomic_size_t *done) {
    struct contestant *contestants = calloc(clients, sizeof(*contestants));
    struct progress progress = {contestants, clients, 1};
    void *state = NULL;

    if (contestants == NULL || start_fixture(&state, 0, NULL) != 0) {
        free(contestants);
        return EXIT_FAILURE;
    }
    for (size_t i = 0; i < clients; i++) {
        contestants[i] = (struct contestant){.f = state, .contest = contest, .done = &done[i]};
        join(&contestants[i], uris, uri_count);
    }
    for (size_t i = 0; i < clients; i++) {
        contend(&contestants[i]);
    }
    for (; progress.target <= clients * contest->turns; progress.target++) {
        run_until(state, has_progressed, &progress, "one of the clients has had another turn");
    }
    run_until(state, is_idle, &progress, "all clients have released");
    finish(&state);
    free(contestants);
    return EXIT_SUCCESS;
}
