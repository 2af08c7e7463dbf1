/* Shows the holder of a key, by owner label, and whether a fence is still the newest. */
#include "demo_look.h"
#include "demo_screen.h"
#include "demo_stage.h"
#include "demos.h"
#include "masters.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define KEY "demo:warehouse"

/* A question of the second program, and the answer. */
struct question {
    bool is_over;
    redlock_status status;
    bool held;
    char owner[65];
    uint64_t fence;
    size_t silent; /* number of nodes that did not answer */
};

static struct question question;

static bool is_over(struct stage *stage) {
    (void)stage;
    return question.is_over;
}

/*
 * Waits for the answer and returns its status. For a refused call, returns the refusal's status.
 */
static redlock_status wait_for_answer(struct stage *stage, redlock_status accepted) {
    if (accepted != REDLOCK_OK) {
        say("%s", redlock_client_error(stage->programs[SECOND].client));
        return accepted;
    }
    return stage_run_until(stage, is_over, STAGE_TIMEOUT_MS) ? question.status : REDLOCK_ESYSTEM;
}

/* ---------------------------------------------------------------------------------- inspections */

static void show(const redlock_node_view *node) {
    if (!node->answered) {
        say("  %-18s %s", node->node, node->detail);
    } else if (!node->held) {
        say("  %-18s free; the newest fence is %" PRIu64, node->node, node->fence);
    } else {
        say("  %-18s held by \"%s\" for %" PRIu64 " ms, fence %" PRIu64, node->node, node->owner,
            node->ttl_ms, node->fence);
    }
}

static void on_view(redlock_status status, const redlock_view *view, void *arg) {
    (void)arg;
    question = (struct question){.is_over = true, .status = status, .held = view->held};
    snprintf(question.owner, sizeof(question.owner), "%s", view->owner);
    question.fence = view->fence;
    for (size_t i = 0; i < view->node_count; i++) {
        question.silent += !view->nodes[i].answered;
        show(&view->nodes[i]);
    }
}

static redlock_status inspect(struct stage *stage) {
    question = (struct question){0};
    return wait_for_answer(stage,
                           redlock_inspect(stage->programs[SECOND].client, KEY, 0, on_view, NULL));
}

static void on_fence(redlock_status status, void *arg) {
    (void)arg;
    question = (struct question){.is_over = true, .status = status};
}

static redlock_status check_fence(struct stage *stage, uint64_t fence) {
    question = (struct question){0};
    return wait_for_answer(
        stage, redlock_check_fence(stage->programs[SECOND].client, KEY, 0, fence, on_fence, NULL));
}

/* ------------------------------------------------------------------------------------ the steps */

static void ask(struct stage *stage, size_t program) {
    redlock_request request = stage_request(KEY);

    request.fenced = true;
    request.wait_ms = STAGE_TIMEOUT_MS;
    stage_ask(stage, program, &request);
}

static bool look_at_nobody(struct stage *stage) {
    return check(stage_run_until(stage, stage_is_connected, STAGE_TIMEOUT_MS),
                 "two programs are connected to five masters") &&
           check(inspect(stage) == REDLOCK_OK && !question.held, "nobody holds \"" KEY "\"");
}

static bool look_at_a_holder(struct stage *stage) {
    ask(stage, FIRST);
    if (!stage_ends(stage, FIRST, REDLOCK_OK, "the program that calls itself \"first\" has it")) {
        return false;
    }
    say("The second one asks who holds it:");
    return check(inspect(stage) == REDLOCK_OK && question.held, "a quorum holds it") &&
           check(strcmp(question.owner, "first") == 0, "for \"first\"") &&
           check(question.fence != 0 &&
                     question.fence == redlock_fence(stage->programs[FIRST].lock),
                 "and the newest fence is the one that \"first\" has") &&
           check(check_fence(stage, question.fence) == REDLOCK_OK,
                 "a resource that gets that fence learns that it is the newest");
}

static bool hand_over(struct stage *stage) {
    uint64_t older = redlock_fence(stage->programs[FIRST].lock);
    uint64_t newer;
    redlock_gate gate = REDLOCK_GATE_INIT;

    if (!stage_releases(stage, FIRST, "the first one has released it") ||
        !check(look_all_answer(stage, "EXISTS " KEY, "0"), "no master holds it")) {
        return false;
    }
    ask(stage, SECOND);
    if (!stage_ends(stage, SECOND, REDLOCK_OK, "the second one has it")) {
        return false;
    }
    newer = redlock_fence(stage->programs[SECOND].lock);
    return check(inspect(stage) == REDLOCK_OK && strcmp(question.owner, "second") == 0,
                 "\"second\" holds it") &&
           check(check_fence(stage, older) == REDLOCK_ELOST,
                 "a resource that gets the older fence learns that it is stale") &&
           check(check_fence(stage, newer) == REDLOCK_OK, "and that the newer one is not") &&
           check(redlock_gate_admit(&gate, newer) && !redlock_gate_admit(&gate, older),
                 "a gate, which needs no question, lets in the newer one, and then not the older");
}

static bool all_hold(struct stage *stage) {
    return look_holders(stage, KEY) == STAGE_MASTERS;
}

static bool do_without_some(struct stage *stage) {
    uint64_t fence = redlock_fence(stage->programs[SECOND].lock);

    if (!check(stage_run_until(stage, all_hold, STAGE_TIMEOUT_MS),
               "each master holds it for \"second\"")) {
        return false;
    }
    masters_kill(stage->masters, 0);
    masters_kill(stage->masters, 1);
    say("Two masters are killed.");
    if (!check(inspect(stage) == REDLOCK_OK && question.silent == 2 &&
                   strcmp(question.owner, "second") == 0,
               "three are enough to show that \"second\" holds it") ||
        !check(check_fence(stage, fence) == REDLOCK_OK, "and that its fence is the newest")) {
        return false;
    }
    masters_kill(stage->masters, 2);
    say("A third one is killed.");
    return check(inspect(stage) == REDLOCK_ENOQUORUM && question.silent == 3,
                 "two are not: nobody is said to hold it") &&
           check(check_fence(stage, fence) == REDLOCK_ENOQUORUM, "nor is a fence the newest");
}

static const struct step steps[] = {
    {"A key that is free", look_at_nobody},
    {"A key that is held", look_at_a_holder},
    {"The next holder, and the fence of the one before", hand_over},
    {"Masters that do not answer", do_without_some},
};

bool demo_inspect(struct stage *stage) {
    return stage_add_programs(stage, 2) == 0 &&
           stage_play(stage, steps, sizeof(steps) / sizeof(steps[0]), NULL);
}
