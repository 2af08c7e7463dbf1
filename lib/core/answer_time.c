#include "core/answer_time.h"

#include "base/nanos.h"

void answer_time_record(struct answer_time *time, uint64_t took) {
    uint64_t counted = took > 0 ? took : 1; /* 0 means none */
    if (time->smoothed == 0) {
        *time = (struct answer_time){.smoothed = counted, .deviation = counted / 2};
        return;
    }
    uint64_t off = counted > time->smoothed ? counted - time->smoothed : time->smoothed - counted;
    /* RFC 6298, 2.3, with alpha 1/8 and beta 1/4: the deviation first, by the old smoothed time. */
    time->deviation = time->deviation - time->deviation / 4 + off / 4;
    time->smoothed = time->smoothed - time->smoothed / 8 + counted / 8;
    time->smoothed += time->smoothed == 0;
}

uint64_t answer_time_timeout(const struct answer_time *time, uint64_t margin) {
    if (time->smoothed == 0) {
        return ANSWER_TIMEOUT_FIRST;
    }
    uint64_t timeout = nanos_max(answer_time_usual(time), nanos_add(time->smoothed, margin));
    return nanos_min(timeout, ANSWER_TIMEOUT_MAX);
}
