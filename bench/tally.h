/* What the masters themselves count: a second opinion on what the client has had them do. */
#ifndef BENCH_TALLY_H
#define BENCH_TALLY_H

#include <stddef.h>
#include <stdint.h>

struct masters;

/*
 * Keys whose expiry one master has put off so far (PEXPIRE, also from scripts). A renewal does so
 * once for each key at each master; scarcely anything else does.
 */
uint64_t tally_renewals(struct masters *masters, size_t index);

/* Calls of scripts that one master has run so far. One call may renew many keys. */
uint64_t tally_script_calls(struct masters *masters, size_t index);

/* Keys of the benchmark's locks that one master still has; counters of fences are none. */
uint64_t tally_keys_left(struct masters *masters, size_t index);

#endif
