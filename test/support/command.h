/*
 * The requests that a Redis server reads: arrays of bulk strings, taken from a buffer one by one.
 */
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
 * Reads the first command without taking it off the buffer: 1, and command_finish is due before
 * the buffer changes; 0: it has not arrived whole; -1: that is no command.
 */
int command_read(struct command *command, struct evbuffer *buffer);
void command_finish(struct command *command);

/* Whether the command's first argument is `name`, and (unless NULL) its second `second`. */
bool command_is(const struct command *command, const char *name, const char *second);

/* Whether it is EVALSHA or EVAL. */
bool command_is_script(const struct command *command);

/* For these two: the number of keys. Otherwise 0. */
size_t command_keys(const struct command *command);

/* Copies an argument into `text`, cut to its size; "" when there are fewer. */
void command_text(const struct command *command, size_t index, char *text, size_t size);

#endif
