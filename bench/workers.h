/*
 * Processes forked by the benchmark, which begin and end their work together. They end at the
 * latest with the benchmark, however it ends.
 */
#ifndef BENCH_WORKERS_H
#define BENCH_WORKERS_H

#include <stdbool.h>
#include <stddef.h>

struct workers;

/*
 * Descriptors for a worker, which become readable (end of file) when the workers are to begin, and
 * to end.
 */
struct workers_orders {
    int begin;
    int end;
};

/* Does the work of one process. Returns its exit status. */
typedef int workers_work(size_t index, struct workers_orders orders, void *arg);

/*
 * Forks `count` processes. Only one set of workers may exist at a time. Returns NULL, after a
 * message on stderr, on failure.
 */
struct workers *workers_start(size_t count, workers_work *work, void *arg);

/* Ends the processes that still run, by SIGKILL, and waits for their end. Takes NULL. */
void workers_destroy(struct workers *workers);

/* Tell all workers to begin, and to end. */
void workers_begin(struct workers *workers);
void workers_end(struct workers *workers);

/*
 * Takes note of the workers that have ended. Returns false, after a message on stderr, if one ended
 * badly, or before it was told to.
 */
bool workers_reap(struct workers *workers);

/* Returns the number of workers that have not ended. */
size_t workers_running(const struct workers *workers);

#endif
