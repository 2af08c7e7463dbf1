/* Starts masters that use almost no CPU time (null_main.c), in a process of their own. */
#ifndef BENCH_NULLS_H
#define BENCH_NULLS_H

#include <stddef.h>
#include <sys/types.h>

struct nulls;

/* Starts `count` masters. Returns NULL on failure, after a message on stderr. */
struct nulls *nulls_start(size_t count);

/* Ends the process and waits for its end. NULL is allowed. */
void nulls_finish(struct nulls *nulls);

/* Returns the URIs, which live as long as the masters. */
const char *const *nulls_uris(const struct nulls *nulls);

/* Returns the process of all masters. */
pid_t nulls_pid(const struct nulls *nulls);

#endif
