#include "io/latch.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

/* AWAITED: a thread sleeps, or is about to. Without one, opening needs no system call. */
enum latch_state { LATCH_CLOSED, LATCH_AWAITED, LATCH_OPEN };

/* syscall() is no cancellation point, unlike the waits of pthread. */
static void futex(struct latch *latch, int operation, uint32_t value) {
    int before = errno;
    syscall(SYS_futex, &latch->state, operation, value, NULL, NULL, 0);
    errno = before;
}

void latch_open(struct latch *latch) {
    if (atomic_exchange_explicit(&latch->state, LATCH_OPEN, memory_order_acq_rel) ==
        LATCH_AWAITED) {
        /* The latch may be gone by now: the kernel only compares its address. */
        futex(latch, FUTEX_WAKE_PRIVATE, INT_MAX);
    }
}

void latch_wait(struct latch *latch) {
    uint32_t state = LATCH_CLOSED;
    atomic_compare_exchange_strong_explicit(&latch->state, &state, LATCH_AWAITED,
                                            memory_order_acquire, memory_order_acquire);
    while (atomic_load_explicit(&latch->state, memory_order_acquire) != LATCH_OPEN) {
        futex(latch, FUTEX_WAIT_PRIVATE, LATCH_AWAITED);
    }
}
