/* Starts masters that cost next to nothing (null_main.c), in a process of their own. */
#ifndef BENCH_NULLS_H
#define BENCH_NULLS_H

#include <stddef.h>
#include <sys/types.h>

struct nulls;

/* Returns NULL, after a message on stderr, on failure. */
struct nulls *nulls_start(size_t count);

/* Ends the process, and waits for its end. Takes NULL. */
void nulls_finish(struct nulls *nulls);

/* Returns the URIs, which live as long as the masters. */
const char *const *nulls_uris(const struct nulls *nulls);

/* Returns the process that is all of the masters. */
pid_t nulls_pid(const struct nulls *nulls);

#endif
