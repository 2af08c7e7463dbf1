#include "lock/alarms.h"

#include "io/clock.h"

static void on_time(void *arg) {
    struct alarms *alarms = arg;
    struct wheel_slot due = LIST_HEAD_INITIALIZER(due);
    struct wheel_entry *alarm;
    wheel_expire(&alarms->wheel, clock_now(), &due);
    while ((alarm = LIST_FIRST(&due)) != NULL) {
        LIST_REMOVE(alarm, link);
        alarms->on_alarm(alarm);
    }
    timer_set(&alarms->timer, wheel_next(&alarms->wheel));
}

void alarms_init(struct alarms *alarms, redlock_loop *loop, wheel_instant *instant,
                 void (*on_alarm)(struct wheel_entry *alarm)) {
    alarms->on_alarm = on_alarm;
    wheel_init(&alarms->wheel, clock_now(), instant);
    timer_init(&alarms->timer, loop, on_time, alarms);
}

void alarms_finish(struct alarms *alarms) {
    timer_finish(&alarms->timer);
}
