/* Readers share a key and make room for a writer. */
#include "demo_look.h"
#include "demo_screen.h"
#include "demo_stage.h"
#include "demos.h"

#define KEY "demo:price-list"
#define INTENT KEY "::writer"
#define READERS KEY "::readers"

enum { WRITER = FOURTH };

static void ask(struct stage *stage, size_t program, uint64_t wait_ms) {
    redlock_request request = stage_request(KEY);

    request.mode = program == WRITER ? REDLOCK_WRITER : REDLOCK_READER;
    request.wait_ms = wait_ms;
    stage_ask(stage, program, &request);
}

/* Checks that one try of the program succeeds. */
static bool acquires(struct stage *stage, size_t program, const char *statement) {
    ask(stage, program, 0);
    return stage_ends(stage, program, REDLOCK_OK, statement);
}

static bool is_refused(struct stage *stage, size_t program, const char *statement) {
    ask(stage, program, 0);
    return stage_ends(stage, program, REDLOCK_EHELD, statement);
}

static bool share(struct stage *stage) {
    return check(stage_run_until(stage, stage_is_connected, STAGE_TIMEOUT_MS),
                 "three readers and a writer are connected to five masters") &&
           acquires(stage, FIRST, "the first reader has " KEY) &&
           acquires(stage, SECOND, "the second one has it, too") &&
           check(look_all_answer(stage, "ZCARD " READERS, "2"), "each master lists both") &&
           check(look_count_answers(stage, "GET " KEY, REDLOCK_SHARED_VALUE) == STAGE_MASTERS,
                 "and has the key, with the value \"" REDLOCK_SHARED_VALUE "\"") &&
           check(look_count_answers(stage, "SET " KEY " another NX PX 10000", "OK") == 0,
                 "SET NX of another client is refused");
}

static bool have_the_writer_wait(struct stage *stage) {
    ask(stage, WRITER, STAGE_TIMEOUT_MS);
    if (!check(look_all_answer(stage, "EXISTS " INTENT, "1"),
               "it has left a note at each master") ||
        !is_refused(stage, THIRD, "a third reader is not let in:")) {
        return false;
    }
    say("         \"%s\"", stage->programs[THIRD].explanation);
    return true;
}

static bool leave(struct stage *stage) {
    return stage_releases(stage, FIRST, "the first one had it to the end") &&
           stage_releases(stage, SECOND, "so had the second") &&
           stage_ends(stage, WRITER, REDLOCK_OK, "and the writer has it") &&
           check(look_all_answer(stage, "EXISTS " READERS, "0"), "alone") &&
           is_refused(stage, THIRD, "the third reader has to wait still");
}

static bool have_the_writer_leave(struct stage *stage) {
    return stage_releases(stage, WRITER, "it had it to the end") &&
           acquires(stage, THIRD, "the third reader has it") &&
           stage_releases(stage, THIRD, "and has left");
}

static const struct step steps[] = {
    {"Two readers share a key", share},
    {"A writer asks, and waits", have_the_writer_wait},
    {"The readers leave", leave},
    {"The writer leaves", have_the_writer_leave},
};

bool demo_readers(struct stage *stage) {
    return stage_add_programs(stage, 4) == 0 &&
           stage_play(stage, steps, sizeof(steps) / sizeof(steps[0]), NULL);
}
