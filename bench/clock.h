/* The time and CPU time of this process, and timers in seconds. */
#ifndef BENCH_CLOCK_H
#define BENCH_CLOCK_H

#include <event2/event.h>
#include <stdint.h>
#include <sys/time.h>

/* Returns CLOCK_MONOTONIC, which all processes of the machine share, in ns. */
uint64_t clock_now_ns(void);

/* Returns the instant in so many seconds. */
uint64_t clock_after_ns(double seconds);

/* Returns the user and system time of this process, without its children, in us. */
double clock_cpu_us(void);

/* Returns the user and system time of the calling thread, in us. */
double clock_thread_cpu_us(void);

/*
 * Creates an event loop with precise timers: those of libevent's default clock are exact to only 4
 * ms. Returns NULL on failure, after a message on stderr.
 */
struct event_base *clock_create_base(void);

/* Returns a duration for libevent and hiredis. */
struct timeval clock_interval(double seconds);

/* Creates a timer for clock_arm. Ends the process, after a message on stderr, if out of memory. */
struct event *clock_timer(struct event_base *base, event_callback_fn callback, void *arg);

/* Adds a timer. Ends the process, after a message on stderr, if libevent refuses. */
void clock_arm(struct event *timer, double seconds);

/* Serves the loop for so many seconds. */
void clock_pass(struct event_base *base, double seconds);

/*
 * Serves the timers and signals of a loop that does not wait, every 5 ms. *served_ns is the instant
 * at which it did last, 0 at first. Returns the present one.
 */
uint64_t clock_serve(struct event_base *base, uint64_t *served_ns);

/* An instant from which the number of cores in use is measured. */
struct clock_mark {
    uint64_t now_ns;
    double cpu_us;
};

struct clock_mark clock_mark(void);
double clock_cores(struct clock_mark from, struct clock_mark to);
double clock_seconds(struct clock_mark from, struct clock_mark to);

#endif
