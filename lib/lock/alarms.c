#include "lock/alarms.h"

#include "io/clock.h"

void alarms_arm(struct alarms *alarms, uint64_t at) {
    if (!timer_set(&alarms->timer, at)) {
        timer_soon(&alarms->timer); /* without memory: look again in each turn of the loop */
    }
}

static void on_time(void *arg) {
    struct alarms *alarms = arg;
    struct wheel_slot due = LIST_HEAD_INITIALIZER(due);
    struct wheel_entry *alarm;
    wheel_expire(&alarms->wheel, clock_now(), &due);
    while ((alarm = LIST_FIRST(&due)) != NULL) {
        LIST_REMOVE(alarm, link);
        alarms->on_alarm(alarm);
    }
    alarms_arm(alarms, wheel_next(&alarms->wheel));
}

bool alarms_init(struct alarms *alarms, const struct loop *loop, wheel_instant *instant,
                 void (*on_alarm)(struct wheel_entry *alarm)) {
    alarms->on_alarm = on_alarm;
    wheel_init(&alarms->wheel, clock_now(), instant);
    return timer_init(&alarms->timer, loop, on_time, alarms);
}

void alarms_finish(struct alarms *alarms) {
    timer_finish(&alarms->timer);
}
