/*
 * Shows on the terminal what a lock on five Redis masters does, and what it survives. Every step
 * checks what it says; the first that is not so ends the demo with 1.
 */
#include "demo_fence.h"
#include "demo_screen.h"
#include "demo_stage.h"
#include "masters.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OTHER_KEY "demo:hourly-report"
#define SETTLE_LIMIT_MS 5000
#define RECOVERY_LIMIT_MS 30000

static double ms_since(uint64_t began_ns) {
    return (double)(stage_now_ns() - began_ns) / 1e6;
}

/* ------------------------------------------------------------------------------- the conditions */

static bool all_hold(struct stage *stage) {
    return stage_holders(stage) == STAGE_MASTERS;
}

static bool none_holds(struct stage *stage) {
    return stage_holders(stage) == 0;
}

static bool first_lost(struct stage *stage) {
    return stage->first.lost;
}

/* The third master was just asked to renew, so that the next renewal is not due for a while. */
static bool third_just_renewed(struct stage *stage) {
    return stage_time_left_ms(stage, 2) > STAGE_TTL_MS * 9 / 10;
}

static bool is_connected_to_all(const redlock_client *client) {
    redlock_node_info infos[STAGE_MASTERS];
    size_t count = redlock_client_nodes(client, infos, STAGE_MASTERS);

    for (size_t i = 0; i < count; i++) {
        if (!infos[i].connected) {
            return false;
        }
    }
    return count == STAGE_MASTERS;
}

static bool all_connected(struct stage *stage) {
    return is_connected_to_all(stage->first.client) && is_connected_to_all(stage->second.client);
}

static bool first_holds(const struct stage *stage) {
    return !stage->first.lost && stage->first.lock != NULL &&
           redlock_validity_ms(stage->first.lock) > 0;
}

/* ------------------------------------------------------------------------------------ the steps */

static bool acquire(struct stage *stage) {
    uint64_t began_ns;
    redlock_status status;

    if (!check(stage_run_until(stage, all_connected, RECOVERY_LIMIT_MS),
               "two programs are connected to five masters")) {
        return false;
    }
    say("The first program asks all five at once for \"%s\".", STAGE_KEY);
    began_ns = stage_now_ns();
    status = stage_acquire(stage, &stage->first, STAGE_KEY, SETTLE_LIMIT_MS);
    if (!check(status == REDLOCK_OK, "it has the lock")) {
        say("%s", stage->first.explanation);
        return false;
    }
    say("It took %.1f ms; the lock is certain for %" PRIu64 " ms from now.", ms_since(began_ns),
        redlock_validity_ms(stage->first.lock));
    return check(stage_run_until(stage, all_hold, SETTLE_LIMIT_MS),
                 "each master holds the key, with the same random token");
}

static bool contend(struct stage *stage) {
    redlock_status status;

    say("The second program asks for the same key, and is told:");
    status = stage_acquire(stage, &stage->second, STAGE_KEY, 0);
    say("  \"%s\"", stage->second.explanation);
    return check(status == REDLOCK_EHELD, "the second program is refused: held by another") &&
           check(first_holds(stage) && stage_holders(stage) == STAGE_MASTERS,
                 "the first program still has the lock");
}

static bool renew(struct stage *stage) {
    say("The key lives %d ms, unless it is renewed. The watchdog renews it. We wait %d ms.",
        STAGE_TTL_MS, STAGE_TTL_MS * 5 / 2);
    stage_run_for(stage, STAGE_TTL_MS * 5 / 2);
    return check(first_holds(stage), "the first program still has the lock") &&
           check(stage_holders(stage) == STAGE_MASTERS, "each master still holds its token");
}

static bool acquire_another(struct stage *stage) {
    uint64_t began_ns = stage_now_ns();
    redlock_status acquired = stage_acquire(stage, &stage->second, OTHER_KEY, SETTLE_LIMIT_MS);

    if (acquired == REDLOCK_OK) {
        say("The second program asks for \"%s\". It took %.1f ms.", OTHER_KEY, ms_since(began_ns));
    }
    return check(acquired == REDLOCK_OK, "the second program has that lock") &&
           check(stage_release(stage, &stage->second) == REDLOCK_OK, "and has released it");
}

static bool kill_two(struct stage *stage) {
    masters_kill(stage->masters, 0);
    masters_kill(stage->masters, 1);
    say("Two masters are killed. Three are left: enough. We wait %d ms, twice the TTL.",
        STAGE_TTL_MS * 2);
    stage_run_for(stage, STAGE_TTL_MS * 2);
    return check(first_holds(stage), "the first program still has the lock") &&
           check(stage_holders(stage) == STAGE_QUORUM, "three masters hold its token") &&
           acquire_another(stage);
}

static bool kill_third(struct stage *stage) {
    uint64_t asked_ns;
    uint64_t left_ms;
    uint64_t lost_ms;
    uint64_t survivor_ms;

    if (!check(stage_run_until(stage, third_just_renewed, SETTLE_LIMIT_MS),
               "the lock was renewed a moment ago")) {
        return false;
    }
    /* In this order: the key ends at the third master no earlier than asked_ns + left_ms. */
    asked_ns = stage_now_ns();
    left_ms = stage_time_left_ms(stage, 2);
    masters_kill(stage->masters, 2);
    say("A third master is killed. It would have kept the key for %" PRIu64 " ms more.", left_ms);
    if (!check(stage_run_until(stage, first_lost, SETTLE_LIMIT_MS),
               "the first program was told that its lock is lost")) {
        return false;
    }
    survivor_ms = stage_time_left_ms(stage, 3);
    lost_ms = (stage->first.lost_at_ns - asked_ns) / 1000000u;
    say("It was told after %" PRIu64 " ms: \"%s\".", lost_ms,
        redlock_strerror(stage->first.lost_status));
    return check(lost_ms < left_ms,
                 "that was before the key could have ended at the third master") &&
           check(survivor_ms > 0, "and before the key ended at the masters that live") &&
           check(!first_holds(stage), "the lock's validity is over");
}

static bool recover(struct stage *stage) {
    redlock_status status = stage_release(stage, &stage->first);

    say("The first program gives up its lost lock (%s).", redlock_status_name(status));
    for (size_t i = 0; i < STAGE_QUORUM; i++) {
        masters_restart(stage->masters, i);
    }
    say("The three masters are started again, empty.");
    if (!check(stage_run_until(stage, all_connected, RECOVERY_LIMIT_MS),
               "both programs are connected to all five again")) {
        return false;
    }
    status = stage_acquire(stage, &stage->second, STAGE_KEY, RECOVERY_LIMIT_MS);
    if (!check(status == REDLOCK_OK, "the second program has the lock now")) {
        say("%s", stage->second.explanation);
        return false;
    }
    return check(stage_run_until(stage, all_hold, SETTLE_LIMIT_MS), "each master holds its token");
}

static bool release(struct stage *stage) {
    redlock_status status = stage_release(stage, &stage->second);

    if (!check(status == REDLOCK_OK, "the second program released a lock that was still its own")) {
        say("%s", stage->second.explanation);
        return false;
    }
    return check(stage_run_until(stage, none_holds, SETTLE_LIMIT_MS), "no master holds the key");
}

/* ---------------------------------------------------------------------------------- the scenario
 */

struct step {
    const char *title;
    bool (*play)(struct stage *stage); /* whether all it said was so */
};

static const struct step lock_steps[] = {
    {"Acquire", acquire},
    {"Contention", contend},
    {"Renewal past the TTL", renew},
    {"Two of five masters killed", kill_two},
    {"A third killed: the lock is lost, and said so in time", kill_third},
    {"Recovery", recover},
    {"Release", release},
};

/* Whether each step did what it said; ends with the first that did not. */
static bool play(struct stage *stage, const struct step *steps, size_t count) {
    for (size_t i = 0; i < count; i++) {
        bool done;

        screen_title(i + 1, steps[i].title);
        done = steps[i].play(stage);
        if (!done) {
            printf("\nStep %zu failed: %s.\n", i + 1, steps[i].title);
            fflush(stdout);
        }
        stage_show_masters(stage);
        if (!done) {
            return false;
        }
    }
    return true;
}

static bool demo_locks(struct stage *stage) {
    return stage_add_programs(stage) == 0 &&
           play(stage, lock_steps, sizeof(lock_steps) / sizeof(lock_steps[0]));
}

int main(int argc, char **argv) {
    bool is_fence = argc == 2 && strcmp(argv[1], "fence") == 0;
    struct stage stage;
    bool done;

    if (argc > 1 && !is_fence) {
        fprintf(stderr, "demo: \"%s\" is not known\nusage: sh examples/demo.sh [fence|readers]\n",
                argv[argc - 1]);
        return 2;
    }
    printf("libredlock %s on %d Redis masters, started on this machine for the demo.\n"
           "A lock needs %d of them.\n\n",
           redlock_version(), STAGE_MASTERS, STAGE_QUORUM);
    fflush(stdout);
    done = stage_init(&stage) == 0 && (is_fence ? demo_fence(&stage) : demo_locks(&stage));
    if (stage_finish(&stage) != 0) {
        done = false;
    }
    if (done) {
        puts("Each step did what it said.");
    }
    return done ? EXIT_SUCCESS : EXIT_FAILURE;
}
