/* Several keys in one lock: all of them or none, and no deadlock in whatever order they are. */
#include "demo_look.h"
#include "demo_screen.h"
#include "demo_stage.h"
#include "demos.h"
#include "masters.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define A "demo:account:a"
#define B "demo:account:b"
#define C "demo:account:c"
#define ROUNDS 10

/* So long that no lock is renewed: every change at a master is then caused by a request. */
#define TTL_MS 30000

static void ask(struct stage *stage, size_t program, const char *one, const char *other,
                uint64_t wait_ms) {
    const char *keys[] = {one, other};
    redlock_request request = stage_request(NULL);

    request.keys = keys;
    request.key_count = 2;
    request.ttl_ms = TTL_MS;
    request.watchdog = false;
    request.wait_ms = wait_ms;
    stage_ask(stage, program, &request);
}

static bool is_refused(struct stage *stage, size_t program, const char *statement) {
    if (!stage_ends(stage, program, REDLOCK_EHELD, statement)) {
        return false;
    }
    say("         \"%s\"", stage->programs[program].explanation);
    return true;
}

/* ---------------------------------------------------------------------------- the masters' keys */

/* Returns the number of masters at which two keys have the same value. */
static size_t count_alike(struct stage *stage, const char *one, const char *other) {
    size_t count = 0;

    for (size_t i = 0; i < STAGE_MASTERS; i++) {
        char *token = look_token(stage, i, one);
        char *other_token = look_token(stage, i, other);

        count += token != NULL && other_token != NULL && strcmp(token, other_token) == 0;
        free(token);
        free(other_token);
    }
    return count;
}

static bool all_hold_both(struct stage *stage) {
    return count_alike(stage, A, B) == STAGE_MASTERS && look_holders(stage, A) == STAGE_MASTERS;
}

/* Returns the number of changes of keys at all masters so far, by any client. */
static uint64_t count_changes(struct stage *stage) {
    static const char field[] = "rdb_changes_since_last_save:";
    uint64_t count = 0;

    for (size_t i = 0; i < STAGE_MASTERS; i++) {
        char *info = masters_query(stage->masters, i, "INFO persistence");
        const char *found = info != NULL ? strstr(info, field) : NULL;

        count += found != NULL ? strtoull(found + strlen(field), NULL, 10) : 0;
        free(info);
    }
    return count;
}

/* ------------------------------------------------------------------------------------ the steps */

static bool take_both(struct stage *stage) {
    if (!check(stage_run_until(stage, stage_is_connected, STAGE_TIMEOUT_MS),
               "two programs are connected to five masters")) {
        return false;
    }
    say("The first program asks for %s and %s.", A, B);
    ask(stage, FIRST, A, B, STAGE_TIMEOUT_MS);
    return stage_ends(stage, FIRST, REDLOCK_OK, "it has both, in one lock, by one callback") &&
           check(stage_run_until(stage, all_hold_both, STAGE_TIMEOUT_MS),
                 "each master holds both, with the same token");
}

static bool exclude(struct stage *stage) {
    uint64_t changes = count_changes(stage);
    redlock_request request = stage_request(B);

    stage_ask(stage, SECOND, &request);
    if (!is_refused(stage, SECOND, "the second program is refused the second one alone:")) {
        return false;
    }
    say("It asks for %s, which is free, and %s.", C, A);
    ask(stage, SECOND, C, A, 0);
    return is_refused(stage, SECOND, "it is refused:") &&
           check(changes > 0 && count_changes(stage) == changes,
                 "no master has changed anything for it: the free key was not taken either") &&
           check(look_count_answers(stage, "SET " A " another NX PX 10000", "OK") == 0 &&
                     look_count_answers(stage, "SET " B " another NX PX 10000", "OK") == 0,
                 "SET NX of another client is refused for each of the two") &&
           stage_releases(stage, FIRST, "the first program had both to the end") &&
           check(look_all_answer(stage, "EXISTS " A " " B " " C, "0"), "no master holds a key");
}

static bool any_has_both(struct stage *stage) {
    return stage->programs[FIRST].answered || stage->programs[SECOND].answered;
}

/*
 * Lets both programs request the keys at once. Returns whether one of them got both keys, and the
 * other one got them after the release.
 */
static bool meet(struct stage *stage) {
    size_t winner;

    ask(stage, FIRST, A, B, STAGE_TIMEOUT_MS);
    ask(stage, SECOND, B, A, STAGE_TIMEOUT_MS);
    if (!stage_run_until(stage, any_has_both, STAGE_TIMEOUT_MS) ||
        (stage->programs[FIRST].answered && stage->programs[SECOND].answered)) {
        return false;
    }
    winner = stage->programs[FIRST].answered ? FIRST : SECOND;
    if (stage_await(stage, winner) != REDLOCK_OK) {
        return false;
    }
    stage_ask_release(stage, winner);
    return stage_await(stage, winner) == REDLOCK_OK &&
           stage_await(stage, FIRST + SECOND - winner) == REDLOCK_OK;
}

static bool do_not_deadlock(struct stage *stage) {
    size_t met = 0;
    bool is_so = true;

    say("Both ask at once: the first for %s and %s, the second for %s and %s.", A, B, B, A);
    say("(Programs that lock one key after the other would wait for each other.)");
    while (is_so && met < ROUNDS) {
        is_so = meet(stage);
        for (size_t i = FIRST; i <= SECOND && is_so; i++) {
            if (stage->programs[i].lock != NULL) {
                stage_ask_release(stage, i);
                is_so = stage_await(stage, i) == REDLOCK_OK;
            }
        }
        met += is_so;
    }
    return check(met == ROUNDS, "ten times one had both, and then the other") &&
           check(look_all_answer(stage, "EXISTS " A " " B, "0"), "no master holds a key");
}

static const struct step steps[] = {
    {"Two keys in one lock", take_both},
    {"Each of them keeps others out; all or none", exclude},
    {"In opposite orders, at once", do_not_deadlock},
};

bool demo_several(struct stage *stage) {
    return stage_add_programs(stage, 2) == 0 &&
           stage_play(stage, steps, sizeof(steps) / sizeof(steps[0]), NULL);
}
