/* Two programs compete for one lock: what the lock does and what it survives. */
#include "demo_look.h"
#include "demo_screen.h"
#include "demo_stage.h"
#include "demos.h"
#include "masters.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define KEY "demo:nightly-report"
#define OTHER_KEY "demo:hourly-report"
#define TTL_MS 3000
#define ACQUIRE_LIMIT_MS 30000
#define RECOVERY_LIMIT_MS 30000

static double ms_since(uint64_t began_ns) {
    return (double)(stage_now_ns() - began_ns) / 1e6;
}

/* ------------------------------------------------------------------------------- the conditions */

static bool all_hold(struct stage *stage) {
    return look_holders(stage, KEY) == STAGE_MASTERS;
}

static bool none_holds(struct stage *stage) {
    return look_holders(stage, KEY) == 0;
}

static bool first_lost(struct stage *stage) {
    return stage->programs[FIRST].lost;
}

/*
 * A stage_condition: returns whether the third master has just renewed the key, so that the next
 * renewal is not due for a while.
 */
static bool third_just_renewed(struct stage *stage) {
    return look_time_left(stage, 2, KEY) > TTL_MS * 9 / 10;
}

static bool first_holds(const struct stage *stage) {
    return !stage->programs[FIRST].lost && stage->programs[FIRST].lock != NULL &&
           redlock_validity_ms(stage->programs[FIRST].lock) > 0;
}

/* ------------------------------------------------------------------------------------ the steps */

static redlock_status acquire_within(struct stage *stage, size_t program, const char *key,
                                     uint64_t wait_ms) {
    redlock_request request = stage_request(key);

    request.ttl_ms = TTL_MS;
    request.wait_ms = wait_ms;
    stage_ask(stage, program, &request);
    return stage_await(stage, program);
}

static redlock_status give_back(struct stage *stage, size_t program) {
    stage_ask_release(stage, program);
    return stage_await(stage, program);
}

static bool acquire(struct stage *stage) {
    uint64_t began_ns;
    redlock_status status;

    if (!check(stage_run_until(stage, stage_is_connected, RECOVERY_LIMIT_MS),
               "two programs are connected to five masters")) {
        return false;
    }
    say("The first program asks all five at once for \"%s\".", KEY);
    began_ns = stage_now_ns();
    status = acquire_within(stage, FIRST, KEY, ACQUIRE_LIMIT_MS);
    if (!check(status == REDLOCK_OK, "it has the lock")) {
        say("%s", stage->programs[FIRST].explanation);
        return false;
    }
    say("It took %.1f ms; the lock is certain for %" PRIu64 " ms from now.", ms_since(began_ns),
        redlock_validity_ms(stage->programs[FIRST].lock));
    return check(stage_run_until(stage, all_hold, ACQUIRE_LIMIT_MS),
                 "each master holds the key, with the same random token");
}

static bool contend(struct stage *stage) {
    redlock_status status;

    say("The second program asks for the same key. The answer:");
    status = acquire_within(stage, SECOND, KEY, 0);
    say("  \"%s\"", stage->programs[SECOND].explanation);
    return check(status == REDLOCK_EHELD, "the second program is refused: held by another") &&
           check(first_holds(stage) && look_holders(stage, KEY) == STAGE_MASTERS,
                 "the first program still has the lock");
}

static bool renew(struct stage *stage) {
    say("The key lives %d ms, unless it is renewed. The watchdog renews it. We wait %d ms.", TTL_MS,
        TTL_MS * 5 / 2);
    stage_run_for(stage, TTL_MS * 5 / 2);
    return check(first_holds(stage), "the first program still has the lock") &&
           check(look_holders(stage, KEY) == STAGE_MASTERS, "each master still holds its token");
}

static bool acquire_another(struct stage *stage) {
    uint64_t began_ns = stage_now_ns();
    redlock_status acquired = acquire_within(stage, SECOND, OTHER_KEY, ACQUIRE_LIMIT_MS);

    if (acquired == REDLOCK_OK) {
        say("The second program asks for \"%s\". It took %.1f ms.", OTHER_KEY, ms_since(began_ns));
    }
    return check(acquired == REDLOCK_OK, "the second program has that lock") &&
           check(give_back(stage, SECOND) == REDLOCK_OK, "and has released it");
}

static bool kill_two(struct stage *stage) {
    masters_kill(stage->masters, 0);
    masters_kill(stage->masters, 1);
    say("Two masters are killed. Three are left: enough. We wait %d ms, twice the TTL.",
        TTL_MS * 2);
    stage_run_for(stage, TTL_MS * 2);
    return check(first_holds(stage), "the first program still has the lock") &&
           check(look_holders(stage, KEY) == STAGE_QUORUM, "three masters hold its token") &&
           acquire_another(stage);
}

static bool kill_third(struct stage *stage) {
    uint64_t asked_ns;
    uint64_t left_ms;
    uint64_t lost_ms;
    uint64_t survivor_ms;

    if (!check(stage_run_until(stage, third_just_renewed, ACQUIRE_LIMIT_MS),
               "the lock was renewed a moment ago")) {
        return false;
    }
    /*
     * The clock is read before the key's TTL: the key expires at the third master no earlier than
     * asked_ns + left_ms.
     */
    asked_ns = stage_now_ns();
    left_ms = look_time_left(stage, 2, KEY);
    masters_kill(stage->masters, 2);
    say("A third master is killed. It would have kept the key for %" PRIu64 " ms more.", left_ms);
    if (!check(stage_run_until(stage, first_lost, ACQUIRE_LIMIT_MS),
               "the first program was notified that its lock is lost")) {
        return false;
    }
    survivor_ms = look_time_left(stage, 3, KEY);
    lost_ms = (stage->programs[FIRST].lost_at_ns - asked_ns) / 1000000u;
    say("It was notified after %" PRIu64 " ms: \"%s\".", lost_ms,
        redlock_strerror(stage->programs[FIRST].lost_status));
    return check(lost_ms < left_ms,
                 "that was before the key could have ended at the third master") &&
           check(survivor_ms > 0, "and before the key ended at the masters that live") &&
           check(!first_holds(stage), "the lock's validity is over");
}

static bool recover(struct stage *stage) {
    redlock_status status = give_back(stage, FIRST);

    say("The first program gives up its lost lock (%s).", redlock_status_name(status));
    for (size_t i = 0; i < STAGE_QUORUM; i++) {
        masters_restart(stage->masters, i);
    }
    say("The three masters are started again, empty.");
    if (!check(stage_run_until(stage, stage_is_connected, RECOVERY_LIMIT_MS),
               "both programs are connected to all five again")) {
        return false;
    }
    status = acquire_within(stage, SECOND, KEY, RECOVERY_LIMIT_MS);
    if (!check(status == REDLOCK_OK, "the second program has the lock now")) {
        say("%s", stage->programs[SECOND].explanation);
        return false;
    }
    return check(stage_run_until(stage, all_hold, ACQUIRE_LIMIT_MS), "each master holds its token");
}

static bool release(struct stage *stage) {
    redlock_status status = give_back(stage, SECOND);

    if (!check(status == REDLOCK_OK, "the second program released a lock that was still its own")) {
        say("%s", stage->programs[SECOND].explanation);
        return false;
    }
    return check(stage_run_until(stage, none_holds, ACQUIRE_LIMIT_MS), "no master holds the key");
}

/* Prints a table of the key at each master. */
static void show_masters(struct stage *stage) {
    printf("\n      %-18s %-8s %-10s %s\n", "master", "state", "token", "time left");
    for (size_t i = 0; i < STAGE_MASTERS; i++) {
        bool up = masters_pid(stage->masters, i) != 0;
        char *token = look_token(stage, i, KEY);

        printf("      127.0.0.1:%-8d %-8s ", masters_port(stage->masters, i), up ? "up" : "killed");
        if (token != NULL) {
            /*
             * Prints only the beginning of the token, enough to compare: with the whole token
             * anybody could release the lock.
             */
            printf("%-10.8s %" PRIu64 " ms\n", token, look_time_left(stage, i, KEY));
        } else {
            printf("%-10s -\n", "-");
        }
        free(token);
    }
}

/* --------------------------------------------------------------------------------- the scenario */

static const struct step steps[] = {
    {"Acquire", acquire},
    {"Contention", contend},
    {"Renewal past the TTL", renew},
    {"Two of five masters killed", kill_two},
    {"A third killed: the lock is lost, and said so in time", kill_third},
    {"Recovery", recover},
    {"Release", release},
};

bool demo_locks(struct stage *stage) {
    return stage_add_programs(stage, 2) == 0 &&
           stage_play(stage, steps, sizeof(steps) / sizeof(steps[0]), show_masters);
}
