/* The limit of this process's file descriptors. */
#ifndef BENCH_DESCRIPTORS_H
#define BENCH_DESCRIPTORS_H

#include <stddef.h>

/* Raises the limit as far as permitted, also for processes started later. Returns the limit. */
size_t descriptors_raise_limit(void);

/* Returns the limit. */
size_t descriptors_limit(void);

#endif
