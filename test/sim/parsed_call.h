/*
 * A client's commands for locks, split up: a parsed call is the part of a SET, or of a script call,
 * that is about one lock.
 */
#ifndef REDLOCK_SIM_PARSED_CALL_H
#define REDLOCK_SIM_PARSED_CALL_H

#include "words.h"

#include "wire/script.h"

#include <stdbool.h>

/*
 * The form of a script call: the first key and the first argument of each lock are the lock's own.
 */
struct form {
    enum script script;
    unsigned keys, arguments; /* numbers for each lock; 0 keys: the arguments state their number */
    bool is_reader;
    unsigned leading; /* number of arguments before those of the locks */
};

struct parsed_call {
    const struct word *names; /* its keys */
    unsigned count;
    const struct word *value, *ttl;
    const struct word *ticket; /* NULL: none */
    bool is_reader;
    bool releases; /* whether the call releases the keys */
    bool asks_for_entry;
    bool may_repeat; /* whether the call was refused, and may be repeated */
};

/* The position of the next lock in a call: EVALSHA sha count key... argument... */
struct call_position {
    unsigned key, argument, key_end;
};

/* Returns whether the command calls the script, by its SHA-1 or with its text. */
bool parsed_call_is_of(const struct words *words, enum script script);

/* Returns the form of a call of one of the locks' scripts; NULL for any other command. */
const struct form *parsed_call_form(const struct words *words);

/* Returns whether the command is SCRIPT_TAKE for a held lock. */
bool parsed_call_is_top_up(const struct words *words);

/* Returns whether the script takes keys for a waiter, or gives an entry in the queue. */
bool parsed_call_is_queue(const struct form *form);

/* Returns whether calls of the script release keys. */
bool parsed_call_is_release(enum script script);

/* Returns the position of the first lock in a call. */
struct call_position parsed_call_first(const struct words *words, const struct form *form);

/* Reads the next lock's part. Returns false when none is left. */
bool parsed_call_next(const struct words *words, const struct form *form, struct call_position *at,
                      struct parsed_call *call);

/* Returns what a call asks for a lock: 'T' takes its keys, 'R' only renews them, 0: neither. */
char parsed_call_asks(const struct form *form, const struct parsed_call *call);

typedef void on_parsed_call(const struct words *words, const struct form *form,
                            const struct parsed_call *call, void *arg);

/* Calls `on` for each lock of a command; `form` is NULL for a SET. */
void parsed_call_each(const struct words *words, on_parsed_call *on, void *arg);

#endif
