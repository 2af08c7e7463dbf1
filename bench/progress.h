/* A line on the terminal that tells how far a run has come. */
#ifndef BENCH_PROGRESS_H
#define BENCH_PROGRESS_H

#include <stddef.h>

struct event_base;
struct progress;

/* Writes the line, without a newline. */
typedef void progress_write(void *arg, char *line, size_t size);

/*
 * Shows the line on stderr, twice a second, as long as the loop runs. Returns NULL, and shows
 * nothing, if stderr is no terminal, or without memory.
 */
struct progress *progress_create(struct event_base *base, progress_write *write, void *arg);

/* Removes the line. Takes NULL. */
void progress_destroy(struct progress *progress);

#endif
