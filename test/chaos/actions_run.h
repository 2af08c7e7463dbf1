/*
 * From the logs of a run to its actions in the order of time: actions.c collects what the clocks
 * and the clients say, and prints all lines; actions_master.c follows the keys of a master.
 */
#ifndef REDLOCK_CHAOS_ACTIONS_RUN_H
#define REDLOCK_CHAOS_ACTIONS_RUN_H

#include "actions_log.h"
#include "chance.h"
#include "options.h"
#include "wire/token.h"

#include <stddef.h>
#include <stdint.h>

#define TOKEN_SIZE (TOKEN_LENGTH + 1)

/* A file in memory. */
struct log {
    char *bytes;
    size_t length;
};

/* A try or a renewal that a client has sent to a master, or a push that it has read. */
struct sent {
    char token[TOKEN_SIZE];
    uint32_t key, node;
    char kind; /* 'T', 'R' */
    long long ttl_ms;
    int64_t at;
    uint32_t client;
};

struct line;
struct clock_sample;

/* Times are those of CLOCK_BOOTTIME, in nanoseconds, unless their names say otherwise. */
struct run {
    const struct options *options;
    struct line *lines;
    size_t line_count;
    struct sent *sent; /* by token, then by time */
    size_t sent_count;
    struct clock_sample *samples;
    size_t sample_count;
    int64_t begun_at;
};

static inline int64_t ns_of_ms(int64_t ms) {
    return ms * (int64_t)NS_PER_MS;
}

/* Reads the frame at an offset, and copies its text if it is no command. Returns its end; 0: none.
 */
size_t log_frame(const struct log *log, size_t at, struct frame *frame, char text[256]);

/* Returns what the servers' clock showed, in nanoseconds of Unix time. */
int64_t run_unix(const struct run *run, int64_t at);

/* Returns when the servers' clock showed it, by what it showed around the instant `near`. */
int64_t run_instant(const struct run *run, int64_t unix_ns, int64_t near);

/* Returns the instant of the servers' clock from which a key is gone, since the run began. */
int64_t run_expiry(const struct run *run, int64_t expires_ms);

/* Returns the first that was sent under the token; NULL: none. Others follow in the list. */
const struct sent *run_first_sent(const struct run *run, const char *token);

/* Returns the name of a token: its client's number, and one of its own. Valid until the next call.
 */
const char *run_name(const struct run *run, const char *token);

void run_add_line(struct run *run, int64_t at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Adds the lines of a master, from its log. */
void actions_master(struct run *run, const struct log *log, uint32_t node);

#endif
