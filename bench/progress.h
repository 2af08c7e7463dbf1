/* A line on the terminal that shows the progress of a run. */
#ifndef BENCH_PROGRESS_H
#define BENCH_PROGRESS_H

#include <stddef.h>

struct event_base;
struct progress;

/* Writes the line, without a newline. */
typedef void progress_write(void *arg, char *line, size_t size);

/*
 * Shows the line on stderr, twice a second, while the loop runs. Returns NULL and shows nothing if
 * stderr is not a terminal, or when out of memory.
 */
struct progress *progress_create(struct event_base *base, progress_write *write, void *arg);

/* Removes the line. NULL is allowed. */
void progress_destroy(struct progress *progress);

#endif
