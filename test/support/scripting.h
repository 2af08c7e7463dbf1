/*
 * Runs the library's scripts on LuaJIT, whose language is that of Redis, Lua 5.1, with redis.call
 * and redis.pcall.
 */
#ifndef REDLOCK_TEST_SCRIPTING_H
#define REDLOCK_TEST_SCRIPTING_H

#include "store.h"

#include "wire/script.h"

/*
 * Runs a script for the call in `words` (EVAL or EVALSHA, text or SHA-1, number of keys, keys,
 * arguments). The answer is valid until the store's next answer.
 */
struct reply scripting_run(struct store *store, enum script script, const struct words *words,
                           unsigned keys);

#endif
