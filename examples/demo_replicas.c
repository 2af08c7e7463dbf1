/* Masters with one replica each: a grant counts once the replica has confirmed it. */
#include "demo_look.h"
#include "demo_screen.h"
#include "demo_stage.h"
#include "demos.h"
#include "masters.h"

#include <stdlib.h>
#include <string.h>

#define KEY "demo:nightly-report"

/* One replica of each master; they end with the demo, however the demo ends. */
static struct masters *replicas;

/* Returns the number of replicas that have the key now. Does not wait. */
static size_t replicated(void) {
    size_t count = 0;

    for (size_t i = 0; i < STAGE_MASTERS; i++) {
        count += (size_t)masters_query_integer(replicas, i, "EXISTS " KEY);
    }
    return count;
}

static void ask(struct stage *stage, uint64_t wait_ms) {
    redlock_request request = stage_request(KEY);

    request.wait_replicas = 1;
    request.wait_ms = wait_ms;
    stage_ask(stage, FIRST, &request);
}

/* A stage_condition: returns whether all commands of the program were answered, even slow ones. */
static bool is_idle(struct stage *stage) {
    redlock_node_info infos[STAGE_MASTERS];
    size_t count = redlock_client_nodes(stage->programs[FIRST].client, infos, STAGE_MASTERS);
    uint32_t commands = 0;

    for (size_t i = 0; i < count; i++) {
        commands += infos[i].commands;
    }
    return commands == 0;
}

static bool are_followed(struct stage *stage) {
    size_t followed = 0;

    for (size_t i = 0; i < STAGE_MASTERS; i++) {
        char *info = masters_query(stage->masters, i, "INFO replication");

        followed += info != NULL && strstr(info, "state=online") != NULL;
        free(info);
    }
    return followed == STAGE_MASTERS;
}

/* ------------------------------------------------------------------------------------ the steps */

/* Sends a command to a server. Returns whether it answered OK. */
static bool does(struct masters *servers, size_t index, const char *command, int number) {
    char *answer = masters_query(servers, index, command, number);
    bool is_done = answer != NULL && strcmp(answer, "OK") == 0;

    free(answer);
    return is_done;
}

static bool follow(struct stage *stage) {
    if (!check((replicas = masters_start(STAGE_MASTERS, NULL)) != NULL,
               "five more servers are started")) {
        return false;
    }
    for (size_t i = 0; i < STAGE_MASTERS; i++) {
        if (!does(stage->masters, i, "CONFIG SET repl-diskless-sync-delay %d", 0) ||
            !does(replicas, i, "REPLICAOF 127.0.0.1 %d", masters_port(stage->masters, i))) {
            return check(false, "they are set to follow the masters");
        }
    }
    return check(stage_run_until(stage, are_followed, STAGE_TIMEOUT_MS),
                 "each master has a replica") &&
           check(stage_run_until(stage, stage_is_connected, STAGE_TIMEOUT_MS),
                 "a program is connected to the masters");
}

static bool confirm(struct stage *stage) {
    say("The program asks for \"%s\"; a master's grant is to count when its replica has it.", KEY);
    ask(stage, STAGE_TIMEOUT_MS);
    return stage_ends(stage, FIRST, REDLOCK_OK, "it has the lock") &&
           check(replicated() >= STAGE_QUORUM,
                 "and a quorum of the replicas has the key already") &&
           stage_releases(stage, FIRST, "it has released it");
}

static bool bear_a_minority(struct stage *stage) {
    masters_stop_range(replicas, 0, 2);
    say("The replicas of two masters are stopped (SIGSTOP).");
    ask(stage, STAGE_TIMEOUT_MS);
    return stage_ends(stage, FIRST, REDLOCK_OK, "the program has the lock all the same") &&
           stage_releases(stage, FIRST, "it has released it");
}

static bool refuse(struct stage *stage) {
    masters_stop_range(replicas, 2, 3);
    say("That of a third one is stopped, too.");
    if (!stage_run_until(stage, is_idle, STAGE_TIMEOUT_MS)) {
        return check(false, "all masters have answered what they were asked before");
    }
    ask(stage, 0);
    if (!stage_ends(stage, FIRST, REDLOCK_ENOQUORUM, "the program is refused: no quorum")) {
        return false;
    }
    say("         \"%s\"", stage->programs[FIRST].explanation);
    return check(strstr(stage->programs[FIRST].explanation, "0 of 1 replicas confirmed it") != NULL,
                 "and learns why") &&
           check(look_all_answer(stage, "EXISTS " KEY, "0"), "no master has kept the key");
}

static bool go_on(struct stage *stage) {
    masters_continue_range(replicas, 0, 3);
    say("All replicas go on (SIGCONT).");
    ask(stage, STAGE_TIMEOUT_MS);
    return stage_ends(stage, FIRST, REDLOCK_OK, "the program has the lock") &&
           check(replicated() >= STAGE_QUORUM, "and a quorum of the replicas has the key") &&
           stage_releases(stage, FIRST, "it has released it");
}

static const struct step steps[] = {
    {"A replica for each master", follow},
    {"A lock that they have confirmed", confirm},
    {"Two of five without replica", bear_a_minority},
    {"Three of five without replica", refuse},
    {"They go on", go_on},
};

bool demo_replicas(struct stage *stage) {
    bool done = stage_add_programs(stage, 1) == 0 &&
                stage_play(stage, steps, sizeof(steps) / sizeof(steps[0]), NULL);

    masters_finish(replicas);
    replicas = NULL;
    return done;
}
