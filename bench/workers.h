/*
 * Processes forked by the benchmark, which start and stop their work together. They end at the
 * latest with the benchmark, however it ends.
 */
#ifndef BENCH_WORKERS_H
#define BENCH_WORKERS_H

#include <stdbool.h>
#include <stddef.h>

struct workers;

/*
 * Descriptors for a worker, which become readable (end of file) as the orders to begin and to end.
 */
struct workers_orders {
    int begin;
    int end;
};

/* Does the work of one process. Returns the process's exit status. */
typedef int workers_work(size_t index, struct workers_orders orders, void *arg);

/*
 * Forks `count` processes. Only one set of workers may exist at a time. Returns NULL on failure,
 * after a message on stderr.
 */
struct workers *workers_start(size_t count, workers_work *work, void *arg);

/* Ends the remaining processes by SIGKILL and waits for their end. NULL is allowed. */
void workers_destroy(struct workers *workers);

/* Order all workers to begin, and to end. */
void workers_begin(struct workers *workers);
void workers_end(struct workers *workers);

/*
 * Reaps workers that have ended. Returns false, after a message on stderr, if one failed, or ended
 * before the order.
 */
bool workers_reap(struct workers *workers);

/* Returns the number of workers that have not ended. */
size_t workers_running(const struct workers *workers);

#endif
