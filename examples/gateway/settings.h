/* The command line of the gateway. */
#ifndef SETTINGS_H
#define SETTINGS_H

#include "nodes.h"
#include "tokens.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Maximum number of --host names. */
#define SETTINGS_HOSTS_MAX 16

struct settings {
    struct nodes nodes;
    char address[64]; /* numeric address to listen on */
    uint16_t port;    /* 0: any free port */
    bool is_loopback; /* whether only this machine can reach `address` */
    const char *owner;
    struct tokens tokens;
    const char *hosts[SETTINGS_HOSTS_MAX]; /* further values of the Host header */
    size_t host_count;
    bool allows_anyone;
    uint64_t max_wait_ms;
    uint64_t idle_ms;
    uint64_t drain_ms;
    size_t max_locks;
    size_t max_waiters;
    size_t max_connections;
};

/* Reads the command line; exits after an error message or the help. */
void settings_read(struct settings *settings, int argc, char **argv);

#endif
