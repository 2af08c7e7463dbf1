/*
 * A server that runs the library's scripts on a store, with the test's own clock. It records what
 * the scripts publish. Of its channels only DEAF has no subscriber.
 */
#ifndef REDLOCK_TEST_SCRIPT_SERVER_H
#define REDLOCK_TEST_SCRIPT_SERVER_H

#include "store.h"
#include "wire/script.h"

#include <stdbool.h>
#include <stdint.h>

#define CHANNEL "redlock:channel"
#define DEAF "redlock:deaf"

struct script_server {
    struct store store;
    uint64_t now_ms;
    unsigned pushes;
    char first_push[160], last_push[160];
};

void script_server_start(struct script_server *server);

/* Runs a command of words, the last of which is NULL. */
struct reply script_server_run(struct script_server *server, const char *const *texts);

#define RUN(server, ...) script_server_run(server, (const char *const[]){__VA_ARGS__, NULL})

/* Calls a script: the number of its keys, as a string, the keys, the arguments. */
#define CALL(server, script, ...) RUN(server, "EVALSHA", script_sha(script), __VA_ARGS__)

/* Returns the ticket of a waiter that comes now, written to `text`. */
const char *script_server_ticket(const struct script_server *server, char text[32]);

/* Returns whether a script's answer grants. */
bool script_server_granted(const struct reply *reply);

#endif
