/*
 * A master inside of the test: the simulator's (test/sim/master.h), listening on a Unix socket, on
 * the test's own loop, with the time of day.
 */
#ifndef REDLOCK_TORTURE_SERVER_H
#define REDLOCK_TORTURE_SERVER_H

#include "master.h"
#include "world.h"

#include <event2/event.h>
#include <sys/queue.h>

struct server_link;

struct server {
    struct event_base *base;
    struct world world; /* its clock */
    struct master master;
    struct evconnlistener *listener;
    TAILQ_HEAD(, server_link) links;
    char uri[128];
    char path[108];
    const char *error; /* what it answers to SET and scripts; NULL: it carries them out */
    bool is_silent;    /* reads, carries out, and does not answer */
};

void server_start(struct server *server, struct event_base *base, const char *folder,
                  unsigned index);
void server_stop(struct server *server);

/* Ends all connections. */
void server_drop(struct server *server);

/* Sets, or deletes, a key by hand. */
void server_set(struct server *server, const char *key, const char *value);
void server_delete(struct server *server, const char *key);

#endif
