/* Keys that stay: for a while after an early release, and after their holder has vanished. */
#include "demo_actor.h"
#include "demo_look.h"
#include "demo_screen.h"
#include "demo_stage.h"
#include "demos.h"
#include "masters.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define JOB "demo:nightly-job"
#define DEVICE "demo:tape-drive"
#define MIN_HOLD_MS 4000
#define TTL_MS 2000
#define DELAY_MS 3000
#define TOKEN_LENGTH 40

static uint64_t ms_since(uint64_t began_ns) {
    return (stage_now_ns() - began_ns) / 1000000u;
}

static bool is_connected(struct stage *stage) {
    return check(stage_run_until(stage, stage_is_connected, STAGE_TIMEOUT_MS),
                 "two programs are connected to five masters");
}

/* Checks that one try of the program is refused. */
static bool is_refused(struct stage *stage, size_t program, const char *key,
                       const char *statement) {
    redlock_request request = stage_request(key);

    stage_ask(stage, program, &request);
    if (!stage_ends(stage, program, REDLOCK_EHELD, statement)) {
        return false;
    }
    say("         \"%s\"", stage->programs[program].explanation);
    return true;
}

static bool waits_for(struct stage *stage, size_t program, const char *key, const char *statement) {
    redlock_request request = stage_request(key);

    request.wait_ms = STAGE_TIMEOUT_MS;
    stage_ask(stage, program, &request);
    return stage_ends(stage, program, REDLOCK_OK, statement);
}

/* ---------------------------------------------------------------------------------- min_hold_ms */

/*
 * Returns the number of masters at which nobody holds the key: its token, before the owner's label,
 * is all zeros.
 */
static size_t count_nobodys(struct stage *stage) {
    size_t count = 0;

    for (size_t i = 0; i < STAGE_MASTERS; i++) {
        char *token = look_token(stage, i, JOB);

        count += token != NULL && strspn(token, "0") == TOKEN_LENGTH;
        free(token);
    }
    return count;
}

static bool is_nobodys(struct stage *stage) {
    return count_nobodys(stage) >= STAGE_QUORUM;
}

static bool do_the_job(struct stage *stage, uint64_t *began_ns) {
    redlock_request request = stage_request(JOB);

    say("The first program does a job that nobody is to do again within %d ms.", MIN_HOLD_MS);
    request.min_hold_ms = MIN_HOLD_MS;
    *began_ns = stage_now_ns();
    stage_ask(stage, FIRST, &request);
    return stage_ends(stage, FIRST, REDLOCK_OK, "it has the lock") &&
           check(count_nobodys(stage) == 0, "with a token of its own") &&
           stage_releases(stage, FIRST, "it is done at once, and has released it");
}

static bool stay_after_release(struct stage *stage) {
    uint64_t began_ns;
    uint64_t passed_ms;

    if (!is_connected(stage) || !do_the_job(stage, &began_ns) ||
        !check(is_nobodys(stage), "the masters still have the key, with nobody's token") ||
        !is_refused(stage, SECOND, JOB, "the second program is refused:") ||
        !waits_for(stage, SECOND, JOB, "it waits, and has it")) {
        return false;
    }
    passed_ms = ms_since(began_ns);
    say("         %" PRIu64 " ms after the first one had asked for it", passed_ms);
    return check(passed_ms >= MIN_HOLD_MS, "that was not too soon") &&
           stage_releases(stage, SECOND, "it has released it: it did not ask to keep it") &&
           check(look_all_answer(stage, "EXISTS " JOB, "0"), "no master holds the key");
}

/* -------------------------------------------------------------------------------- lock_delay_ms */

static bool delay_nobody(struct stage *stage) {
    redlock_request request = stage_request(DEVICE);

    say("A holder of this lock may have sent something that is still on its way when it dies.");
    say("So the masters keep its key for %d ms more than it is certain.", DELAY_MS);
    request.lock_delay_ms = DELAY_MS;
    stage_ask(stage, FIRST, &request);
    if (!stage_ends(stage, FIRST, REDLOCK_OK, "the first program has the lock") ||
        !stage_releases(stage, FIRST, "and has released it")) {
        return false;
    }
    request = stage_request(DEVICE);
    stage_ask(stage, SECOND, &request);
    return stage_ends(stage, SECOND, REDLOCK_OK, "the second one has it with its only try") &&
           stage_releases(stage, SECOND, "and has released it") &&
           check(look_all_answer(stage, "EXISTS " DEVICE, "0"), "no master holds the key");
}

/*
 * Starts the holder. Returns the validity of its lock, in ms from before the start; 0 on failure.
 */
static uint64_t start_holder(struct stage *stage, struct actor *holder, const char *path) {
    const char *argv[5 + STAGE_MASTERS] = {path, DEVICE};
    char ttl_ms[16];
    char delay_ms[16];
    const char *validity_ms;

    snprintf(ttl_ms, sizeof(ttl_ms), "%d", TTL_MS);
    snprintf(delay_ms, sizeof(delay_ms), "%d", DELAY_MS);
    argv[2] = ttl_ms;
    argv[3] = delay_ms;
    for (size_t i = 0; i < STAGE_MASTERS; i++) {
        argv[4 + i] = masters_uri(stage->masters, i);
    }
    argv[4 + STAGE_MASTERS] = NULL;
    if (!actor_start(holder, "holder", argv) ||
        (validity_ms = actor_hear(stage, holder, "certain for ")) == NULL) {
        return 0;
    }
    return strtoull(validity_ms, NULL, 10);
}

static bool delay_the_next(struct stage *stage) {
    struct actor holder = {0};
    uint64_t began_ns = stage_now_ns();
    uint64_t certain_ms = start_holder(stage, &holder, DEMO_HOLDER);
    uint64_t passed_ms;

    actor_finish(&holder);
    if (!check(certain_ms > 0, "a program of its own had the lock, and was killed (SIGKILL)") ||
        !is_refused(stage, SECOND, DEVICE, "the second program is refused:") ||
        !waits_for(stage, SECOND, DEVICE, "it waits, and has it")) {
        return false;
    }
    passed_ms = ms_since(began_ns);
    say("         %" PRIu64 " ms after the holder was started", passed_ms);
    return check(passed_ms >= certain_ms + DELAY_MS,
                 "that was after all that the holder could do in time, and the delay") &&
           stage_releases(stage, SECOND, "it has released it");
}

static const struct step steps[] = {
    {"Released early, the key stays (min_hold_ms)", stay_after_release},
    {"Who releases delays nobody (lock_delay_ms)", delay_nobody},
    {"Who vanishes delays the next one (lock_delay_ms)", delay_the_next},
};

bool demo_stay(struct stage *stage) {
    return stage_add_programs(stage, 2) == 0 &&
           stage_play(stage, steps, sizeof(steps) / sizeof(steps[0]), NULL);
}
