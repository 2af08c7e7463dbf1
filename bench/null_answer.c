#include "null_answer.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#define WORDS_MAX 8 /* the first words of a command, on which answers may depend */
#define LENGTH_MAX 100000000
#define ANSWER_MAX 512 /* size of an answer without one letter for each key */

/* The answers to SCRIPT LOAD: two scripts are distinguished, by what they answer. */
#define SHA_OF_ONE "1111111111111111111111111111111111111111"
#define SHA_OF_MANY "2222222222222222222222222222222222222222"
/* Beginning of the release script of the Redis documentation, which answers 1. */
#define SCRIPT_OF_ONE "if redis.call(\"get\""

struct word {
    const char *text;
    size_t length;
};

struct command {
    size_t count; /* number of words, including those beyond WORDS_MAX */
    struct word words[WORDS_MAX];
};

bool null_bytes_reserve(struct null_bytes *bytes, size_t more) {
    size_t capacity = bytes->capacity > 0 ? bytes->capacity : 65536;
    char *data;

    while (capacity - bytes->length < more) {
        capacity *= 2;
    }
    if (capacity == bytes->capacity) {
        return true;
    }
    data = realloc(bytes->data, capacity);
    if (data == NULL) {
        return false;
    }
    bytes->data = data;
    bytes->capacity = capacity;
    return true;
}

void null_bytes_drop(struct null_bytes *bytes, size_t length) {
    if (length > 0) {
        memmove(bytes->data, bytes->data + length, bytes->length - length);
        bytes->length -= length;
    }
}

/* ---------------------------------------------------------------------------------- the commands
 */

enum outcome { WHOLE, PARTIAL, BROKEN };

/* Reads MARK, a number, CR and LF, and moves *at past them. */
static enum outcome read_number(const char **at, const char *end, char mark, size_t *number) {
    const char *next = *at;

    if (next == end) {
        return PARTIAL;
    }
    if (*next++ != mark) {
        return BROKEN;
    }
    *number = 0;
    while (next < end && *next >= '0' && *next <= '9' && *number <= LENGTH_MAX) {
        *number = *number * 10 + (size_t)(*next++ - '0');
    }
    if (end - next < 2) {
        return PARTIAL;
    }
    if (next[0] != '\r' || next[1] != '\n' || *number > LENGTH_MAX) {
        return BROKEN;
    }
    *at = next + 2;
    return WHOLE;
}

/* Reads a command, and moves *at past it if it is complete. */
static enum outcome read_command(const char **at, const char *end, struct command *command) {
    const char *next = *at;
    enum outcome outcome = read_number(&next, end, '*', &command->count);

    for (size_t i = 0; outcome == WHOLE && i < command->count; i++) {
        size_t length;

        outcome = read_number(&next, end, '$', &length);
        if (outcome != WHOLE) {
            break;
        }
        if ((size_t)(end - next) < length + 2) {
            return PARTIAL;
        }
        if (i < WORDS_MAX) {
            command->words[i] = (struct word){next, length};
        }
        next += length + 2;
    }
    if (outcome == WHOLE) {
        *at = next;
    }
    return outcome;
}

static bool is_word(const struct command *command, size_t index, const char *text) {
    const struct word *word = &command->words[index];

    return index < command->count && word->length == strlen(text) &&
           strncasecmp(word->text, text, word->length) == 0;
}

/* ----------------------------------------------------------------------------------- the answers
 */

/* Appends text. There must be room. */
static void say(struct null_bytes *output, const char *text) {
    size_t length = strlen(text);

    memcpy(output->data + output->length, text, length);
    output->length += length;
}

static void say_bulk(struct null_bytes *output, const char *text) {
    char length[32];

    snprintf(length, sizeof(length), "$%zu\r\n", strlen(text));
    say(output, length);
    say(output, text);
    say(output, "\r\n");
}

static void answer_info(struct null_bytes *output, const struct command *command, int identity) {
    char text[256];

    (void)command;
    snprintf(text, sizeof(text),
             "run_id:%040d\r\nuptime_in_seconds:1000000\r\nrole:master\r\n"
             "connected_slaves:0\r\nmaxmemory:0\r\nmaxmemory_policy:noeviction\r\n",
             identity);
    say_bulk(output, text);
}

static void answer_script_load(struct null_bytes *output, const struct command *command,
                               int identity) {
    const struct word *text = &command->words[2];
    size_t length = strlen(SCRIPT_OF_ONE);

    (void)identity;
    say_bulk(output, command->count > 2 && text->length > length &&
                             memcmp(text->text, SCRIPT_OF_ONE, length) == 0
                         ? SHA_OF_ONE
                         : SHA_OF_MANY);
}

/*
 * Answers a beat: the clock, an old marker, and its last confirmation, all in microseconds; the
 * role, and no replication id.
 */
static void answer_beat(struct null_bytes *output) {
    char text[96];
    struct timespec now;
    uint64_t now_us;

    clock_gettime(CLOCK_REALTIME, &now);
    now_us = (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
    snprintf(text, sizeof(text), "%" PRIu64 " %" PRIu64 " %" PRIu64 " master -", now_us,
             UINT64_C(100000000000), now_us);
    say_bulk(output, text);
}

/* Answers a script: one letter for each key, "done". */
static void answer_call(struct null_bytes *output, const struct command *command, int identity) {
    size_t keys = command->count > 2 ? strtoull(command->words[2].text, NULL, 10) : 0;
    char length[32];

    (void)identity;
    if (is_word(command, 1, SHA_OF_ONE)) {
        say(output, ":1\r\n");
        return;
    }
    if (is_word(command, 3, "redlock:marker")) {
        answer_beat(output);
        return;
    }
    snprintf(length, sizeof(length), "$%zu\r\n", keys);
    say(output, length);
    memset(output->data + output->length, 'y', keys);
    output->length += keys;
    say(output, "\r\n");
}

/* The table of answers: each is created by a function, or is a text. */
static const struct {
    const char *command;
    void (*answer)(struct null_bytes *output, const struct command *command, int identity);
    const char *text;
} answers[] = {
    {"SET", NULL, "+OK\r\n"},    {"EVALSHA", answer_call, NULL},       {"EVAL", answer_call, NULL},
    {"INFO", answer_info, NULL}, {"SCRIPT", answer_script_load, NULL}, {"CLIENT", NULL, "+OK\r\n"},
    {"PING", NULL, "+PONG\r\n"},
};

static bool answer_command(struct null_bytes *output, const struct command *command, int identity) {
    if (!null_bytes_reserve(output, command->count + ANSWER_MAX)) {
        return false;
    }
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        if (is_word(command, 0, answers[i].command)) {
            if (answers[i].answer != NULL) {
                answers[i].answer(output, command, identity);
            } else {
                say(output, answers[i].text);
            }
            return true;
        }
    }
    say(output, "-ERR unknown to a null master\r\n");
    return true;
}

bool null_answer(struct null_bytes *input, struct null_bytes *output, int identity) {
    const char *at = input->data;
    const char *end = input->data + input->length;
    struct command command;
    enum outcome outcome;

    while ((outcome = read_command(&at, end, &command)) == WHOLE) {
        if (!answer_command(output, &command, identity)) {
            return false;
        }
    }
    null_bytes_drop(input, (size_t)(at - input->data));
    return outcome == PARTIAL;
}
