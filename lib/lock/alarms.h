/*
 * The instants at which the locks of a client must be woken, on one timer of the loop. To plan a
 * renewal costs the same whether there are ten locks or a million.
 */
#ifndef REDLOCK_LOCK_ALARMS_H
#define REDLOCK_LOCK_ALARMS_H

#include "base/wheel.h"
#include "io/loop.h"

#include <stdint.h>

struct alarms {
    struct wheel wheel;
    struct timer timer;
    void (*on_alarm)(struct wheel_entry *alarm); /* callback for an alarm that is due */
};

/* Begins without alarms; `instant` returns the instant of each. */
void alarms_init(struct alarms *alarms, redlock_loop *loop, wheel_instant *instant,
                 void (*on_alarm)(struct wheel_entry *alarm));
void alarms_finish(struct alarms *alarms);

/*
 * Records that the instant of an alarm is `at` from now on; NANOS_NEVER: none. on_alarm follows
 * from the loop, not before `at`. Must not be called from on_alarm.
 */
static inline void alarms_set(struct alarms *alarms, struct wheel_entry *alarm, uint64_t at) {
    wheel_set(&alarms->wheel, alarm, at);
    if (at < alarms->timer.at) {
        timer_set(&alarms->timer, at);
    }
}

/* Sets an alarm again, from inside the on_alarm call for it. */
static inline void alarms_set_again(struct alarms *alarms, struct wheel_entry *alarm, uint64_t at) {
    wheel_set(&alarms->wheel, alarm, at);
}

/* Removes an alarm, before its memory is freed. */
static inline void alarms_remove(struct alarms *alarms, struct wheel_entry *alarm) {
    wheel_remove(&alarms->wheel, alarm);
}

#endif
