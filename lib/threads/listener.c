#include "threads/listener.h"

#include "base/error.h"

#include <stddef.h>

void answer_give(struct answer *answer, redlock_status status, const char *why) {
    answer->status = status;
    if (status != REDLOCK_OK) {
        error_set(answer->error, status, "%s", why);
    }
    latch_open(&answer->latch);
}

redlock_status answer_await(struct answer *answer) {
    latch_wait(&answer->latch);
    return answer->status;
}

void listener_report(const struct listener *listener, redlock_mt_lock *lock, redlock_status status,
                     const char *why) {
    const struct listener due = *listener; /* the callback may end what holds it */
    if (due.answer != NULL) {
        answer_give(due.answer, status, why);
    } else if (due.call != NULL) {
        due.call(lock, status, why, due.arg);
    }
}
