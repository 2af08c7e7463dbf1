/*
 * How long a node takes to answer, measured, and the timeout that follows from it: the smoothed
 * time, and four times its mean deviation (RFC 6298, sections 2.1 to 2.3), but at least a margin
 * (as TCP has a least timeout).
 */
#ifndef REDLOCK_CORE_ANSWER_TIME_H
#define REDLOCK_CORE_ANSWER_TIME_H

#include <stdint.h>

/* In nanoseconds; a smoothed time of 0: no answer was measured yet. */
struct answer_time {
    uint64_t smoothed;
    uint64_t deviation;
};

/*
 * The margin for a node whose vote can still complete a quorum: a packet that is lost once is sent
 * again within 200 ms. The decisions come from the others, so the margin costs nothing.
 */
#define ANSWER_MARGIN (UINT64_C(250) * 1000 * 1000)

/* The margin when another node has denied: a split vote is retried, and the sooner the better. */
#define ANSWER_MARGIN_SPLIT (UINT64_C(50) * 1000 * 1000)

/* The timeout before the first answer (RFC 6298, 2.1), and the longest. */
#define ANSWER_TIMEOUT_FIRST (UINT64_C(1000) * 1000 * 1000)
#define ANSWER_TIMEOUT_MAX (UINT64_C(5000) * 1000 * 1000)

/* Returns the time that nearly all answers take; 0: none was measured yet. */
static inline uint64_t answer_time_usual(const struct answer_time *time) {
    return time->smoothed != 0 ? time->smoothed + 4 * time->deviation : 0;
}

/* Records the time that an answer took. */
void answer_time_record(struct answer_time *time, uint64_t took);

/* Returns the time after which the next answer is late. */
uint64_t answer_time_timeout(const struct answer_time *time, uint64_t margin);

#endif
