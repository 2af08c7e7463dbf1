/*
 * A simulated process: an event loop, a clock, and memory of its own. It can be paused, preempted
 * in the middle of its code, and killed. It is what the library takes for its `event_base`.
 */
#ifndef REDLOCK_SIM_PROCESS_H
#define REDLOCK_SIM_PROCESS_H

#include "tempo.h"
#include "world.h"

#include <redlock.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

/* Something that the process's loop is to run; embedded in what it is about. */
struct occurrence {
    void (*run)(void *owner);
    void *owner;
    bool is_io; /* a loop that was away looks at its sockets before its timers */
    bool is_queued;
    bool is_later; /* it is in the list of the next iteration */
    TAILQ_ENTRY(occurrence) link;
};

struct block;
TAILQ_HEAD(block_list, block);
TAILQ_HEAD(occurrence_list, occurrence);

struct network;

/* A timer that cannot fail, by true time. */
struct alarm {
    LIST_ENTRY(alarm) link; /* of those that are set, so that a dead process's are not forgotten */
    struct event_base *process;
    struct task due;
    struct occurrence occurrence;
};
LIST_HEAD(alarm_list, alarm);

struct event_base {
    struct world *world;
    struct network *network;
    unsigned index;
    unsigned life; /* how many clients it has had */
    struct tempo clock;
    uint64_t wall_ahead;    /* of its wall clock before the other one; ns */
    uint64_t lateness;      /* wakes up to so much late */
    unsigned preemptions;   /* per mille of the readings of its clock */
    uint64_t preempted_for; /* up to so long */

    uint64_t cost;       /* of a unit of work; ns; 0: its code takes no time */
    uint64_t work;       /* units, of the occurrence that is run */
    uint64_t began_at;   /* the latest occurrence, in true time */
    uint64_t away_until; /* its loop was last kept from running until then, in true time */

    bool is_paused;
    bool is_running; /* its loop runs callbacks */
    struct occurrence_list ready;
    struct occurrence_list later; /* became due in an iteration that takes time */
    struct alarm_list alarms;
    struct task wake;
    struct task resume;

    redlock_allocator allocator;
    struct block_list blocks;
    size_t block_count, bytes;
    unsigned failures; /* per mille of the allocations */
    uint64_t failed;   /* allocations that were refused so far */

    /* Called before and after each stretch of its code in which no time passes. */
    void (*on_check)(struct event_base *process, bool was_disturbed);
};

/* What things cost, in units of work. */
#define WORK_OF_OCCURRENCE 5
#define WORK_OF_TIMER 5
#define WORK_OF_COMMAND 2
#define WORK_OF_LOCK 1 /* in a command, or in an answer */

/* The process whose code is running; NULL outside. */
extern struct event_base *running;

void process_init(struct event_base *process, struct world *world, unsigned index);

/* Kills it: its memory is gone, nothing of it runs again. */
void process_finish(struct event_base *process);

/* Has its loop run `occurrence` once, soon; nothing more when it is queued already. */
void process_notify(struct event_base *process, struct occurrence *occurrence);
void process_forget(struct event_base *process, struct occurrence *occurrence);

/* Runs nothing until then. */
void process_pause(struct event_base *process, uint64_t until);

/* Its code goes on for so long without a look at the loop; called from inside that code. */
void process_block(struct event_base *process, uint64_t ns);

/* So much of the current occurrence's time is not the library's, but its application's. */
void process_excuse(struct event_base *process);

/* May it fail to get something from the system now? Drawn like a failing allocation. */
bool process_is_refused(struct event_base *process);

/* Perhaps the rest of the world goes on for a while, in the middle of the process's code. */
void process_may_be_preempted(struct event_base *process);

void alarm_init(struct alarm *alarm, struct event_base *process, void (*run)(void *owner),
                void *owner);
void alarm_set(struct alarm *alarm, uint64_t at);
void alarm_clear(struct alarm *alarm);

static inline void occurrence_init(struct occurrence *occurrence, void (*run)(void *owner),
                                   void *owner, bool is_io) {
    *occurrence = (struct occurrence){.run = run, .owner = owner, .is_io = is_io};
}

#endif
