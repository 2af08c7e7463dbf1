/*
 * The process's own clock. A reading is also where a process may be preempted: the rest of the
 * world goes on for a while, and the reading is taken after that.
 */
#include "io/clock.h"

#include "process.h"

uint64_t clock_now(void) {
    struct event_base *process = running;
    struct world *world = process->world;
    if (process->is_running && !world->is_nested && rng_chance(&world->rng, process->preemptions)) {
        uint64_t until = world->now + rng_below(&world->rng, process->preempted_for);
        TRACE(world, "process %u is preempted", process->index);
        process->on_check(process, true);
        world->is_nested = true;
        running = NULL;
        world_run_until(world, until);
        running = process;
        process->on_check(process, true);
        world->is_nested = false;
        TRACE(world, "process %u goes on", process->index);
    }
    return tempo_read(&process->clock, world->now);
}

/* Worlds begin in 1970. Nobody has set the processes' wall clocks well. */
uint64_t clock_wall_us(void) {
    return (tempo_read(&running->clock, running->world->now) + running->wall_ahead) / 1000;
}
