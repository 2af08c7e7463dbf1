/*
 * What the demo plays on: an event loop and five throwaway masters; and, in that loop, two programs
 * (each a client of its own, as if it were another process) that want the same lock.
 */
#ifndef DEMO_STAGE_H
#define DEMO_STAGE_H

#include <redlock.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct event_base;
struct masters;

#define STAGE_MASTERS 5
#define STAGE_QUORUM 3
#define STAGE_KEY "demo:nightly-report"
#define STAGE_TTL_MS 2000

/* One program that wants the lock, and what its callbacks have told so far. */
struct program {
    const char *name;
    redlock_client *client;
    redlock_lock *lock; /* while held or lost, and not released */

    bool answered; /* to the last request */
    redlock_status status;
    char explanation[512];

    bool lost;
    redlock_status lost_status;
    uint64_t lost_at_ns;

    bool closed;
};

struct stage {
    struct event_base *base;
    struct masters *masters;
    struct program first;
    struct program second;
    struct event *tick;
    struct event *interrupt;
    struct event *termination;
    void *subject; /* what a condition looks at, besides the stage itself */
};

/* The loop and the masters. 0; -1, after a message on stderr: stage_finish is due in both cases. */
int stage_init(struct stage *stage);

/* The two programs. */
int stage_add_programs(struct stage *stage);

/* Closes the clients, ends the masters. -1 when a client did not close in time. */
int stage_finish(struct stage *stage);

uint64_t stage_now_ns(void);

/* Runs the loop until the condition is true, at most `limit_ms`. Whether it became true. */
typedef bool stage_condition(struct stage *stage);
bool stage_run_until(struct stage *stage, stage_condition *condition, uint64_t limit_ms);

/* Runs the loop for a time, unless a program loses its lock. Whether none did. */
bool stage_run_for(struct stage *stage, uint64_t ms);

/* Each runs the loop until the request has ended, and returns how. */
redlock_status stage_acquire(struct stage *stage, struct program *program, const char *key,
                             uint64_t wait_ms);
redlock_status stage_release(struct stage *stage, struct program *program);

/* How many masters hold the key with the token that most of them have, or had: one holder's. */
size_t stage_holders(struct stage *stage);

/* What is left of the key's time at one master, by its own clock; 0 without the key. */
uint64_t stage_time_left_ms(struct stage *stage, size_t master);

/* A table of what each master holds. */
void stage_show_masters(struct stage *stage);

#endif
