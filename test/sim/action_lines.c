/*
 * Clocks and times are written in femtoseconds since the world began: in these units each clock
 * moves exactly by its rate, and no rounding exceeds the drift. A key that expires at E ms is there
 * until the clock shows E + 1 ms.
 */
#include "action_lines.h"

#include <inttypes.h>
#include <stdlib.h>

/* A time that no world reaches. */
#define FAR (INT64_MAX / 2)

/* ---- clocks ---- */

static int64_t femtos_of(const struct tempo *tempo, uint64_t at) {
    int64_t passed = (int64_t)(at - tempo->true_base);
    return (int64_t)(tempo->own_base - WORLD_BEGINNING) * FEMTOS + passed * (1000000 + tempo->ppm);
}

/* Follows a clock. A clock that was set to what it showed has only lost a fraction. */
static void follow(struct exact *exact, const struct tempo *tempo) {
    if (exact->tempo.own_base != tempo->own_base || exact->tempo.true_base != tempo->true_base) {
        int64_t lost =
            femtos_of(&exact->tempo, tempo->true_base) - femtos_of(tempo, tempo->true_base);
        exact->carry += llabs(lost) < 2 * FEMTOS ? lost : 0;
    }
    exact->tempo = *tempo;
}

static int64_t reading_of(struct exact *exact, const struct tempo *tempo, uint64_t now) {
    follow(exact, tempo);
    return femtos_of(tempo, now) + exact->carry;
}

static int64_t server_clock(struct actions *actions, unsigned server) {
    return reading_of(&actions->servers[server], &actions->network->servers[server].master.clock,
                      actions->network->world->now);
}

int64_t action_process_clock(struct actions *actions, const struct event_base *process) {
    return reading_of(&actions->processes[process->index], &process->clock,
                      actions->network->world->now);
}

int64_t action_process_instant(struct actions *actions, const struct event_base *process,
                               uint64_t own) {
    action_process_clock(actions, process);
    return (int64_t)(own - WORLD_BEGINNING) * FEMTOS + actions->processes[process->index].carry;
}

/* Returns the instant from which a key is gone. A slow clock's reading is rounded up. */
static int64_t expiry_femtos(struct actions *actions, unsigned server, int64_t expires_ms) {
    server_clock(actions, server);
    const struct exact *exact = &actions->servers[server];
    int64_t rounded = exact->tempo.ppm < 0 ? FEMTOS - 1 : 0;
    return expires_ms < 0 ? FAR
                          : (int64_t)((uint64_t)(expires_ms + 1) * MS - WORLD_BEGINNING) * FEMTOS -
                                rounded + exact->carry;
}

void action_begin(struct actions *actions, char kind) {
    const struct world *world = actions->network->world;
    if (actions->written_at != world->now) {
        actions->written_at = world->now;
        fputc('t', actions->file);
        for (unsigned i = 0; i < actions->network->server_count; i++) {
            fprintf(actions->file, " %" PRId64, server_clock(actions, i));
        }
        for (unsigned i = 0; i < actions->plan->processes; i++) {
            fprintf(actions->file, " %" PRId64, action_process_clock(actions, actions->bases[i]));
        }
        fputc('\n', actions->file);
    }
    fputc(kind, actions->file);
}

void action_end(struct actions *actions) {
    fputc('\n', actions->file);
}

void action_write_token(struct actions *actions, unsigned key, uint32_t number) {
    fprintf(actions->file, " %u %u.%" PRIu32, key,
            checker_by(actions)->tokens[number].process->index, number);
}

void action_write_place(struct actions *actions, unsigned server, int64_t expires_ms) {
    fprintf(actions->file, " %u %" PRId64, server, expiry_femtos(actions, server, expires_ms));
}
