/* Requests that wait in the queue at the masters, or for another one of their client. */
#include "scenarios.h"
#include "steps.h"

/* A time longer than a run. */
#define LONG_MS 50000

/* 1.5 days ahead of the masters' clocks: above any hint, and within the bound of counters. */
#define FAR (world_now() / 1000 + UINT64_C(129600000000))

/* ---- steps ---- */

/*
 * Returns a request that trusts pushes, since the watchdog renews its lock soon. A key whose
 * release failed for lack of memory is free before a scenario stops waiting.
 */
static redlock_request patient_request(void) {
    redlock_request request = app_request(KEY);
    request.ttl_ms = 9000;
    request.wait_ms = REDLOCK_FOREVER;
    request.watchdog = true;
    return request;
}

static bool are_in_queue(const void *arg) {
    return masters_queued(KEY) == *(const unsigned *)arg || faults_struck() > 0;
}

/* Turns until all masters have `waiters` in the queue; after a failure only for a while. */
static void wait_in_queue(unsigned waiters) {
    unsigned entries = waiters * MASTERS_COUNT;
    world_wait(are_in_queue, &entries, "all masters have their entries");
    if (faults_struck() > 0) {
        world_pass_ms(20);
    }
}

static bool is_over(const void *arg) {
    return ((const struct hold *)arg)->stage != HOLD_ACQUIRING;
}

/* Waits for the end of an acquisition, which succeeds unless something has failed. */
static void await_held(const struct hold *hold) {
    world_wait(is_over, hold, "the acquisition has ended");
    EXPECT(hold->stage == HOLD_HELD);
}

/* Queues a request of a connected client for KEY, which another client has. */
static struct hold *begin_in_queue(struct app *app, const redlock_request *request) {
    masters_occupy(MASTERS_ALL, KEY, LONG_MS);
    struct hold *hold = open_connected(app) ? app_acquire(app, request) : NULL;
    if (hold != NULL) {
        wait_in_queue(1);
    }
    return hold;
}

/* Releases a held lock, and checks that afterwards no client has the key or an entry. */
static void end_held(struct hold *hold) {
    await_held(hold);
    let_go(hold);
    wait_free(hold->app);
    EXPECT(masters_queued(KEY) == 0);
}

/* ---- queued at the masters ---- */

static void pushed_as(struct app *app, const redlock_request *request) {
    struct hold *hold = begin_in_queue(app, request);
    masters_give_up(MASTERS_ALL, KEY);
    if (hold != NULL) {
        await_held(hold);
        EXPECT(masters_pushed() == MASTERS_COUNT);
        end_held(hold);
    }
}

static void pushed(struct app *app) {
    redlock_request request = patient_request();
    pushed_as(app, &request);
}

static void pushed_and_renewed(struct app *app) {
    redlock_request request = patient_request();
    struct hold *hold = begin_in_queue(app, &request);
    masters_give_up(MASTERS_ALL, KEY);
    if (hold != NULL) {
        await_held(hold);
        world_pass_ms(2000); /* longer than the reservation */
        EXPECT(hold->stage == HOLD_HELD);
        end_held(hold);
    }
}

static void pushed_and_confirmed(struct app *app) {
    redlock_request request = patient_request();
    app->options.handover = REDLOCK_HANDOVER_CONFIRM;
    pushed_as(app, &request);
}

static void pushed_without_watchdog(struct app *app) {
    redlock_request request = patient_request();
    request.watchdog = false;
    pushed_as(app, &request);
}

static void pushed_with_a_fence(struct app *app) {
    redlock_request request = patient_request();
    request.fenced = true;
    pushed_as(app, &request);
}

/* The key goes from one client to the other, which has to raise one of the counters. */
static void pushed_by_a_client(struct app *apps) {
    redlock_request request = patient_request();
    request.fenced = true;
    struct hold *first = open_connected(&apps[0]) ? hold_for(&apps[0], &request) : NULL;
    struct hold *next = open_connected(&apps[1]) ? app_acquire(&apps[1], &request) : NULL;
    if (first != NULL && next != NULL) {
        wait_in_queue(1);
        uint64_t fence = redlock_fence(first->lock);
        masters_count(FIRST, KEY, FAR);
        let_go(first);
        await_held(next);
        CHECK(next->stage != HOLD_HELD || redlock_fence(next->lock) > fence);
        EXPECT(masters_pushed() == MASTERS_COUNT);
        end_held(next);
    }
}

static bool is_over_or_struck(const void *hold) {
    return is_over(hold) || faults_struck() > 0;
}

/*
 * Returns whether the writer, or the reader queued after it, is done; without memory either may be
 * first.
 */
static bool is_one_over(const void *arg) {
    const struct hold *const *in_line = arg;
    return is_over(in_line[0]) ||
           (in_line[1] != NULL && faults_struck() > 0 && is_over(in_line[1]));
}

/* A writer and a reader queue after a reader; the writer gives up, or has its turn. */
static void written_in_queue(struct app *apps, bool gives_up) {
    redlock_request request = patient_request();
    request.mode = REDLOCK_READER;
    struct hold *first = open_connected(&apps[0]) ? hold_for(&apps[0], &request) : NULL;
    request.mode = REDLOCK_WRITER;
    struct hold *writer = open_connected(&apps[1]) ? app_acquire(&apps[1], &request) : NULL;
    if (first == NULL || writer == NULL) {
        return;
    }
    wait_in_queue(1);
    request.mode = REDLOCK_READER;
    struct hold *second = app_acquire(&apps[1], &request);
    if (second != NULL) {
        wait_in_queue(2);
    }
    if (gives_up && writer->stage == HOLD_ACQUIRING) {
        app_cancel(writer);
    }
    if (!gives_up) {
        const struct hold *in_line[] = {writer, second};
        let_go(first);
        world_wait(is_one_over, in_line, "one of the waiters has its turn");
        if (!is_over(writer)) { /* its channels were down at its turn */
            let_go(second);
        }
        await_held(writer);
        let_go(writer);
    }
    if (second != NULL && gives_up) { /* without memory, the writer's entry may be left */
        world_wait(is_over_or_struck, second, "the second reader is let in");
    }
    if (gives_up) {
        let_go(first);
    }
    if (second != NULL) {
        await_held(second);
        let_go(second);
    }
    wait_free(&apps[1]);
    EXPECT(masters_queued(KEY) == 0);
}

static void written_in_queue_after_a_reader(struct app *apps) {
    written_in_queue(apps, false);
}

static void a_writer_in_queue_gives_up(struct app *apps) {
    written_in_queue(apps, true);
}

/*
 * The key comes free at one master before the others: the waiter gives up its grant and requeues.
 */
static void requeued(struct app *app) {
    redlock_request request = patient_request();
    struct hold *hold = begin_in_queue(app, &request);
    masters_give_up(FIRST, KEY);
    if (hold != NULL) {
        world_pass_ms(60);
        EXPECT(masters_released() > 0 && hold->stage == HOLD_ACQUIRING);
        masters_give_up(MASTERS_ALL, KEY);
        end_held(hold);
    }
    masters_give_up(MASTERS_ALL, KEY);
}

/* Two masters push the key, and one of the pushes is lost. */
static void a_push_is_lost(struct app *app) {
    redlock_request request = patient_request();
    struct hold *hold = begin_in_queue(app, &request);
    if (hold != NULL) {
        masters_behave(FIRST, MANNER_MUTE);
        masters_give_up(FIRST_TWO, KEY);
        masters_behave(FIRST, MANNER_WELL);
        await_held(hold);
        masters_give_up(MASTERS_ALL, KEY);
        end_held(hold);
    }
}

/* The connection over which a master would push ends, and a new one replaces it. */
static void the_channels_break_in_queue(struct app *app) {
    redlock_request request = patient_request();
    struct hold *hold = begin_in_queue(app, &request);
    masters_cut(FIRST_TWO);
    if (hold != NULL) {
        wait_connected(app);
        world_pass_ms(5);
        masters_give_up(MASTERS_ALL, KEY);
        end_held(hold);
    }
    masters_give_up(MASTERS_ALL, KEY);
}

static void no_channel_is_allowed(struct app *app) {
    redlock_request request = patient_request();
    masters_behave(MASTERS_ALL, MANNER_PRIVATE);
    masters_occupy(MASTERS_ALL, KEY, 60);
    struct hold *hold = open_connected(app) ? app_acquire(app, &request) : NULL;
    if (hold != NULL) {
        await_held(hold);
        EXPECT(masters_pushed() == 0);
        end_held(hold);
    }
}

static void scripts_forgotten_in_queue(struct app *app) {
    redlock_request request = patient_request();
    struct hold *hold = begin_in_queue(app, &request);
    masters_forget_scripts(MASTERS_ALL);
    masters_give_up(MASTERS_ALL, KEY);
    if (hold != NULL) {
        end_held(hold);
    }
}

static void inspected_in_queue(struct app *app) {
    redlock_request request = patient_request();
    struct hold *hold = begin_in_queue(app, &request);
    if (hold != NULL) {
        app_inspect(app, KEY);
        world_pass_ms(5);
        EXPECT(app->looks == 0 && app->seen == REDLOCK_OK);
        masters_give_up(MASTERS_ALL, KEY);
        end_held(hold);
    }
}

/* ---- waiters that leave ---- */

static void waited_in_queue_too_long(struct app *app) {
    redlock_request request = patient_request();
    request.wait_ms = 300;
    struct hold *hold = begin_in_queue(app, &request);
    if (hold != NULL) {
        wait_idle(app);
        EXPECT(hold->acquired == REDLOCK_EHELD);
        wait_in_queue(0);
    }
}

static void canceled_in_queue(struct app *app) {
    redlock_request request = patient_request();
    struct hold *hold = begin_in_queue(app, &request);
    if (hold != NULL && hold->stage == HOLD_ACQUIRING) {
        app_cancel(hold);
        wait_idle(app);
        EXPECT(hold->acquired == REDLOCK_ECANCELED);
        wait_in_queue(0);
    }
}

/* Cancels before the pushes are read: the masters get the key back. */
static void canceled_when_pushed(struct app *app) {
    redlock_request request = patient_request();
    struct hold *hold = begin_in_queue(app, &request);
    masters_give_up(MASTERS_ALL, KEY);
    if (hold != NULL && hold->stage == HOLD_ACQUIRING) {
        app_cancel(hold);
        wait_idle(app);
        EXPECT(hold->acquired == REDLOCK_ECANCELED);
        wait_free(app);
    }
}

static void closed_in_queue(struct app *app) {
    redlock_request request = patient_request();
    struct hold *hold = begin_in_queue(app, &request);
    if (hold != NULL) {
        app_acquire(app, &request);
        close_and_wait(app);
        EXPECT(hold->acquired == REDLOCK_ECLOSED);
        EXPECT(masters_queued(KEY) == 0);
    }
}

static void closed_when_pushed(struct app *app) {
    redlock_request request = patient_request();
    struct hold *hold = begin_in_queue(app, &request);
    masters_give_up(MASTERS_ALL, KEY);
    if (hold != NULL) {
        close_and_wait(app);
        EXPECT(hold->acquired == REDLOCK_ECLOSED);
        EXPECT(masters_having(KEY) == 0);
    }
}

/* ---- inside a client ---- */

#define COHORT 3

static void cancel_all(struct app *app) {
    for (unsigned i = 0; i < app->count; i++) {
        if (app->holds[i].stage == HOLD_ACQUIRING) {
            app_cancel(&app->holds[i]);
        }
    }
}

/*
 * Makes requests for KEY at once, and waits until the first is served. Returns false, after
 * canceling all, when a request was refused.
 */
static bool begin_cohort(struct app *app, const redlock_request *request,
                         struct hold *holds[COHORT]) {
    bool are_made = open_connected(app);
    for (unsigned i = 0; are_made && i < COHORT; i++) {
        holds[i] = app_acquire(app, request);
        are_made = holds[i] != NULL;
    }
    if (are_made) {
        await_held(holds[0]);
    } else {
        cancel_all(app);
    }
    return are_made;
}

/* Releases one lock without waiting for others, and waits until the next one is held. */
static void hand_over(struct hold *from, struct hold *to) {
    if (is_ours(from)) {
        app_release(from, true);
    }
    await_held(to);
    EXPECT(from->released == REDLOCK_OK);
}

static void handed_over(struct app *app) {
    redlock_request request = patient_request();
    struct hold *holds[COHORT];
    if (begin_cohort(app, &request, holds)) {
        unsigned asked = masters_asked();
        hand_over(holds[0], holds[1]);
        hand_over(holds[1], holds[2]);
        EXPECT(masters_asked() == asked);
        end_held(holds[2]);
    }
}

static void handed_over_by_a_round(struct app *app) {
    redlock_request request = patient_request();
    struct hold *holds[COHORT];
    request.fenced = true;
    if (begin_cohort(app, &request, holds)) {
        uint64_t fence = holds[0]->stage == HOLD_HELD ? redlock_fence(holds[0]->lock) : 0;
        hand_over(holds[0], holds[1]);
        CHECK(holds[1]->stage != HOLD_HELD || redlock_fence(holds[1]->lock) > fence);
        hand_over(holds[1], holds[2]);
        end_held(holds[2]);
    }
}

/* No quorum answers the next lease's round, which then tries by itself. */
static void handed_over_in_vain(struct app *app) {
    redlock_request request = patient_request();
    struct hold *holds[COHORT];
    request.fenced = true;
    if (begin_cohort(app, &request, holds)) {
        masters_behave(FIRST_TWO, MANNER_MUTE);
        if (is_ours(holds[0])) {
            app_release(holds[0], true);
        }
        world_pass_ms(50);
        masters_behave(FIRST_TWO, MANNER_WELL);
        await_held(holds[1]);
        hand_over(holds[1], holds[2]);
        end_held(holds[2]);
    }
}

static bool can_push_or_struck(const void *arg) {
    (void)arg;
    return masters_probed() >= MASTERS_COUNT || faults_struck() > 0;
}

/*
 * The limit of handoffs is reached: the release after it carries the last request into the queue.
 */
static void queued_after_the_last_handoff(struct app *app) {
    redlock_request request = patient_request();
    struct hold *holds[COHORT];
    app->options.max_local_handoffs = 1;
    if (begin_cohort(app, &request, holds)) {
        world_wait(can_push_or_struck, NULL, "all masters can push");
        hand_over(holds[0], holds[1]);
        let_go(holds[1]);
        await_held(holds[2]);
        EXPECT(masters_pushed() == MASTERS_COUNT);
        end_held(holds[2]);
    }
}

static void canceled_before_its_handoff(struct app *app) {
    redlock_request request = patient_request();
    struct hold *holds[COHORT];
    if (begin_cohort(app, &request, holds)) {
        if (holds[1]->stage == HOLD_ACQUIRING) {
            app_cancel(holds[1]);
        }
        hand_over(holds[0], holds[2]);
        EXPECT(holds[1]->acquired == REDLOCK_ECANCELED);
        end_held(holds[2]);
    }
}

/*
 * Until its acquisition is reported, the next request can be canceled, and has no lock to release.
 */
static void canceled_before_it_is_reported(struct app *app) {
    redlock_request request = patient_request();
    struct hold *holds[COHORT];
    if (begin_cohort(app, &request, holds)) {
        if (is_ours(holds[0])) {
            app_release(holds[0], true);
        }
        if (holds[1]->stage == HOLD_ACQUIRING) {
            CHECK(app_release(holds[1], true) == REDLOCK_EINVAL);
            CHECK(app_cancel(holds[1]) == REDLOCK_OK);
        }
        await_held(holds[2]);
        EXPECT(holds[1]->acquired == REDLOCK_ECANCELED);
        end_held(holds[2]);
    }
}

static void closed_while_it_is_handed_over(struct app *app) {
    redlock_request request = patient_request();
    struct hold *holds[COHORT];
    request.fenced = true;
    if (begin_cohort(app, &request, holds)) {
        if (is_ours(holds[0])) {
            app_release(holds[0], true);
        }
        world_turn();
        close_and_wait(app);
        EXPECT(masters_having(KEY) == 0);
    }
}

/* The holder loses its lock, and the requests after it go on by themselves. */
static void lost_before_it_is_handed_over(struct app *app) {
    redlock_request request = patient_request();
    struct hold *holds[COHORT];
    request.watchdog = false;
    request.ttl_ms = 60;
    if (begin_cohort(app, &request, holds)) {
        for (unsigned i = 0; i < COHORT; i++) {
            await_held(holds[i]);
            if (i + 1 < COHORT && holds[i]->stage == HOLD_HELD) {
                wait_lost(holds[i]);
            }
        }
        let_go(holds[COHORT - 1]);
    }
}

static const struct scenario scenarios[] = {
    ON_SOCKETS(pushed),
    ON_SOCKETS(pushed_and_renewed),
    ON_SOCKETS(pushed_and_confirmed),
    ON_SOCKETS(pushed_without_watchdog),
    ON_SOCKETS(pushed_with_a_fence),
    ON_SOCKETS(pushed_by_a_client),
    ON_SOCKETS(written_in_queue_after_a_reader),
    ON_SOCKETS(a_writer_in_queue_gives_up),
    ON_SOCKETS(requeued),
    ON_SOCKETS(a_push_is_lost),
    ON_SOCKETS(the_channels_break_in_queue),
    ON_SOCKETS(no_channel_is_allowed),
    ON_SOCKETS(scripts_forgotten_in_queue),
    ON_SOCKETS(inspected_in_queue),
    ON_SOCKETS(waited_in_queue_too_long),
    ON_SOCKETS(canceled_in_queue),
    ON_SOCKETS(canceled_when_pushed),
    ON_SOCKETS(closed_in_queue),
    ON_SOCKETS(closed_when_pushed),
    ON_SOCKETS(handed_over),
    ON_SOCKETS(handed_over_by_a_round),
    ON_SOCKETS(handed_over_in_vain),
    ON_SOCKETS(queued_after_the_last_handoff),
    ON_SOCKETS(canceled_before_its_handoff),
    ON_SOCKETS(canceled_before_it_is_reported),
    ON_SOCKETS(closed_while_it_is_handed_over),
    ON_SOCKETS(lost_before_it_is_handed_over),
};

const struct theme theme_waiting = THEME(scenarios);
