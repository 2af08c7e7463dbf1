/*
 * A simulated process: an event loop, a clock, and memory of its own. It can be paused, preempted
 * in the middle of its code, and killed. To the library it is the `event_base`.
 */
#ifndef REDLOCK_SIM_PROCESS_H
#define REDLOCK_SIM_PROCESS_H

#include "io/loop.h"
#include "tempo.h"
#include "world.h"

#include <redlock.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

/* An event for the process's loop; embedded in the struct that the event is about. */
struct occurrence {
    void (*run)(void *owner);
    void *owner;
    bool is_io; /* whether it is a socket's: a loop that was blocked runs sockets before timers */
    bool is_queued;
    bool is_later; /* whether it is in the list of the next iteration */
    TAILQ_ENTRY(occurrence) link;
};

struct block;
TAILQ_HEAD(block_list, block);
TAILQ_HEAD(occurrence_list, occurrence);

struct network;

/* A timer that cannot fail, by true time. */
struct alarm {
    LIST_ENTRY(alarm)
    link; /* in the list of set alarms, so that those of a dead process are cleared */
    struct event_base *process;
    struct task due;
    struct occurrence occurrence;
};
LIST_HEAD(alarm_list, alarm);

struct process_loop;
TAILQ_HEAD(process_loops, process_loop);

struct event_base {
    struct world *world;
    struct network *network;
    unsigned index;
    unsigned life; /* number of clients so far */
    struct tempo clock;
    uint64_t wall_ahead;    /* lead of the wall clock over the other clock; ns */
    uint64_t lateness;      /* maximum lateness of a wake */
    unsigned preemptions;   /* preemptions per mille of the readings of its clock */
    uint64_t preempted_for; /* maximum length of a preemption */
    unsigned preempted;     /* number of preemptions in this iteration of its loop */

    uint64_t cost;       /* time of one unit of work; ns; 0: its code takes no time */
    uint64_t work;       /* units of work of the current occurrence */
    uint64_t began_at;   /* start of the latest occurrence, in true time */
    uint64_t away_until; /* true time until which its loop was last kept from running */

    bool is_paused;
    bool is_running; /* whether its loop is running callbacks */
    struct occurrence_list ready;
    struct occurrence_list later; /* occurrences that became due in an iteration that takes time */
    struct alarm_list alarms;
    struct process_loops loops; /* of its clients (io/loop.c) */
    struct task wake;
    struct task resume;

    redlock_allocator allocator;
    struct block_list blocks;
    size_t block_count, bytes;
    unsigned failures; /* refusals per mille of the allocations */
    uint64_t failed;   /* number of refused allocations so far */

    /* Called before and after each stretch of its code in which no time passes. */
    void (*on_check)(struct event_base *process, bool was_disturbed);
};

/* Costs, in units of work. */
#define WORK_OF_OCCURRENCE 5
#define WORK_OF_TIMER 5
#define WORK_OF_COMMAND 2
#define WORK_OF_LOCK 1     /* for each lock in a command or an answer */
#define WORK_OF_CALLBACK 5 /* for each callback of the application */

/* The process whose code is running; NULL outside of processes. */
extern struct event_base *running;

void process_init(struct event_base *process, struct world *world, unsigned index);

/* Kills the process: its memory is freed, and none of its code runs again. */
void process_finish(struct event_base *process);

/* Queues `occurrence` for the loop, to run once, soon. Has no effect when it is already queued. */
void process_notify(struct event_base *process, struct occurrence *occurrence);
void process_forget(struct event_base *process, struct occurrence *occurrence);

/* Pauses the process until `until`. */
void process_pause(struct event_base *process, uint64_t until);

/* Keeps the code from returning to the loop for `ns`; called from inside that code. */
void process_block(struct event_base *process, uint64_t ns);

/* Excuses the current occurrence, whose time is the application's, not the library's. */
void process_excuse(struct event_base *process);

/* Returns whether the system now refuses a request, drawn like a failing allocation. */
bool process_is_refused(struct event_base *process);

/* May let the rest of the world proceed for a while, in the middle of the process's code. */
void process_may_be_preempted(struct event_base *process);

/* Returns the process of a client's loop. */
struct event_base *process_of(redlock_loop *loop);

/* Requests the wakes of a process's loops anew, after its clock was set. */
void loops_set_again(struct event_base *process);

/* Frees the loops of a process that is killed. */
void loops_free(struct event_base *process);

void alarm_init(struct alarm *alarm, struct event_base *process, void (*run)(void *owner),
                void *owner);
void alarm_set(struct alarm *alarm, uint64_t at);
void alarm_clear(struct alarm *alarm);

static inline void occurrence_init(struct occurrence *occurrence, void (*run)(void *owner),
                                   void *owner, bool is_io) {
    *occurrence = (struct occurrence){.run = run, .owner = owner, .is_io = is_io};
}

#endif
