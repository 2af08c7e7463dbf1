/*
 * Stops some of the masters permanently (SIGSTOP: their connections stay) while locks are held, and
 * compares the client's CPU time over equal spans before and after.
 */
#ifndef BENCH_OUTAGE_H
#define BENCH_OUTAGE_H

#include <stdbool.h>
#include <stddef.h>

struct event_base;
struct masters;
struct outage;
struct loop_lag;

struct outage_settings {
    struct masters *masters;
    size_t stop;          /* number of masters to stop: the first ones */
    double after_s;       /* time from the start to the stop */
    double span_s;        /* length of each span, at most after_s */
    struct loop_lag *lag; /* excludes the time that the stop takes */
};

struct outage_result {
    double cores_before;
    double cores_stopped;
    double script_calls_before;  /* script calls per second of the last master, which stays up,
                                    before the stop */
    double script_calls_stopped; /* as script_calls_before, after the stop */
};

struct outage *outage_create(struct event_base *base, const struct outage_settings *settings);
void outage_destroy(struct outage *outage); /* NULL is allowed */

void outage_start(struct outage *outage);

/* Fills in *result. Returns false while the second span is not over. */
bool outage_result(const struct outage *outage, struct outage_result *result);

#endif
