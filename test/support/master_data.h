/*
 * The data of the masters, read and changed directly, without the library. Masters that were killed
 * or frozen are skipped.
 */
#ifndef REDLOCK_TEST_MASTER_DATA_H
#define REDLOCK_TEST_MASTER_DATA_H

#include "harness.h"

/* Returns the number of masters on which the key exists. */
size_t holders(struct fixture *f, const char *key);

/* Runs the loop until the key exists on exactly `count` masters. */
void wait_holders(struct fixture *f, const char *key, size_t count);

/* Runs the loop until the key exists on no master; asserts that none of them expired it. */
void wait_released(struct fixture *f, const char *key);

/* Returns the key's value at a master; NULL: none. Valid until the end of the test. */
const char *value_at(struct fixture *f, size_t master, const char *key);

/* Returns the key's PTTL at a master; -2: missing, -1: no expiry. */
long long pttl_at(struct fixture *f, size_t master, const char *key);

/* Returns the shortest PTTL of the key; asserts that the key exists on some master. */
long long least_pttl(struct fixture *f, const char *key);

/* Sets the key directly on the masters `from` to `to - 1`, whatever they hold. */
void rival_takes(struct fixture *f, size_t from, size_t to, const char *key, uint64_t ttl_ms);
#define RIVAL "rival"

/* Deletes the key directly on the masters `from` to `to - 1`. */
void rival_frees(struct fixture *f, size_t from, size_t to, const char *key);

/* Returns how often the master has executed a command, such as "set", since its start. */
size_t executed(struct fixture *f, size_t master, const char *command);

/* Return how many script calls the master, or all masters together, have executed. */
size_t scripts_at(struct fixture *f, size_t master);
size_t script_calls(struct fixture *f);

/* Runs the loop until the master has executed the command `times` times. */
void wait_executed(struct fixture *f, size_t master, const char *command, size_t times);

/* Returns whether a section of the master's INFO contains the text. */
bool info_contains(struct fixture *f, size_t master, const char *section, const char *text);

/* Returns a number from the master's INFO, such as "expired_keys". */
long long master_number(struct fixture *f, size_t master, const char *field);

/* Stop a master; continue it. */
void freeze(struct fixture *f, size_t master);
void thaw(struct fixture *f, size_t master);

/* Kill, freeze or thaw the masters `from` to `to - 1`. */
void kill_masters(struct fixture *f, size_t from, size_t to);
void freeze_masters(struct fixture *f, size_t from, size_t to);
void thaw_masters(struct fixture *f, size_t from, size_t to);

/*
 * Sends a command without arguments to the masters `from` to `to - 1`; asserts that none refuses
 * it.
 */
void send_to(struct fixture *f, size_t from, size_t to, const char *command);

#endif
