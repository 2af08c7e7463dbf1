/*
 * Shows on the terminal how readers share a key on five Redis masters, and make room for a writer.
 * Every step checks what it says; the first that is not so ends the demo with 1.
 */
#include "masters.h"

#include <event2/event.h>
#include <redlock.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MASTERS 5
#define KEY "demo:price-list"
#define NOTE KEY "::writer"
#define READERS KEY "::readers"
#define PATIENCE_MS 30000
#define LIMIT_S 60

/* Somebody who wants the key, and what the callbacks have told so far. */
struct party {
    redlock_mode mode;
    redlock_lock *lock; /* while held */
    bool answered;      /* to the last request */
    redlock_status status;
    char why[512];
};

struct scene {
    struct event_base *base;
    struct masters *masters;
    redlock_client *client;
};

/* ------------------------------------------------------------------------------------- requests */

static void answer(struct party *party, const redlock_lock *lock, redlock_status status) {
    party->answered = true;
    party->status = status;
    snprintf(party->why, sizeof(party->why), "%s", redlock_explain(lock));
}

static void on_acquired(redlock_lock *lock, redlock_status status, void *arg) {
    struct party *party = arg;

    party->lock = status == REDLOCK_OK ? lock : NULL;
    answer(party, lock, status);
}

static void on_released(redlock_lock *lock, redlock_status status, void *arg) {
    struct party *party = arg;

    party->lock = NULL;
    answer(party, lock, status);
}

static void ask(struct scene *scene, struct party *party, uint64_t wait_ms) {
    redlock_request request = REDLOCK_REQUEST_INIT;

    request.key = KEY;
    request.mode = party->mode;
    request.wait_ms = wait_ms;
    request.watchdog = true;
    party->answered = false;
    if (redlock_acquire(scene->client, &request, on_acquired, party, NULL) != REDLOCK_OK) {
        fprintf(stderr, "%s\n", redlock_client_error(scene->client));
        exit(EXIT_FAILURE);
    }
}

static void give_up(void) {
    fprintf(stderr, "nothing has happened for %d s\n", LIMIT_S);
    exit(EXIT_FAILURE);
}

static void on_limit(evutil_socket_t fd, short what, void *arg) {
    (void)fd;
    (void)what;
    (void)arg;
    give_up();
}

/* Runs the loop until the party's callback has come; how its request has ended. */
static redlock_status await(struct scene *scene, const struct party *party) {
    const struct timeval limit = {.tv_sec = LIMIT_S};
    struct event *timer = evtimer_new(scene->base, on_limit, NULL);

    if (timer == NULL || event_add(timer, &limit) != 0) {
        fputs("cannot make a timer\n", stderr);
        exit(EXIT_FAILURE);
    }
    while (!party->answered) {
        event_base_loop(scene->base, EVLOOP_ONCE);
    }
    event_free(timer);
    return party->status;
}

static redlock_status acquire(struct scene *scene, struct party *party) {
    ask(scene, party, 0);
    return await(scene, party);
}

static redlock_status leave(struct scene *scene, struct party *party) {
    party->answered = false;
    if (redlock_release(party->lock, on_released, party) != REDLOCK_OK) {
        return REDLOCK_EINVAL;
    }
    return await(scene, party);
}

/* ------------------------------------------------------------------------------- what is claimed
 */

static void check(bool is_so, const char *claim) {
    printf("   %s %s\n", is_so ? "[ok]    " : "[failed]", claim);
    fflush(stdout);
    if (!is_so) {
        exit(EXIT_FAILURE);
    }
}

/* At how many masters the command is answered like this. */
static size_t count_answers(const struct scene *scene, const char *command, const char *expected) {
    size_t count = 0;

    for (size_t i = 0; i < MASTERS; i++) {
        char *text = masters_query(scene->masters, i, command);

        count += text != NULL && strcmp(text, expected) == 0;
        free(text);
    }
    return count;
}

/* Runs the loop until all masters answer the command like this. */
static bool all_answer(struct scene *scene, const char *command, const char *expected) {
    time_t began = time(NULL);

    while (count_answers(scene, command, expected) < MASTERS) {
        if (time(NULL) > began + LIMIT_S) {
            give_up();
        }
        event_base_loop(scene->base, EVLOOP_NONBLOCK);
    }
    return true;
}

static void step(const char *title) {
    static unsigned number;

    printf("\n%u. %s\n\n", ++number, title);
}

/* ------------------------------------------------------------------------------------- the scene
 */

static void play(struct scene *scene) {
    struct party first = {.mode = REDLOCK_READER};
    struct party second = {.mode = REDLOCK_READER};
    struct party third = {.mode = REDLOCK_READER};
    struct party writer = {.mode = REDLOCK_WRITER};

    step("Two readers share " KEY);
    check(acquire(scene, &first) == REDLOCK_OK, "the first one has it");
    check(acquire(scene, &second) == REDLOCK_OK, "the second one has it, too");
    check(all_answer(scene, "ZCARD " READERS, "2"), "each master lists both");
    check(count_answers(scene, "GET " KEY, REDLOCK_SHARED_VALUE) == MASTERS,
          "and has the key, with the value \"" REDLOCK_SHARED_VALUE "\"");
    check(count_answers(scene, "SET " KEY " another NX PX 10000", "OK") == 0,
          "SET NX of another client is refused");

    step("A writer asks, and waits");
    ask(scene, &writer, PATIENCE_MS);
    check(all_answer(scene, "EXISTS " NOTE, "1"), "it has left a note at each master");
    check(acquire(scene, &third) == REDLOCK_EHELD, "a third reader is not let in:");
    printf("            \"%s\"\n", third.why);

    step("The readers leave");
    check(leave(scene, &first) == REDLOCK_OK, "the first one had it to the end");
    check(leave(scene, &second) == REDLOCK_OK, "so had the second");
    check(await(scene, &writer) == REDLOCK_OK, "and the writer has it");
    check(all_answer(scene, "EXISTS " READERS, "0"), "alone");
    check(acquire(scene, &third) == REDLOCK_EHELD, "the third reader has to wait still");

    step("The writer leaves");
    check(leave(scene, &writer) == REDLOCK_OK, "it had it to the end");
    check(acquire(scene, &third) == REDLOCK_OK, "the third reader has it");
    check(leave(scene, &third) == REDLOCK_OK, "and has left");
}

int main(void) {
    struct scene scene = {.base = event_base_new(), .masters = masters_start(MASTERS, NULL)};
    redlock_options options = REDLOCK_OPTIONS_INIT;
    redlock_error error;

    if (scene.base == NULL || scene.masters == NULL) {
        return EXIT_FAILURE;
    }
    options.nodes = masters_uris(scene.masters);
    options.node_count = MASTERS;
    options.node_timeout_ms = 500;
    options.guards = REDLOCK_GUARDS_OFF; /* the masters were started for this, a moment ago */
    if (redlock_client_create(scene.base, &options, &scene.client, &error) != REDLOCK_OK) {
        fprintf(stderr, "%s\n", error.message);
        return EXIT_FAILURE;
    }
    play(&scene);
    redlock_client_close(scene.client, NULL, NULL);
    event_base_dispatch(scene.base);
    event_base_free(scene.base);
    masters_finish(scene.masters);
    puts("\nEach step did what it said.");
    return EXIT_SUCCESS;
}
