/* A semaphore: three programs hold it at the same time, and a fourth waits for one of them. */
#include "demo_look.h"
#include "demo_screen.h"
#include "demo_stage.h"
#include "demos.h"

#include <stdio.h>
#include <string.h>

#define KEY "demo:render-farm"
#define PERMITS 3
#define ALL_PERMITS KEY ":0 " KEY ":1 " KEY ":2"

static void ask(struct stage *stage, size_t program, uint64_t wait_ms) {
    redlock_request request = stage_request(KEY);

    request.permits = PERMITS;
    request.wait_ms = wait_ms;
    stage_ask(stage, program, &request);
}

static const char *permit_of(struct stage *stage, size_t program) {
    return redlock_key(stage->programs[program].lock, NULL);
}

static bool takes_one(struct stage *stage, size_t program, const char *statement) {
    ask(stage, program, STAGE_TIMEOUT_MS);
    if (!stage_ends(stage, program, REDLOCK_OK, statement)) {
        return false;
    }
    say("         \"%s\"", permit_of(stage, program));
    return true;
}

static bool have_one_each(struct stage *stage) {
    return strcmp(permit_of(stage, FIRST), permit_of(stage, SECOND)) != 0 &&
           strcmp(permit_of(stage, SECOND), permit_of(stage, THIRD)) != 0 &&
           strcmp(permit_of(stage, THIRD), permit_of(stage, FIRST)) != 0;
}

static bool let_in(struct stage *stage) {
    return check(stage_run_until(stage, stage_is_connected, STAGE_TIMEOUT_MS),
                 "four programs are connected to five masters") &&
           takes_one(stage, FIRST, "the first one has a permit:") &&
           takes_one(stage, SECOND, "the second one has a permit:") &&
           takes_one(stage, THIRD, "the third one has a permit:") &&
           check(have_one_each(stage), "each has one of its own") &&
           check(look_all_answer(stage, "EXISTS " ALL_PERMITS, "3"),
                 "they are keys as any, and each master holds all three");
}

static bool refuse(struct stage *stage) {
    ask(stage, FOURTH, 0);
    if (!stage_ends(stage, FOURTH, REDLOCK_EHELD, "a fourth is refused:")) {
        return false;
    }
    say("         \"%s\"", stage->programs[FOURTH].explanation);
    return check(look_count_answers(stage, "EXISTS " ALL_PERMITS, "3") == STAGE_MASTERS,
                 "the others have theirs");
}

/*
 * A stage_condition: returns whether a quorum has refused the fourth program the permit that it
 * tried, so that it has begun to wait.
 */
static bool fourth_was_denied(struct stage *stage) {
    redlock_node_report reports[STAGE_MASTERS];
    size_t count = 0;
    size_t denied = 0;

    if (!stage->programs[FOURTH].answered) {
        count = redlock_report(stage->programs[FOURTH].lock, reports, STAGE_MASTERS);
    }
    for (size_t i = 0; i < count; i++) {
        denied += reports[i].vote == REDLOCK_VOTE_DENIED;
    }
    return denied >= STAGE_QUORUM;
}

static bool wait_for_one(struct stage *stage) {
    char freed[64];

    snprintf(freed, sizeof(freed), "%s", permit_of(stage, SECOND));
    ask(stage, FOURTH, STAGE_TIMEOUT_MS);
    if (!check(stage_run_until(stage, fourth_was_denied, STAGE_TIMEOUT_MS),
               "the fourth asks again, and waits") ||
        !stage_releases(stage, SECOND,
                        "the second one had its permit to the end, and returns it") ||
        !stage_ends(stage, FOURTH, REDLOCK_OK, "the fourth has a permit:")) {
        return false;
    }
    say("         \"%s\"", permit_of(stage, FOURTH));
    return check(strcmp(permit_of(stage, FOURTH), freed) == 0, "it is the one that came free");
}

static bool leave(struct stage *stage) {
    return stage_releases(stage, FIRST, "the first one had its permit to the end") &&
           stage_releases(stage, THIRD, "so had the third") &&
           stage_releases(stage, FOURTH, "and the fourth") &&
           check(look_all_answer(stage, "EXISTS " ALL_PERMITS, "0"), "no master holds a permit");
}

static const struct step steps[] = {
    {"Three permits for three", let_in},
    {"None for a fourth", refuse},
    {"One that is returned goes to who waits", wait_for_one},
    {"All leave", leave},
};

bool demo_permits(struct stage *stage) {
    return stage_add_programs(stage, 4) == 0 &&
           stage_play(stage, steps, sizeof(steps) / sizeof(steps[0]), NULL);
}
