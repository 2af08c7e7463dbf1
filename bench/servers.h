/* The masters that the benchmark has started: real masters or null masters. */
#ifndef BENCH_SERVERS_H
#define BENCH_SERVERS_H

#include <stdbool.h>
#include <stddef.h>

struct masters;
struct servers;

/*
 * Starts `count` masters; real ones admit `connections` connections each, 0: their default. Returns
 * NULL on failure, after a message on stderr.
 */
struct servers *servers_start(size_t count, bool null_masters, size_t connections);
void servers_finish(struct servers *servers); /* NULL is allowed */

size_t servers_count(const struct servers *servers);

/* Returns the URIs, which live as long as the masters. */
const char *const *servers_uris(const struct servers *servers);

/* Returns the real masters; NULL if `servers` is NULL, or these are null masters. */
struct masters *servers_masters(const struct servers *servers);

/*
 * Returns the CPU time of all masters so far, user and system, in us. NAN if `servers` is NULL, or
 * a time cannot be read.
 */
double servers_cpu_us(const struct servers *servers);

#endif
