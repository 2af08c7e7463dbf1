/*
 * The messages of `redlock run` on stderr: text for people, or one JSON object per line for
 * programs.
 */
#ifndef REPORT_H
#define REPORT_H

#include "job.h"

#include <redlock.h>
#include <stdbool.h>
#include <stdint.h>

struct report {
    const struct job *job;
    redlock_client *client;  /* while waiting */
    bool has_line;           /* whether a progress line is on the terminal */
    bool is_asking;          /* whether an inspection is in progress */
    uint32_t refusing;       /* mask of the nodes that refuse the login or rights */
    uint64_t began_ms;       /* start of the wait */
    uint64_t reported_ms;    /* instant of the last progress line */
    uint64_t valid_until_ms; /* end of the last known validity, since 1970 */
};

void report_init(struct report *report, const struct job *job);

/*
 * Reports what the request waits for, at most once a second, and only on a terminal on which the
 * job is in the foreground.
 */
void report_begin_waiting(struct report *report, redlock_client *client);
void report_waiting(struct report *report);
void report_end_waiting(struct report *report);

/* Stops reporting, and leaves the terminal unchanged for the shell. */
void report_leave_waiting(struct report *report);

/* Checks the nodes. Returns whether too many refuse the login or rights for a quorum. */
bool report_is_hopeless(struct report *report, const redlock_client *client,
                        const redlock_lock *lock);

/* Reports why the lock was not acquired, and what to do. Returns the exit code. */
int report_not_acquired(struct report *report, const redlock_client *client,
                        const redlock_lock *lock, redlock_status status);

void report_acquired(struct report *report, const redlock_lock *lock);
void report_lost(struct report *report, const char *why);
/* Reports that the front has ended the command; `was_killed` is the result of family_end(). */
void report_killed(struct report *report, const char *why, bool was_killed);

void report_gone(struct report *report); /* no process of the command is left */
void report_ended(struct report *report, int code);

#endif
