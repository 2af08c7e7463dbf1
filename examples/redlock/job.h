/* The command line of `redlock run`. */
#ifndef JOB_H
#define JOB_H

#include "nodes.h"

#include <redlock.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What to do to the command when its lock cannot be renewed. */
enum job_on_lost { JOB_TERM, JOB_KILL, JOB_WARN };

struct job {
    struct nodes nodes;
    const char *const *keys;
    size_t key_count;
    char *const *command; /* NULL-terminated */

    uint64_t ttl_ms;
    uint64_t wait_ms; /* 0: one try */
    bool has_no_wait; /* whether --no-wait was given */
    uint64_t min_hold_ms;
    uint64_t grace_ms;  /* time between SIGTERM and SIGKILL */
    uint64_t margin_ms; /* remaining validity when SIGKILL is sent */
    uint32_t permits;
    bool is_fenced;
    bool watches_key;
    redlock_mode mode;

    enum job_on_lost on_lost;
    int busy_code; /* exit code if the lock is not acquired */
    const char *owner;
    bool is_json;

    sigset_t mask; /* signals blocked when the program started, for the command */
};

/* Reads the arguments, or exits with TOOL_USAGE. With --json all messages are events. */
void job_read(struct job *job, int argc, char **argv);

/* Fills in a request for the job's lock. */
void job_request(const struct job *job, redlock_request *request);

/* Returns the keys as one text that is safe for terminals. Valid until the next call. */
const char *job_title(const struct job *job);

#endif
