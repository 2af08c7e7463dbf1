/*
 * One run of a scenario: a loop, some servers inside of the test, a client, and what the library
 * promises its application whatever fails: exactly one callback for each accepted request, never
 * before its call has returned; nothing left of a closed client; and that it works again when
 * nothing fails any more.
 */
#ifndef REDLOCK_TORTURE_RIG_H
#define REDLOCK_TORTURE_RIG_H

#include "fault.h"
#include "server.h"

#include <event2/event.h>
#include <redlock.h>
#include <stdbool.h>
#include <sys/queue.h>

#define RIG_SERVERS 5

/* A request, and what became of it. Lives until the end of the run. */
struct record {
    STAILQ_ENTRY(record) link;
    struct rig *rig;
    redlock_status answer; /* of the call */
    bool is_open;          /* accepted, and its callback has not come */
    redlock_status status; /* of the callback */
    redlock_lock *lock;    /* NULL: there is no handle, or not any more */
    struct record *loss;   /* of an acquisition: its on_lost */

    /* Runs inside the callback; may do anything. NULL: nothing. */
    void (*then)(struct rig *rig, struct record *record);
};

struct rig {
    struct event_base *base;
    struct event *tick;
    struct server servers[RIG_SERVERS];
    unsigned server_count;
    const char *nodes[RIG_SERVERS];
    struct fault_heap heap;
    redlock_options options; /* of the clients that are made */
    redlock_client *client;  /* NULL: none */
    bool is_calling;         /* inside a call of the library */
    STAILQ_HEAD(, record) records;
    char problem[256]; /* the first promise that was broken; "" */
};

/* The least level of the library's log that is printed. */
extern int rig_log_level;

void rig_begin(struct rig *rig, unsigned servers, const char *folder);

/* When nothing fails any more: the client must work, end, and leave nothing. */
void rig_end(struct rig *rig);

/* ---- what scenarios do; each takes what an earlier one could not make ---- */

/* Makes the rig's client, on all servers. False when that was refused. */
bool rig_create(struct rig *rig);

/* Runs the loop until all nodes are connected. */
void rig_connect(struct rig *rig);

struct record *rig_acquire(struct rig *rig, const redlock_request *request);
struct record *rig_extend(struct rig *rig, const struct record *held, uint64_t ttl_ms);
struct record *rig_release(struct rig *rig, struct record *held);
void rig_cancel(struct rig *rig, struct record *record);
struct record *rig_close(struct rig *rig);

/* Runs the loop until the callback of the request, or of all requests, has come. */
void rig_await(struct rig *rig, const struct record *record);
void rig_await_all(struct rig *rig);

/* Runs the loop until on_lost has come. */
void rig_await_loss(struct rig *rig, const struct record *held);

/* Runs the loop until `condition` holds, but no longer than a second: after a failure it may not
   come true. */
void rig_wait(struct rig *rig, bool (*condition)(const struct rig *rig));

bool rig_has(const struct record *record); /* it was acquired, and has a handle */

/* A request for one try without watchdog. */
redlock_request rig_request(const char *key, uint64_t ttl_ms);

__attribute__((format(printf, 2, 3))) void rig_complain(struct rig *rig, const char *format, ...);

#endif
