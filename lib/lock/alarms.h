/*
 * The instants at which the locks of a client are to be woken, on one timer of the loop: renewals
 * of a million locks are as cheap to plan as those of ten.
 */
#ifndef REDLOCK_LOCK_ALARMS_H
#define REDLOCK_LOCK_ALARMS_H

#include "base/wheel.h"
#include "io/loop.h"

#include <stdbool.h>
#include <stdint.h>

struct alarms {
    struct wheel wheel;
    struct timer timer;
    void (*on_alarm)(struct wheel_entry *alarm); /* its instant has come */
};

/* Begins without alarms, which tell their `instant`. Returns false when out of memory. */
bool alarms_init(struct alarms *alarms, const struct loop *loop, wheel_instant *instant,
                 void (*on_alarm)(struct wheel_entry *alarm));
void alarms_finish(struct alarms *alarms);

/* Has the timer wake no later than at `at`. */
void alarms_arm(struct alarms *alarms, uint64_t at);

/*
 * Takes note that the instant of an alarm is `at` from now on; NANOS_NEVER: none. on_alarm is then
 * called from the loop, no earlier. May not be called from on_alarm.
 */
static inline void alarms_set(struct alarms *alarms, struct wheel_entry *alarm, uint64_t at) {
    wheel_set(&alarms->wheel, alarm, at);
    if (at < alarms->timer.at) {
        alarms_arm(alarms, at);
    }
}

/* Sets an alarm anew from on_alarm, which has been called for it. */
static inline void alarms_set_again(struct alarms *alarms, struct wheel_entry *alarm, uint64_t at) {
    wheel_set(&alarms->wheel, alarm, at);
}

/* Takes an alarm out, before its memory is freed. */
static inline void alarms_remove(struct alarms *alarms, struct wheel_entry *alarm) {
    wheel_remove(&alarms->wheel, alarm);
}

#endif
