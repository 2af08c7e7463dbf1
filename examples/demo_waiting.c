/* Waiting in a queue: the queue moves on when programs are killed or stopped. */
#include "demo_actor.h"
#include "demo_look.h"
#include "demo_screen.h"
#include "demo_stage.h"
#include "demos.h"
#include "masters.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define KEY "demo:warehouse"
#define TTL_MS 4000
#define WAITERS 5

enum { FIFTH = FOURTH + 1 };

static struct actor waiters[WAITERS];

/* ------------------------------------------------------------------------------------- the queue
 */

/* The answer of an inspection. */
struct sight {
    bool is_under_way;
    char text[512]; /* such as "held by first; waiting: second, third" */
};

static struct sight sight;

static void on_view(redlock_status status, const redlock_view *view, void *arg) {
    char *end = sight.text + sizeof(sight.text);
    char *p = sight.text;

    (void)arg;
    sight.is_under_way = false;
    if (status != REDLOCK_OK) {
        snprintf(p, sizeof(sight.text), "not known");
        return;
    }
    p += snprintf(p, (size_t)(end - p), view->held ? "held by %s" : "free%s", view->owner);
    p += snprintf(p, (size_t)(end - p), "; waiting: %s", view->queue_length == 0 ? "nobody" : "");
    for (size_t i = 0; i < view->queue_owner_count; i++) {
        p += snprintf(p, (size_t)(end - p), "%s%s", i == 0 ? "" : ", ", view->queue_owners[i]);
    }
}

/*
 * A stage_condition: returns whether an inspection has reported the text in `subject`. Inspects
 * again until one does.
 */
static bool is_seen(struct stage *stage) {
    if (!sight.is_under_way && strcmp(sight.text, stage->subject) != 0) {
        sight.is_under_way =
            redlock_inspect(stage->programs[FIRST].client, KEY, 0, on_view, NULL) == REDLOCK_OK;
    }
    return !sight.is_under_way && strcmp(sight.text, stage->subject) == 0;
}

/* Waits until an inspection reports this text. Returns whether one did. */
static bool sees(struct stage *stage, char *text) {
    sight = (struct sight){.is_under_way = false};
    stage->subject = text;
    return check(stage_run_until(stage, is_seen, STAGE_TIMEOUT_MS), text);
}

/* ----------------------------------------------------------------------------------- the
 * waiters */

static bool start(struct stage *stage, size_t number) {
    static const char *const names[WAITERS] = {"first", "second", "third", "fourth", "fifth"};
    const char *argv[5 + STAGE_MASTERS] = {DEMO_WAITER, names[number], KEY};
    char ttl_ms[16];

    snprintf(ttl_ms, sizeof(ttl_ms), "%d", TTL_MS);
    argv[3] = ttl_ms;
    for (size_t i = 0; i < STAGE_MASTERS; i++) {
        argv[4 + i] = masters_uri(stage->masters, i);
    }
    argv[4 + STAGE_MASTERS] = NULL;
    return actor_start(&waiters[number], names[number], argv);
}

/* Waits until the program has the lock, and prints how long that took. */
static bool comes_next(struct stage *stage, size_t number, const char *statement) {
    uint64_t began_ns = stage_now_ns();

    if (!check(actor_hear(stage, &waiters[number], "has the lock") != NULL, statement)) {
        return false;
    }
    say("         %" PRIu64 " ms later", (stage_now_ns() - began_ns) / 1000000u);
    return true;
}

/* ------------------------------------------------------------------------------------ the steps */

static bool join_queue(struct stage *stage) {
    char first[] = "held by first; waiting: nobody";
    char second[] = "held by first; waiting: second";
    char third[] = "held by first; waiting: second, third";

    say("Three programs, each a process of its own, want one lock, with wait_ms.");
    return start(stage, FIRST) && sees(stage, first) &&
           check(actor_hear(stage, &waiters[FIRST], "has the lock") != NULL,
                 "the first one has it at once") &&
           start(stage, SECOND) && sees(stage, second) && start(stage, THIRD) && sees(stage, third);
}

static bool kill_the_holder(struct stage *stage) {
    char next[] = "held by second; waiting: third";

    actor_finish(&waiters[FIRST]);
    say("The first one is killed (SIGKILL). Nobody renews its lock, whose TTL is %d ms.", TTL_MS);
    return comes_next(stage, SECOND, "the second one has the lock") && sees(stage, next);
}

static bool stop_the_next(struct stage *stage) {
    char next[] = "held by third; waiting: nobody";

    if (!check(actor_stop(&waiters[SECOND]), "the second one is stopped (SIGSTOP)")) {
        return false;
    }
    say("It holds the lock, and cannot know that its time runs out.");
    return comes_next(stage, THIRD, "the third one has the lock") && sees(stage, next);
}

static bool wake_it_up(struct stage *stage) {
    return check(actor_continue(&waiters[SECOND]), "the second one is continued (SIGCONT)") &&
           check(actor_hear(stage, &waiters[SECOND], "lost the lock") != NULL,
                 "it is notified at once that it has lost the lock") &&
           check(actor_ends_well(stage, &waiters[SECOND]), "and ends");
}

static bool stop_one_in_queue(struct stage *stage) {
    char fourth[] = "held by third; waiting: fourth";
    char fifth[] = "held by third; waiting: fourth, fifth";
    char next[] = "held by fifth; waiting: nobody";

    if (!start(stage, FOURTH) || !sees(stage, fourth) || !start(stage, FIFTH) ||
        !sees(stage, fifth) ||
        !check(actor_stop(&waiters[FOURTH]), "the fourth one is stopped in the queue") ||
        !check(actor_dismiss(stage, &waiters[THIRD]),
               "the third one is asked to end (SIGTERM), and has released the lock")) {
        return false;
    }
    say("The masters give it to the fourth one, which does not answer, for a second at the most.");
    return comes_next(stage, FIFTH, "the fifth one has the lock") && sees(stage, next);
}

static bool leave(struct stage *stage) {
    char again[] = "held by fifth; waiting: fourth";

    return check(actor_continue(&waiters[FOURTH]), "the fourth one is continued") &&
           sees(stage, again) &&
           check(actor_dismiss(stage, &waiters[FIFTH]), "the fifth one has released the lock") &&
           comes_next(stage, FOURTH, "the fourth one has it") &&
           check(actor_dismiss(stage, &waiters[FOURTH]), "and has released it") &&
           check(look_all_answer(stage, "EXISTS " KEY " " KEY "::queue", "0"),
                 "no master holds it, or has a queue");
}

static const struct step steps[] = {
    {"A line", join_queue},
    {"The holder is killed", kill_the_holder},
    {"The next one is stopped when it has the lock", stop_the_next},
    {"It is continued, and notified", wake_it_up},
    {"One is stopped in the queue", stop_one_in_queue},
    {"It is continued, and waits again", leave},
};

bool demo_waiting(struct stage *stage) {
    bool done = stage_add_programs(stage, 1) == 0 &&
                stage_play(stage, steps, sizeof(steps) / sizeof(steps[0]), NULL);

    for (size_t i = 0; i < WAITERS; i++) {
        actor_finish(&waiters[i]);
    }
    return done;
}
