/*
 * Distinguishes commands that clients send from commands that scripts call. INFO commandstats
 * counts both under one name; MONITOR distinguishes them, but slows the server down. So MONITOR
 * runs for a moment, to measure for each name the share of commands that clients sent, and the
 * counts of INFO are multiplied by these shares.
 *
 * A command that MONITOR did not show counts as not sent by clients: it is too rare to matter, or
 * comes from scripts that are (heartbeats). INFO is left out, because the benchmark itself sends
 * it.
 */
#ifndef BENCH_SHARES_H
#define BENCH_SHARES_H

#include <stddef.h>
#include <stdint.h>

#define SHARES_MAX 64
#define SHARES_NAME_SIZE 32

struct share {
    char name[SHARES_NAME_SIZE]; /* lower case, without a subcommand */
    uint64_t seen;
    uint64_t sent; /* number of those in `seen` that clients sent */
};

struct shares {
    size_t count;
    struct share list[SHARES_MAX];
};

/* Records one line of MONITOR. Ignores malformed lines, and names beyond SHARES_MAX. */
void shares_record(struct shares *shares, const char *line);

/* Returns the number of commands seen that clients sent. */
uint64_t shares_sent(const struct shares *shares);

/* Returns the number of commands in INFO commandstats that clients sent, by the shares. */
double shares_count(const struct shares *shares, const char *statistics);

#endif
