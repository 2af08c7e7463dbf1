/*
 * One story, played twice. Writer A takes the lock of an account, reads its balance, checks that it
 * holds the lock, and is stopped. The lock expires; writer B takes it and pays in an amount. Then
 * writer A continues where it was stopped: it writes the balance that it computed. A store with a
 * gate refuses the write; a store without a gate loses the amount of writer B.
 *
 * The store and the writers are processes. The demo waits only for their lines, never by time.
 */
#include "demo_actor.h"
#include "demo_ask.h"
#include "demo_screen.h"
#include "demos.h"
#include "masters.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ACCOUNT "/accounts/7"

struct scene {
    struct stage *stage;
    struct actor store;
    struct actor a;
    struct actor b;
    char port[8]; /* port of the store */
};

/* ----------------------------------------------------------------------------------- the actors */

static bool start_store(struct scene *scene, const char *option) {
    const char *argv[] = {FENCED_STORE, option, NULL};
    const char *port;

    if (!actor_start(&scene->store, "store", argv) ||
        (port = actor_hear(scene->stage, &scene->store, "listening on 127.0.0.1:")) == NULL) {
        return false;
    }
    snprintf(scene->port, sizeof(scene->port), "%s", port);
    return true;
}

/* Starts a writer that adds `amount` to the account. */
static bool start_writer(struct scene *scene, struct actor *writer, const char *name, bool pauses,
                         const char *amount) {
    const char *argv[6 + STAGE_MASTERS] = {FENCED_WRITER, "--pause"};
    size_t count = pauses ? 2 : 1;

    argv[count++] = amount;
    argv[count++] = scene->port;
    argv[count++] = ACCOUNT;
    for (size_t i = 0; i < STAGE_MASTERS; i++) {
        argv[count++] = masters_uri(scene->stage->masters, i);
    }
    argv[count] = NULL;
    return actor_start(writer, name, argv);
}

/* Returns the fence that the writer reports; 0 for none. */
static uint64_t hear_fence(struct scene *scene, struct actor *writer) {
    const char *fence = actor_hear(scene->stage, writer, "acquired with fence ");

    return fence != NULL ? strtoull(fence, NULL, 10) : 0;
}

/* Checks at the store itself that the account holds `due`, instead of trusting the writers. */
static bool holds(struct scene *scene, long due, const char *statement) {
    struct question question = {.verb = EVHTTP_REQ_GET, .object = ACCOUNT};
    bool is_so;

    question.port = (uint16_t)strtoul(scene->port, NULL, 10);
    is_so = ask(scene->stage, &question) == 200 && strtol(question.text, NULL, 10) == due;
    if (!check(is_so, statement)) {
        say("The store says: %d %s", question.code, question.text);
    }
    return is_so;
}

/* ------------------------------------------------------------------------------------ the story */

static bool open_account(struct scene *scene) {
    return start_writer(scene, &scene->a, "opening", false, "100") &&
           actor_ends_well(scene->stage, &scene->a) && holds(scene, 100, "the account holds 100");
}

/* State of writer A when it is stopped. */
struct past {
    uint64_t began_ns; /* instant before it requested the lock */
    uint64_t fence;
    uint64_t certain_ms; /* minimum validity of its lock, counted from began_ns */
};

static bool stop_in_time(struct scene *scene, struct past *past) {
    const char *validity;

    say("Writer A is to add 10. It takes the lock, reads, and looks at its lock:");
    past->began_ns = stage_now_ns();
    if (!start_writer(scene, &scene->a, "writer A", true, "10") ||
        (past->fence = hear_fence(scene, &scene->a)) == 0 ||
        (validity = actor_hear(scene->stage, &scene->a, "certain for ")) == NULL) {
        return false;
    }
    past->certain_ms = strtoull(validity, NULL, 10);
    return check(actor_stop(&scene->a), "writer A is stopped (SIGSTOP), just before it writes");
}

static bool overtake(struct scene *scene, const struct past *past) {
    uint64_t fence;
    uint64_t after_ms;

    say("Writer B is to add 50. It waits for the lock, until that of A expires:");
    if (!start_writer(scene, &scene->b, "writer B", false, "50") ||
        (fence = hear_fence(scene, &scene->b)) == 0) {
        return false;
    }
    after_ms = (stage_now_ns() - past->began_ns) / 1000000u;
    return check(after_ms >= past->certain_ms,
                 "writer B was not let in while the lock of A was certain") &&
           check(fence > past->fence, "its fence is larger than that of writer A") &&
           check(actor_ends_well(scene->stage, &scene->b), "writer B has written") &&
           holds(scene, 150, "the account holds 150");
}

/*
 * Lets writer A write its old balance. Returns its next line, valid until it writes another; NULL
 * if the story failed before that.
 */
static const char *write_late(struct scene *scene, const char *option) {
    struct past past;

    if (!start_store(scene, option) || !open_account(scene) || !stop_in_time(scene, &past) ||
        !overtake(scene, &past)) {
        return NULL;
    }
    say("Writer A goes on (SIGCONT). It cannot know that its lock is over, and writes:");
    return actor_continue(&scene->a) ? actor_hear(scene->stage, &scene->a, "") : NULL;
}

static bool begins_with(const char *text, const char *words) {
    return strncmp(text, words, strlen(words)) == 0;
}

static bool with_gate(struct scene *scene) {
    const char *outcome = write_late(scene, NULL);

    if (outcome == NULL ||
        !check(begins_with(outcome, "refused with 412"), "the late write is refused")) {
        return false;
    }
    say("So it begins anew, up to where it was stopped the first time:");
    return actor_hear(scene->stage, &scene->a, "certain for ") != NULL &&
           holds(scene, 150, "the account still holds 150: the late write did nothing") &&
           actor_continue(&scene->a) && actor_ends_well(scene->stage, &scene->a) &&
           holds(scene, 160, "the account holds 160: what both have paid is there");
}

static bool without_gate(struct scene *scene) {
    const char *outcome = write_late(scene, "--without-gate");

    return outcome != NULL &&
           check(begins_with(outcome, "wrote 110"), "the late write is let in") &&
           check(actor_ends_well(scene->stage, &scene->a), "writer A is content") &&
           holds(scene, 110, "the account holds 110 and not 160: what writer B paid is lost");
}

/* ---------------------------------------------------------------------------- the gate, by hand */

struct visit {
    enum evhttp_cmd_type verb;
    const char *fence;
    int code;
    const char *statement;
};

static const struct visit visits[] = {
    {EVHTTP_REQ_PUT, "17", 200, "fence 17 writes"},
    {EVHTTP_REQ_PUT, "17", 200, "fence 17 writes again: it is the same holder"},
    {EVHTTP_REQ_GET, "18", 200, "fence 18 reads, to write later"},
    {EVHTTP_REQ_PUT, "17", 412, "fence 17 is refused: 18 would overwrite what it never saw"},
    {EVHTTP_REQ_GET, "17", 412, "fence 17 gets the same answer when it reads"},
    {EVHTTP_REQ_PUT, "18", 200, "fence 18 writes"},
    {EVHTTP_REQ_PUT, NULL, 428, "nobody writes without a fence"},
    {EVHTTP_REQ_PUT, "0", 400, "nor with the fence of a lock that has none"},
    {EVHTTP_REQ_PUT, "9007199254740992", 400, "nor with one that would shut out all others"},
    {EVHTTP_REQ_GET, NULL, 200, "a mere reader needs none"},
};

static bool by_hand(struct scene *scene) {
    if (!start_store(scene, NULL)) {
        return false;
    }
    for (size_t i = 0; i < sizeof(visits) / sizeof(visits[0]); i++) {
        struct question question = {.verb = visits[i].verb, .object = "/by-hand"};

        question.port = (uint16_t)strtoul(scene->port, NULL, 10);
        question.fence = visits[i].fence;
        question.value = visits[i].verb == EVHTTP_REQ_PUT ? "something" : NULL;
        if (!check(ask(scene->stage, &question) == visits[i].code, visits[i].statement)) {
            say("The store says: %d %s", question.code, question.text);
            return false;
        }
    }
    return true;
}

/* --------------------------------------------------------------------------------- the scenario */

struct act {
    const char *title;
    bool (*play)(struct scene *scene); /* returns whether all of its claims were true */
};

static const struct act acts[] = {
    {"A store with a gate", with_gate},
    {"The same store without it", without_gate},
    {"Whom the gate lets in", by_hand},
};

static bool play(struct stage *stage, const struct act *act) {
    struct scene scene = {.stage = stage};
    bool done = act->play(&scene) && actor_dismiss(stage, &scene.store);

    actor_finish(&scene.a);
    actor_finish(&scene.b);
    actor_finish(&scene.store);
    return done;
}

bool demo_fence(struct stage *stage) {
    for (size_t i = 0; i < sizeof(acts) / sizeof(acts[0]); i++) {
        screen_title(i + 1, acts[i].title);
        if (!play(stage, &acts[i])) {
            printf("\nStep %zu failed: %s.\n", i + 1, acts[i].title);
            return false;
        }
        printf("\n");
        fflush(stdout);
    }
    return true;
}
