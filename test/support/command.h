/* The requests that a Redis server reads: arrays of bulk strings, read from a buffer one by one. */
#ifndef REDLOCK_TEST_COMMAND_H
#define REDLOCK_TEST_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct evbuffer;

struct argument {
    const char *bytes; /* not terminated */
    size_t length;
};

struct command {
    const char *bytes; /* the whole command, in the buffer */
    size_t size;
    size_t count;
    struct argument *arguments; /* point into the buffer */
};

/*
 * Reads the first command and leaves it in the buffer. Returns 1: call command_finish before the
 * buffer changes; 0: the command has not arrived completely; -1: the bytes are no command.
 */
int command_read(struct command *command, struct evbuffer *buffer);
void command_finish(struct command *command);

/*
 * Returns whether the first argument is `name` and, unless `second` is NULL, the second is
 * `second`.
 */
bool command_is(const struct command *command, const char *name, const char *second);

/* Returns whether the command is EVALSHA or EVAL, and more than the question for a script. */
bool command_is_script(const struct command *command);

/* Returns the number of keys of EVALSHA or EVAL; 0 for other commands. */
size_t command_keys(const struct command *command);

/* Copies an argument into `text`, truncated to `size`; "" when the command has fewer arguments. */
void command_text(const struct command *command, size_t index, char *text, size_t size);

#endif
