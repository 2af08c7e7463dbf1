/*
 * The news of `redlock run` for people and programs, on stderr: words, or one JSON object a line.
 */
#ifndef NEWS_H
#define NEWS_H

#include "job.h"

#include <redlock.h>
#include <stdbool.h>
#include <stdint.h>

struct news {
    const struct job *job;
    redlock_client *client;  /* while waiting */
    bool has_line;           /* a progress line stands on the terminal */
    bool is_asking;          /* an inspection is under way */
    uint32_t refusing;       /* mask of the nodes that refuse the login, or rights */
    uint64_t began_ms;       /* instant at which the waiting began */
    uint64_t told_ms;        /* instant of the last progress line */
    uint64_t valid_until_ms; /* end of the validity that was known last, since 1970 */
};

void news_init(struct news *news, const struct job *job);

/*
 * Tells, on a terminal whose foreground the job has and not more than once a second, what the
 * request waits for.
 */
void news_begin_waiting(struct news *news, redlock_client *client);
void news_waiting(struct news *news);
void news_end_waiting(struct news *news);

/* Tells nothing more, and leaves the terminal as it is, for the shell. */
void news_leave_waiting(struct news *news);

/* Looks at the nodes, and returns whether so many refuse the login or rights that there can be no
 * quorum. */
bool news_is_hopeless(struct news *news, const redlock_client *client, const redlock_lock *lock);

/* Tells why the lock was not acquired, and what to do. Returns the exit code. */
int news_not_acquired(struct news *news, const redlock_client *client, const redlock_lock *lock,
                      redlock_status status);

void news_acquired(struct news *news, const redlock_lock *lock);
void news_lost(struct news *news, const char *why);
/* Tells that the front has ended the command: `was_killed` as family_end() says. */
void news_killed(struct news *news, const char *why, bool was_killed);

void news_gone(struct news *news); /* no process of the command is left */
void news_ended(struct news *news, int code);

#endif
