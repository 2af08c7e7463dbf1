/*
 * The process's own clock. A reading is also where a process may be preempted: the rest of the
 * world goes on for a while, and the reading is taken after that.
 */
#include "io/clock.h"

#include "process.h"

uint64_t clock_now(void) {
    struct event_base *process = running;
    process_may_be_preempted(process);
    return tempo_read(&process->clock, process->world->now);
}

uint64_t clock_glance(void) {
    return tempo_read(&running->clock, running->world->now);
}

/* Worlds begin in 1970. Nobody has set the processes' wall clocks well. */
uint64_t clock_wall_us(void) {
    return (tempo_read(&running->clock, running->world->now) + running->wall_ahead) / 1000;
}

int64_t clock_wall_ahead(void) {
    return (int64_t)running->wall_ahead;
}
