/* The time and CPU time of this process, and timers in seconds. */
#ifndef BENCH_CLOCK_H
#define BENCH_CLOCK_H

#include <event2/event.h>
#include <stdint.h>
#include <sys/time.h>

/* Returns CLOCK_MONOTONIC, which all processes of the machine share, in ns. */
uint64_t clock_now_ns(void);

/* Returns the user and system time of this process, without its children, in us. */
double clock_cpu_us(void);

/* Returns the user and system time of the calling thread, in us. */
double clock_thread_cpu_us(void);

/*
 * Makes an event loop with precise timers: those of libevent's default clock are exact to 4 ms
 * only. Returns NULL, after a message on stderr, on failure.
 */
struct event_base *clock_create_base(void);

/* Returns a duration as libevent and hiredis take it. */
struct timeval clock_interval(double seconds);

/* Makes a timer for clock_arm. Ends the process, after a message on stderr, without memory. */
struct event *clock_timer(struct event_base *base, event_callback_fn callback, void *arg);

/* Adds a timer. Ends the process, after a message on stderr, when libevent refuses. */
void clock_arm(struct event *timer, double seconds);

/* An instant, to tell the number of cores in use since then. */
struct clock_mark {
    uint64_t now_ns;
    double cpu_us;
};

struct clock_mark clock_mark(void);
double clock_cores(struct clock_mark from, struct clock_mark to);
double clock_seconds(struct clock_mark from, struct clock_mark to);

#endif
