#include "demo_look.h"

#include "masters.h"

#include <stdlib.h>
#include <string.h>

char *look_token(struct stage *stage, size_t master, const char *key) {
    if (masters_pid(stage->masters, master) == 0) {
        return NULL;
    }
    return masters_query(stage->masters, master, "GET %s", key);
}

static size_t count_equal(char *const *tokens, const char *token) {
    size_t count = 0;

    for (size_t i = 0; i < STAGE_MASTERS; i++) {
        count += tokens[i] != NULL && strcmp(tokens[i], token) == 0;
    }
    return count;
}

size_t look_holders(struct stage *stage, const char *key) {
    char *tokens[STAGE_MASTERS];
    size_t holders = 0;

    for (size_t i = 0; i < STAGE_MASTERS; i++) {
        tokens[i] = look_token(stage, i, key);
    }
    for (size_t i = 0; i < STAGE_MASTERS; i++) {
        if (tokens[i] != NULL && count_equal(tokens, tokens[i]) > holders) {
            holders = count_equal(tokens, tokens[i]);
        }
    }
    for (size_t i = 0; i < STAGE_MASTERS; i++) {
        free(tokens[i]);
    }
    return holders;
}

uint64_t look_time_left(struct stage *stage, size_t master, const char *key) {
    long long left = -1;

    if (masters_pid(stage->masters, master) != 0) {
        left = masters_query_integer(stage->masters, master, "PTTL %s", key);
    }
    return left > 0 ? (uint64_t)left : 0;
}

size_t look_count_answers(struct stage *stage, const char *command, const char *expected) {
    size_t count = 0;

    for (size_t i = 0; i < STAGE_MASTERS; i++) {
        char *answer = masters_query(stage->masters, i, command);

        count += answer != NULL && strcmp(answer, expected) == 0;
        free(answer);
    }
    return count;
}

struct expectation {
    const char *command;
    const char *answer;
};

static bool is_met(struct stage *stage) {
    const struct expectation *expectation = stage->subject;

    return look_count_answers(stage, expectation->command, expectation->answer) == STAGE_MASTERS;
}

bool look_all_answer(struct stage *stage, const char *command, const char *expected) {
    struct expectation expectation = {.command = command, .answer = expected};

    stage->subject = &expectation;
    return stage_run_until(stage, is_met, STAGE_TIMEOUT_MS);
}
