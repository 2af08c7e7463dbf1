#include "command.h"

#include "resp.h"

#include <event2/buffer.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define MOST_ARGUMENTS 1000000

int command_read(struct command *command, struct evbuffer *buffer) {
    size_t size = evbuffer_get_length(buffer);
    struct resp_cursor cursor = {.at = (const char *)evbuffer_pullup(buffer, -1)};
    const char *start = cursor.at;
    int got;

    *command = (struct command){0};
    if (size == 0 || cursor.at == NULL) {
        return 0;
    }
    cursor.end = start + size;
    got = resp_read_header(&cursor, '*', &command->count);
    if (got <= 0) {
        return got;
    }
    if (command->count == 0 || command->count > MOST_ARGUMENTS) {
        return -1;
    }
    command->arguments = calloc(command->count, sizeof(*command->arguments));
    if (command->arguments == NULL) {
        return -1;
    }
    for (size_t i = 0; i < command->count; i++) {
        struct argument *argument = &command->arguments[i];

        got = resp_read_bulk(&cursor, &argument->bytes, &argument->length);
        if (got <= 0) {
            command_finish(command);
            return got;
        }
    }
    command->bytes = start;
    command->size = (size_t)(cursor.at - start);
    return 1;
}

void command_finish(struct command *command) {
    free(command->arguments);
    *command = (struct command){0};
}

static bool argument_is(const struct command *command, size_t index, const char *text) {
    return index < command->count && command->arguments[index].length == strlen(text) &&
           strncasecmp(command->arguments[index].bytes, text, strlen(text)) == 0;
}

bool command_is(const struct command *command, const char *name, const char *second) {
    return argument_is(command, 0, name) && (second == NULL || argument_is(command, 1, second));
}

bool command_is_script(const struct command *command) {
    /* Without keys and arguments it only asks whether the server has the script. */
    return command->count > 3 &&
           (command_is(command, "EVALSHA", NULL) || command_is(command, "EVAL", NULL));
}

size_t command_keys(const struct command *command) {
    char number[16];

    if (!command_is_script(command)) {
        return 0;
    }
    command_text(command, 2, number, sizeof(number));
    return strtoul(number, NULL, 10);
}

void command_text(const struct command *command, size_t index, char *text, size_t size) {
    if (index < command->count) {
        snprintf(text, size, "%.*s", (int)command->arguments[index].length,
                 command->arguments[index].bytes);
    } else {
        text[0] = '\0';
    }
}
