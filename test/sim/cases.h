/*
 * The tables of redlock-sim-cases: lists of commands, each on keys of its own, which a simulated
 * and a real master must answer alike.
 */
#ifndef REDLOCK_SIM_CASES_H
#define REDLOCK_SIM_CASES_H

#include <redlock.h>
#include <stddef.h>

#define STEPS_MAX 16
#define WORDS_OF_STEP_MAX 24

/* Placeholders for values that a table cannot hold. */
#define RELEASE_TEXT "<release text>"
#define RELEASE_SHA "<release sha>"
#define RENEW_TEXT "<renew text>"
#define RENEW_SHA "<renew sha>"
#define STAY_TEXT "<stay text>"
#define STAY_SHA "<stay sha>"
#define TAKE_TEXT "<take text>"
#define TAKE_SHA "<take sha>"
#define KEEP_TEXT "<keep text>"
#define KEEP_SHA "<keep sha>"
#define PERMIT_TEXT "<permit text>"
#define PERMIT_SHA "<permit sha>"
#define SHARE_TEXT "<share text>"
#define SHARE_SHA "<share sha>"
#define SHARE_KEEP_TEXT "<share keep text>"
#define SHARE_KEEP_SHA "<share keep sha>"
#define SHARE_END_TEXT "<share end text>"
#define SHARE_END_SHA "<share end sha>"
#define WRITE_TEXT "<write text>"
#define WRITE_SHA "<write sha>"
#define WRITE_FENCED_TEXT "<write fenced text>"
#define WRITE_FENCED_SHA "<write fenced sha>"
#define BEAT_TEXT "<beat text>"
#define BEAT_SHA "<beat sha>"
#define PROBE_TEXT "<probe text>"
#define PROBE_SHA "<probe sha>"
#define QUEUE_TEXT "<queue text>"
#define QUEUE_SHA "<queue sha>"
#define QUEUE_SET_TEXT "<queue set text>"
#define QUEUE_SET_SHA "<queue set sha>"
#define LEAVE_TEXT "<leave text>"
#define LEAVE_SHA "<leave sha>"
#define SHARE_QUEUE_TEXT "<share queue text>"
#define SHARE_QUEUE_SHA "<share queue sha>"
#define SHARE_LEAVE_TEXT "<share leave text>"
#define SHARE_LEAVE_SHA "<share leave sha>"
#define QUEUE_PERMIT_TEXT "<queue permit text>"
#define QUEUE_PERMIT_SHA "<queue permit sha>"
#define PASS_TEXT "<pass text>"
#define PASS_SHA "<pass sha>"
#define PERMIT_END_TEXT "<permit end text>"
#define PERMIT_END_SHA "<permit end sha>"
#define MARKER REDLOCK_MARKER_KEY
#define EXPIRE "<wait until it has expired>" /* followed by the key */

#define A "0123456789012345678901234567890123456789"
#define B "abcdefabcdefabcdefabcdefabcdefabcdefabcd"
#define LONG "3000000"
#define LONGER "3600000"

/* A step that fills a key's queue: its key, the number of waiters, their channel, their form. */
#define CROWD "<crowd>"

/*
 * A step that sends PASS until nothing is left to pass on: the key, the form, and the maximum
 * number of calls.
 */
#define PASS_ON "<pass on>"

/*
 * The only channel with a subscriber by name, and a channel without one. Another client subscribes
 * to all channels by a pattern.
 */
#define HEARD "redlock:heard"
#define UNHEARD "redlock:unheard"

struct test_case {
    const char *name;
    const char *steps[STEPS_MAX][WORDS_OF_STEP_MAX];
};

/* Steps used by more than one table. */
#define PERMIT(key, token, fence, permits)                                                         \
    { "EVAL", PERMIT_TEXT, "1", key, token, LONG, fence, LONGER, permits }
#define SHARE(value, ttl)                                                                          \
    { "EVAL", SHARE_TEXT, "3", "k", "k::readers", "k::writer", value, ttl, "1" }
#define SHARE_RELEASE(value)                                                                       \
    { "EVAL", SHARE_END_TEXT, "2", "k", "k::readers", value }
#define WRITE(token, ttl, intent)                                                                  \
    { "EVAL", WRITE_TEXT, "3", "k", "k::readers", "k::writer", token, ttl, intent }
#define READERS                                                                                    \
    { "ZCOUNT", "k::readers", "-inf", "+inf" }
#define COUNTER                                                                                    \
    { "GET", "k::fence" }

/* Cases of locks without waiters (cases_locks.c); of waiters (cases_queues.c). */
extern const struct test_case lock_cases[];
extern const size_t lock_case_count;
extern const struct test_case queue_cases[];
extern const size_t queue_case_count;

#endif
