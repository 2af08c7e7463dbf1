/*
 * The event loop that drives a client: timers, and descriptors that are watched, over the methods
 * of a redlock_loop. Each kind of loop is a file that fills the methods.
 *
 * A timer never fires before its instant by the library's clock, whatever the loop's clock says; it
 * may fire late. Setting a timer to a later instant costs nothing: it wakes at the old instant and
 * goes back to sleep. Timers that are due fire after the sockets that are ready have been read: the
 * program may have been busy, and answers that arrived meanwhile must not be taken for late ones.
 */
#ifndef REDLOCK_IO_LOOP_H
#define REDLOCK_IO_LOOP_H

#include <redlock.h>
#include <redlock/loop.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct fd_watch;

/* What a kind of loop does. Each may be called from any call of the library. */
struct loop_methods {
    /*
     * Changes the events that `watch` waits for to a mask of enum watch_event, level-triggered.
     * Errors and hang-ups count as all of them. 0: loop_ready is not called for it again, not even
     * for events that the loop has already seen; cannot fail. Otherwise returns whether it
     * succeeded; on failure nothing has changed.
     */
    bool (*watch)(struct fd_watch *watch, unsigned events);

    /* Have loop_fire called once, at `at` or later, in place of an earlier request. Cannot fail. */
    void (*wake_at)(redlock_loop *loop, uint64_t at);

    /* Have loop_fire_soon called, after the events that the loop has already seen. Cannot fail. */
    void (*wake_soon)(redlock_loop *loop);

    /* Frees the loop. Nothing is watched, and no call may follow. */
    void (*end)(redlock_loop *loop);
};

enum timer_list { TIMER_IDLE, TIMER_WAITING, TIMER_SOON, TIMER_FIRING };

struct timer {
    void (*on_time)(void *arg);
    void *arg;
    uint64_t at;       /* instant to fire at; 0: soon; NANOS_NEVER: not set */
    uint64_t filed_at; /* WAITING: the instant by which the list is sorted */
    redlock_loop *loop;
    enum timer_list list;
    TAILQ_ENTRY(timer) link;
};

TAILQ_HEAD(timers, timer);

/* The part that all kinds of loops have in common. Each kind has it as the first field. */
struct redlock_loop {
    const struct loop_methods *methods;
    struct timers waiting; /* in order of filed_at */
    struct timers soon;
    struct timers firing; /* due now */
    uint64_t wakes_at;    /* the instant of the wake that was requested; NANOS_NEVER: none */
    bool wakes_soon;      /* whether a wake_soon was requested */
    bool is_firing;
    unsigned users;      /* clients, the owner, and calls under way */
    unsigned generation; /* of the process that made the loop (io/fork.h) */
};

/* Initializes the common part of a loop with one user, after fork_init. */
void loop_init(redlock_loop *loop, const struct loop_methods *methods);

/* Adds a user; removes one, which ends the loop if it was the last. */
void loop_hold(redlock_loop *loop);
void loop_drop(redlock_loop *loop);

/*
 * Returns a loop on a libevent base, with one user and memory of `allocator`, which is copied.
 * NULL: out of memory.
 */
redlock_loop *loop_on_libevent(struct event_base *base, const redlock_allocator *allocator);

/* Returns whether this process is a fork() child of the one that made the loop. */
bool loop_is_inherited(const redlock_loop *loop);

/* ---- what the methods call: these run the client's code ---- */

/* Fires the timers that are due. Call it after the sockets that are ready have been read. */
void loop_fire(redlock_loop *loop);

/* Fires the timers that were set by timer_soon. */
void loop_fire_soon(redlock_loop *loop);

/* ---- timers ---- */

/* Initializes a timer that calls `on_time` from the loop. */
void timer_init(struct timer *timer, redlock_loop *loop, void (*on_time)(void *arg), void *arg);

/* Ends the timer, also from its own on_time. The timer may be all zeros. */
void timer_finish(struct timer *timer);

/* Sets the timer to fire once at `at`, which replaces any earlier setting. */
void timer_set(struct timer *timer, uint64_t at);

void timer_clear(struct timer *timer);

/* Fires the timer soon, after the events that the loop has already seen. */
void timer_soon(struct timer *timer);

/* ---- descriptors ---- */

enum watch_event { WATCH_READABLE = 1, WATCH_WRITABLE = 2 };

struct fd_watch {
    void (*on_ready)(void *arg, unsigned events); /* with those of the events that are watched */
    void *arg;
    redlock_loop *loop;
    int fd;
    unsigned events; /* mask: the events waited for */
    void *slot;      /* the methods' own */
};

/* Initializes a watch of `fd`, for no event yet. */
void fd_watch_init(struct fd_watch *watch, redlock_loop *loop, int fd,
                   void (*on_ready)(void *arg, unsigned events), void *arg);

/* Waits for a mask of events from now on. Returns false when refused: then nothing has changed. */
bool fd_watch_set(struct fd_watch *watch, unsigned events);

/* Waits for nothing from now on. Call it before the descriptor is closed. */
void fd_watch_finish(struct fd_watch *watch);

/* Calls on_ready for those of the events that are waited for. Called by the methods. */
void loop_ready(struct fd_watch *watch, unsigned events);

#endif
