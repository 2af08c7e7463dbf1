/* One client process: several workers that lock, read, sleep, write and release, forever. */
#ifndef REDLOCK_CHAOS_CLIENT_H
#define REDLOCK_CHAOS_CLIENT_H

#include "board.h"
#include "options.h"

struct client_role {
    const struct options *options;
    struct board *board;
    const char *const *uris; /* the URIs of the MASTERS nodes */
    uint32_t index;
    uint32_t life; /* number of previous clients in this place */
    int log;       /* descriptor of the log for the records */
    int actions;   /* descriptor of the log for the actions; -1: none */
};

/* Runs until SIGTERM; returns the exit code. */
int client_run(const struct client_role *role);

#endif
