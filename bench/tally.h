/* Reads the masters' own counts, as a check of the client's. */
#ifndef BENCH_TALLY_H
#define BENCH_TALLY_H

#include <stddef.h>
#include <stdint.h>

struct masters;

/*
 * Returns how often one master has extended a key's expiry so far (PEXPIRE, also from scripts). A
 * renewal does this once for each key at each master; few other commands do.
 */
uint64_t tally_renewals(struct masters *masters, size_t index);

/*
 * Returns the number of script calls that one master has run so far. One call may renew many keys.
 */
uint64_t tally_script_calls(struct masters *masters, size_t index);

/*
 * Returns the number of keys of the benchmark's locks that one master still has, without the
 * counters of fences.
 */
uint64_t tally_keys_left(struct masters *masters, size_t index);

#endif
