#include "actions.h"

#include "action_lines.h"

#include <inttypes.h>
#include <stdlib.h>

/* Returns why a world has more than the model knows of; NULL: it has not. */
static const char *left_out(const struct plan *plan) {
    if (plan->has_readers) {
        return "readers";
    }
    return plan->has_jumps ? "servers' clocks jump" : NULL;
}

/* Returns the age at which a memory counts, in fs. Without guards nodes stay away for longer. */
static int64_t age_of(const struct plan *plan) {
    int64_t most = (int64_t)(plan->options.max_ttl_ms * MS) * FEMTOS;
    return plan->options.guards != REDLOCK_GUARDS_OFF ? most : most / 4 * 5;
}

void actions_begin(struct network *network, const struct plan *plan, const char *profile,
                   FILE *file) {
    struct world *world = network->world;
    const char *why = left_out(plan);
    if (file == NULL) {
        return;
    }
    int64_t fast = 1000000;
    int64_t slow = fast - (int64_t)(plan->options.drift * (double)fast + 0.5);
    /* The grain is that of the library, less what the rounding of its clock readings may add. */
    fprintf(file, "w %s %" PRIu64 " %s %u %u %u %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 "\n",
            profile, world->seed, cause_name(plan->cause), plan->keys, plan->nodes,
            plan->processes + 1, slow, fast, (int64_t)(2 * MS - 1000) * FEMTOS, age_of(plan));
    if (why != NULL) {
        fprintf(file, "o %s\n", why);
        return;
    }
    struct actions *actions = calloc(1, sizeof(*actions));
    if (actions == NULL) {
        abort();
    }
    actions->file = file;
    actions->network = network;
    actions->plan = plan;
    actions->written_at = world->now;
    for (unsigned i = 0; i < SERVERS_MAX; i++) {
        actions->servers[i].tempo = network->servers[i].master.clock;
        for (unsigned key = 0; key < KEYS_MAX; key++) {
            actions->shadows[i][key].seen.token = actions->shadows[i][key].model.token = NO_TOKEN;
        }
    }
    world->actions = actions;
}

void actions_process(const struct event_base *process) {
    struct actions *actions = actions_of(process->world);
    if (actions != NULL) {
        actions->bases[process->index] = process;
        actions->processes[process->index].tempo = process->clock;
    }
}

void actions_end(struct world *world) {
    free(world->actions);
    world->actions = NULL;
}
