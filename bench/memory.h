/* Memory of the benchmark. When out of memory, the program ends after a message on stderr. */
#ifndef BENCH_MEMORY_H
#define BENCH_MEMORY_H

#include <stddef.h>

/* Returns zeroed memory for `count` objects of `size` bytes, which the caller frees. */
void *memory_take(size_t count, size_t size);

/* Ends the program because it is out of memory. */
_Noreturn void memory_end(void);

#endif
