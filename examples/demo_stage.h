/*
 * What the demos play on: an event loop and five throwaway masters; and, in that loop, programs
 * (each a client of its own, as if it were another process) that want locks.
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
#define STAGE_PROGRAMS 4

/* For requests that wait for each other, and for what was sent to the masters. */
#define STAGE_PATIENCE_MS 30000

/* The programs, by their number. */
enum { FIRST, SECOND, THIRD, FOURTH };

/* One program that wants a lock, and what its callbacks have told so far. */
struct program {
    redlock_client *client;
    redlock_lock *lock; /* while it is acquired, held or lost, and not released */

    bool answered; /* to the last request */
    redlock_status status;
    char explanation[512];

    bool lost;
    redlock_status lost_status;
    uint64_t lost_at_ns;
};

struct stage {
    struct event_base *base;
    struct masters *masters;
    struct program programs[STAGE_PROGRAMS];
    struct event *tick;
    struct event *interrupt;
    struct event *termination;
    void *subject; /* what a condition looks at, besides the stage itself */
};

/* The loop and the masters. 0; -1, after a message on stderr: stage_finish is due in both cases. */
int stage_init(struct stage *stage);

/* So many programs, with the owner labels "first", "second", ... */
int stage_add_programs(struct stage *stage, size_t count);

/* Closes the clients, ends the masters. -1 when a client did not close in time. */
int stage_finish(struct stage *stage);

/* -------------------------------------------------------------------------------------- the play
 */

struct step {
    const char *title;
    bool (*play)(struct stage *stage); /* whether all it said was so */
};

/*
 * Whether each step did what it said; ends with the first that did not. `show` is played after each
 * of them; NULL: nothing is.
 */
bool stage_play(struct stage *stage, const struct step *steps, size_t count,
                void (*show)(struct stage *stage));

uint64_t stage_now_ns(void);

/* Runs the loop until the condition is true, at most `limit_ms`. Whether it became true. */
typedef bool stage_condition(struct stage *stage);
bool stage_run_until(struct stage *stage, stage_condition *condition, uint64_t limit_ms);

/* Runs the loop for a time, unless a program loses its lock. Whether none did. */
bool stage_run_for(struct stage *stage, uint64_t ms);

/* A condition: each program is connected to each master. */
bool stage_is_connected(struct stage *stage);

/* ---------------------------------------------------------------------------------- the programs
 */

/* A request for this key, once, with the watchdog. */
redlock_request stage_request(const char *key);

/* Begins to acquire, or to release what the program has. It is told by one of the next two. */
void stage_ask(struct stage *stage, size_t program, const redlock_request *request);
void stage_ask_release(struct stage *stage, size_t program);

/* Runs the loop until the program's last request has ended, and returns how. */
redlock_status stage_await(struct stage *stage, size_t program);

/* The same, checks that it has ended so, and says why if not. */
bool stage_ends(struct stage *stage, size_t program, redlock_status expected, const char *claim);

/* Releases what the program has, and checks that it was its own to the end. */
bool stage_releases(struct stage *stage, size_t program, const char *claim);

#endif
