/*
 * Processes compete for one fenced lock, while changing nodes lose writes: the fences grow
 * strictly. The largest counter of the same nodes alone does not.
 */
#include "crew.h"
#include "harness.h"
#include "master_data.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define KEY "orders:42"
#define FIVE 5
#define PROCESSES 3
#define ACQUISITIONS 10000

/* Ahead of the wall clock for an hour: no hint helps the counters to agree. */
#define FAR ((uint64_t)(time(NULL) + 3600) * 1000000)

/*
 * The time for which a node denies all clients; the number of acquisitions after which other nodes
 * do.
 */
#define REFUSAL_MS "5"
#define REFUSAL_PERIOD 5

/* One acquisition, recorded while it was held. */
struct entry {
    uint64_t fence;
    uint32_t granted; /* mask of the nodes that granted it, according to the report */
};

struct ledger {
    atomic_size_t count;
    atomic_size_t
        raised; /* number of rounds that raised counters; other locks took one round trip */
    size_t wanted;
    struct entry entries[ACQUISITIONS + PROCESSES];
};

/* ---------------------------------------------------------------------------------- a process */

struct competitor {
    struct fixture *f;
    struct ledger *ledger;
    redlock_client *client;
    bool is_done;
};

static void compete(struct competitor *competitor);

static void on_released(struct call *call, void *arg) {
    assert_int_not_equal(call->status, REDLOCK_ENOMEM);
    compete(arg);
}

static uint32_t who_granted(const struct call *call) {
    uint32_t mask = 0;
    for (size_t i = 0; i < call->opinion_count; i++) {
        mask |= (uint32_t)(call->opinions[i].vote == REDLOCK_VOTE_GRANTED) << i;
    }
    return mask;
}

static void on_acquired(struct call *call, void *arg) {
    struct competitor *competitor = arg;
    struct ledger *ledger = competitor->ledger;
    struct call *release;

    assert_ended(call, REDLOCK_OK);
    ledger->entries[atomic_fetch_add(&ledger->count, 1)] =
        (struct entry){redlock_fence(call->lock), who_granted(call)};
    release = begin_release(competitor->f, call->lock);
    release->then = on_released;
    release->then_arg = competitor;
}

static void compete(struct competitor *competitor) {
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    struct call *call;

    competitor->is_done = atomic_load(&competitor->ledger->count) >= competitor->ledger->wanted;
    if (!competitor->is_done) {
        request.fenced = true;
        request.wait_ms = REDLOCK_FOREVER;
        call = begin_acquire(competitor->f, competitor->client, &request);
        call->then = on_acquired;
        call->then_arg = competitor;
    }
}

static bool is_done(void *arg) {
    return ((const struct competitor *)arg)->is_done;
}

struct progress {
    const struct ledger *ledger;
    const struct crew *crew; /* NULL in a member */
    size_t target;
};

/* Returns whether the target is reached, or a process has ended, which is checked later. */
static bool has_progressed(void *arg) {
    const struct progress *progress = arg;

    return atomic_load(&progress->ledger->count) >= progress->target ||
           (progress->crew != NULL && !crew_is_at_work(progress->crew));
}

/*
 * Counts the raises, which the library logs at its lowest level; other lines go to the log capture.
 */
static void count_raises(redlock_log_level level, const char *line, void *arg) {
    struct competitor *competitor = arg;

    if (level > REDLOCK_LOG_DEBUG) {
        log_capture_write(level, line, &competitor->f->capture);
    } else if (strstr(line, "-> raising") != NULL) {
        atomic_fetch_add(&competitor->ledger->raised, 1);
    }
}

static int run_process(size_t process, void *memory, char **uris, size_t count) {
    struct competitor competitor = {.ledger = memory};
    struct progress progress = {memory, NULL, 0};
    redlock_options options;
    void *state = NULL;

    (void)process;
    if (start_fixture(&state, 0, NULL) != 0) {
        return EXIT_FAILURE;
    }
    competitor.f = state;
    options = patient_options(competitor.f, (const char *const *)uris, count);
    options.log = count_raises;
    options.log_arg = &competitor;
    options.log_level = REDLOCK_LOG_DEBUG;
    options.retry_delay_ms = 1;
    options.retry_delay_max_ms = 3;
    competitor.client = connect_with(competitor.f, &options);
    compete(&competitor);
    for (; progress.target < competitor.ledger->wanted; progress.target += 10) {
        run_until(competitor.f, has_progressed, &progress, "somebody has had a few more turns");
    }
    run_until(competitor.f, is_done, &competitor, "its last lock is released");
    finish(&state);
    return EXIT_SUCCESS;
}

/* ------------------------------------------------------------------------------------ the test */

/* Makes two nodes of five deny for a while, so that they miss the writes of that time. */
static void refuse_somewhere(struct fixture *f, unsigned round) {
    for (unsigned i = 0; i < 2; i++) {
        size_t master = (round * 2 + i * (1 + round % 2)) % FIVE;
        free(masters_query(f->masters, master, "SET " KEY " " RIVAL " NX PX " REFUSAL_MS));
    }
}

static void drive_apart(struct fixture *f) {
    for (size_t i = 0; i < FIVE; i++) {
        free(masters_query(f->masters, i, "SET " KEY "::fence %llu",
                           (unsigned long long)(FAR + 1000 * i)));
    }
}

static void assert_fences_grow(const struct ledger *ledger) {
    for (size_t i = 1; i < ledger->count; i++) {
        if (ledger->entries[i].fence <= ledger->entries[i - 1].fence) {
            fail_msg("fence %zu is %llu, after %llu", i,
                     (unsigned long long)ledger->entries[i].fence,
                     (unsigned long long)ledger->entries[i - 1].fence);
        }
    }
}

/* Counts the acquisitions for which the largest granted counter was not larger than before. */
static size_t count_naive_mistakes(const struct ledger *ledger) {
    uint64_t counters[FIVE] = {0};
    uint64_t last = 0;
    size_t mistakes = 0;

    for (size_t i = 0; i < ledger->count; i++) {
        uint64_t largest = 0;
        for (size_t node = 0; node < FIVE; node++) {
            counters[node] += ledger->entries[i].granted >> node & 1;
            if (ledger->entries[i].granted >> node & 1 && counters[node] > largest) {
                largest = counters[node];
            }
        }
        mistakes += largest <= last;
        last = largest;
    }
    return mistakes;
}

static void print_round_trips(const struct ledger *ledger) {
    size_t count = ledger->count;

    print_message("# %zu acquisitions, %.1f %% of them in one round trip\n", count,
                  100.0 - 100.0 * (double)ledger->raised / (double)count);
}

static void fences_grow_strictly_among_competitors(void **state) {
    struct fixture *f = *state;
    struct crew *crew = crew_create(f, sizeof(struct ledger));
    struct ledger *ledger;

    ledger = crew->memory;
    ledger->wanted = cycles_here(ACQUISITIONS / 4);
    crew_start(crew, PROCESSES);
    crew_wait(crew);
    assert_fences_grow(ledger);
    print_round_trips(ledger);
}

static void fences_grow_strictly_where_counters_are_driven_apart(void **state) {
    struct fixture *f = *state;
    struct crew *crew = crew_create(f, sizeof(struct ledger));
    struct ledger *ledger;
    struct progress progress;

    ledger = crew->memory;
    ledger->wanted = cycles_here(ACQUISITIONS);
    drive_apart(f);
    crew_start(crew, PROCESSES);
    progress = (struct progress){ledger, crew, 0};
    for (unsigned round = 0; progress.target < ledger->wanted; round++) {
        refuse_somewhere(f, round);
        progress.target += REFUSAL_PERIOD;
        run_until(f, has_progressed, &progress, "somebody has had a few more turns");
    }
    crew_wait(crew);
    assert_fences_grow(ledger);
    print_round_trips(ledger);
    size_t mistakes = count_naive_mistakes(ledger);
    print_message("# the largest counter alone would not have grown %zu times\n", mistakes);
    assert_true(mistakes > 0);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        ON_FIVE_MASTERS(fences_grow_strictly_among_competitors),
        ON_FIVE_MASTERS(fences_grow_strictly_where_counters_are_driven_apart),
    };
    int result;

    if (crew_member(argc, argv, sizeof(struct ledger), run_process, &result)) {
        return result;
    }
    return cmocka_run_group_tests_name("fence_race", tests, NULL, NULL);
}
