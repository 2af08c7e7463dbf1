/*
 * The process's own clock. A process may be preempted at each reading: the rest of the world
 * proceeds for a while, and then the clock is read.
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

/* Worlds begin in 1970: the processes' wall clocks are far off. */
uint64_t clock_wall_us(void) {
    return (tempo_read(&running->clock, running->world->now) + running->wall_ahead) / 1000;
}

int64_t clock_wall_ahead(void) {
    return (int64_t)running->wall_ahead;
}
