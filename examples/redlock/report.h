/*
 * The news of `redlock run` for people and programs, on stderr: words, or one JSON object a line.
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
    bool has_line;           /* a progress line stands on the terminal */
    bool is_asking;          /* an inspection is under way */
    uint32_t refusing;       /* mask of the nodes that refuse the login, or rights */
    uint64_t began_ms;       /* instant at which the waiting began */
    uint64_t reported_ms;    /* instant of the last progress line */
    uint64_t valid_until_ms; /* end of the validity that was known last, since 1970 */
};

void report_init(struct report *report, const struct job *job);

/*
 * Tells, on a terminal whose foreground the job has and not more than once a second, what the
 * request waits for.
 */
void report_begin_waiting(struct report *report, redlock_client *client);
void report_waiting(struct report *report);
void report_end_waiting(struct report *report);

/* Tells nothing more, and leaves the terminal as it is, for the shell. */
void report_leave_waiting(struct report *report);

/* Looks at the nodes, and returns whether so many refuse the login or rights that there can be no
 * quorum. */
bool report_is_hopeless(struct report *report, const redlock_client *client,
                        const redlock_lock *lock);

/* Tells why the lock was not acquired, and what to do. Returns the exit code. */
int report_not_acquired(struct report *report, const redlock_client *client,
                        const redlock_lock *lock, redlock_status status);

void report_acquired(struct report *report, const redlock_lock *lock);
void report_lost(struct report *report, const char *why);
/* Tells that the front has ended the command: `was_killed` as family_end() says. */
void report_killed(struct report *report, const char *why, bool was_killed);

void report_gone(struct report *report); /* no process of the command is left */
void report_ended(struct report *report, int code);

#endif
