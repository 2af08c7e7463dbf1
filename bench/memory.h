/* Memory of the benchmark. The program ends, after a message on stderr, where there is none. */
#ifndef BENCH_MEMORY_H
#define BENCH_MEMORY_H

#include <stddef.h>

/* Returns zeroed memory for so many objects; the caller frees it. */
void *memory_take(size_t count, size_t size);

/* Ends the program for want of memory. */
_Noreturn void memory_end(void);

#endif
