/* Reads the masters' own counts, as a check of the client's. */
#ifndef BENCH_TALLY_H
#define BENCH_TALLY_H

#include <stddef.h>
#include <stdint.h>

struct masters;

/* Counts of one master, since its start. */
struct tally {
    /*
     * How often it has extended a key's expiry (PEXPIRE, also from scripts). A renewal does this
     * once for each key at each master; few other commands do.
     */
    uint64_t renewals;
    uint64_t script_calls; /* number of script calls, each of which may renew many keys */
    uint64_t script_us;    /* the time that they took */
};

struct tally tally_read(struct masters *masters, size_t index);

/*
 * Returns the number of keys of the benchmark's locks that one master still has, without the
 * counters of fences.
 */
uint64_t tally_keys_left(struct masters *masters, size_t index);

/*
 * Returns the number of entries in the wait queues of the benchmark's keys at one master.
 */
uint64_t tally_queued(struct masters *masters, size_t index);

/* What one master has done since it started. */
struct tally_load {
    double commands; /* also those that scripts call */
    double bytes_in;
    double bytes_out;
    double cpu_us; /* user and system */
};

void tally_read_load(struct masters *masters, size_t index, struct tally_load *load);

/*
 * Stores the number of the clients' connections at one master, and the mean of the master's memory
 * for each (tot-mem in CLIENT LIST); NAN if there is none.
 */
void tally_connections(struct masters *masters, size_t index, double *count, double *bytes);

#endif
