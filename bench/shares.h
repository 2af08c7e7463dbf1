/*
 * Tells the commands that clients send from the commands that scripts call. INFO commandstats
 * counts both under one name; MONITOR tells them apart, but slows the server down. So MONITOR is
 * watched for a moment, to learn for each name the share of commands that clients sent, and INFO is
 * multiplied by the shares.
 *
 * A command that was not seen counts as not sent: it is too rare to matter, or comes from scripts
 * that are (those of beats). Without INFO, which the benchmark itself sends.
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
    uint64_t sent; /* those of `seen` that clients sent */
};

struct shares {
    size_t count;
    struct share list[SHARES_MAX];
};

/* Records one line of MONITOR. A line of another form, and names beyond SHARES_MAX, are ignored. */
void shares_record(struct shares *shares, const char *line);

/* Returns the number of commands seen that clients sent. */
uint64_t shares_sent(const struct shares *shares);

/* Returns the number of commands in INFO commandstats that clients sent, by the shares. */
double shares_count(const struct shares *shares, const char *statistics);

#endif
