/*
 * The stage of the demos: an event loop, five throwaway masters, and, in that loop, programs that
 * want locks (each a client of its own, as if it were another process).
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

/* Time limit for requests that wait for each other, and for effects at the masters. */
#define STAGE_TIMEOUT_MS 30000

/* The programs' numbers. */
enum { FIRST, SECOND, THIRD, FOURTH };

/* A program that wants a lock, and the results that its callbacks reported. */
struct program {
    redlock_client *client;
    redlock_lock *lock; /* while acquired, held or lost, and not released */

    bool answered; /* whether the last request has ended */
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
    void *subject; /* argument of a condition, besides the stage */
};

/*
 * Creates the loop and the masters. Returns 0; or -1, after a message on stderr. Call stage_finish
 * in both cases.
 */
int stage_init(struct stage *stage);

/*
 * Creates `count` programs with the owner labels "first", "second", ... Returns 0, or -1 on
 * failure.
 */
int stage_add_programs(struct stage *stage, size_t count);

/* Closes the clients and ends the masters. Returns -1 if a client did not close in time. */
int stage_finish(struct stage *stage);

/* ------------------------------------------------------------------------------------- the play */

struct step {
    const char *title;
    bool (*play)(struct stage *stage); /* returns whether all of its claims were true */
};

/*
 * Plays the steps up to the first that fails, and calls `show`, unless NULL, after each. Returns
 * whether all steps succeeded.
 */
bool stage_play(struct stage *stage, const struct step *steps, size_t count,
                void (*show)(struct stage *stage));

uint64_t stage_now_ns(void);

/* Runs the loop until the condition is true, at most `limit_ms`. Returns whether it became true. */
typedef bool stage_condition(struct stage *stage);
bool stage_run_until(struct stage *stage, stage_condition *condition, uint64_t limit_ms);

/* Runs the loop for a time, or until a program loses its lock. Returns whether no program did. */
bool stage_run_for(struct stage *stage, uint64_t ms);

/* A stage_condition: returns whether each program is connected to each master. */
bool stage_is_connected(struct stage *stage);

/* --------------------------------------------------------------------------------- the programs */

/* Returns a request for `key` with one try and a watchdog. */
redlock_request stage_request(const char *key);

/*
 * Start to acquire or release the program's lock. stage_await or stage_ends reports the result.
 */
void stage_ask(struct stage *stage, size_t program, const redlock_request *request);
void stage_ask_release(struct stage *stage, size_t program);

/* Runs the loop until the program's last request has ended. Returns its status. */
redlock_status stage_await(struct stage *stage, size_t program);

/* Waits like stage_await, checks that the status is `expected`, and prints why if not. */
bool stage_ends(struct stage *stage, size_t program, redlock_status expected,
                const char *statement);

/* Releases the program's lock and checks that it was held to the end. */
bool stage_releases(struct stage *stage, size_t program, const char *statement);

#endif
