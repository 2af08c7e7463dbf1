/*
 * What the masters hold, looked at and changed by hand, past the library. Masters that were killed
 * or frozen are passed over.
 */
#ifndef REDLOCK_TEST_LOOK_H
#define REDLOCK_TEST_LOOK_H

#include "harness.h"

/* On how many masters the key exists. */
size_t holders(struct fixture *f, const char *key);

/* Runs the loop until the key exists on exactly so many masters. */
void wait_holders(struct fixture *f, const char *key, size_t count);

/* Runs the loop until the key exists on no master, and asserts that none of them expired it. */
void wait_released(struct fixture *f, const char *key);

/* The key's value at a master; NULL: none. Valid until the test ends. */
const char *value_at(struct fixture *f, size_t master, const char *key);

/* The key's PTTL at a master: -2 missing, -1 no expiry. */
long long pttl_at(struct fixture *f, size_t master, const char *key);

/* The shortest PTTL of the key where it exists; asserts that it does somewhere. */
long long least_pttl(struct fixture *f, const char *key);

/* Sets the key by hand on the masters `from` to `to - 1`, whatever they hold. */
void rival_takes(struct fixture *f, size_t from, size_t to, const char *key, uint64_t ttl_ms);
#define RIVAL "rival"

/* Deletes the key by hand on the masters `from` to `to - 1`. */
void rival_frees(struct fixture *f, size_t from, size_t to, const char *key);

/* How often the master executed a command, such as "set", since it started. */
size_t executed(struct fixture *f, size_t master, const char *command);

/* Runs the loop until the master executed the command so many times. */
void wait_executed(struct fixture *f, size_t master, const char *command, size_t times);

/* A number from the master's INFO, such as "expired_keys". */
long long master_number(struct fixture *f, size_t master, const char *field);

/* Stops a master, and has it go on. */
void freeze(struct fixture *f, size_t master);
void thaw(struct fixture *f, size_t master);

/* Sends a command without arguments to the masters `from` to `to - 1`; asserts that none refuses.
 */
void tell(struct fixture *f, size_t from, size_t to, const char *command);

#endif
