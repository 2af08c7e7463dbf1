/* A client for commands that only read, and their common options. */
#ifndef ASKER_H
#define ASKER_H

#include "nodes.h"

#include <redlock.h>
#include <stdbool.h>
#include <stdint.h>

struct event_base;

struct asker {
    struct nodes nodes;
    struct event_base *base;
    redlock_client *client;
    bool is_json;
    bool says_yes;        /* --yes */
    const char *prefix;   /* --prefix */
    uint64_t interval_ms; /* --interval */
    bool is_done;         /* whether the last question has been answered */
};

/* Mask of the options that a command has, besides -n, --json and the times. */
enum { ASKER_YES = 1, ASKER_PREFIX = 2, ASKER_INTERVAL = 4 };

/*
 * Reads the options, or exits with TOOL_USAGE. Returns the index of the first argument that is not
 * an option, `argc` for none.
 */
int asker_read(struct asker *asker, int argc, char **argv, int known);

/*
 * Creates the client, and waits up to 1 s until each node has answered or failed. Exits with
 * TOOL_SYSTEM if there are too few descriptors for a quorum.
 */
void asker_connect(struct asker *asker);

/*
 * Inspects a key, and calls `on_view` before it returns. Returns false if the library refuses the
 * key, because it is not the name of a lock.
 */
bool asker_inspect(struct asker *asker, const char *key, size_t length, redlock_inspect_cb *on_view,
                   void *arg);

/* Runs the loop for some ms. */
void asker_wait(struct asker *asker, uint64_t ms);

/* Closes the client. */
void asker_finish(struct asker *asker);

#endif
