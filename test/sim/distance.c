#include "distance.h"

struct distance distance_draw(struct rng *rng) {
    static const uint64_t even[] = {MS / 5, 5 * MS, 50 * MS, 150 * MS, 300 * MS};
    struct distance distance = {.near = MS, .far = 80 * MS};
    if (rng_chance(rng, 700)) {
        distance.near = distance.far = even[rng_below(rng, sizeof(even) / sizeof(even[0]))];
    }
    distance.has_far_nodes = rng_chance(rng, 500);
    distance.jitter = rng_chance(rng, 300) ? 0 : rng_between(rng, 0, 20 * MS);
    distance.late = rng_chance(rng, 500) ? 10 : 0;
    return distance;
}

uint64_t distance_round_trip(const struct distance *distance) {
    return distance->far + 2 * distance->jitter + (distance->late > 0 ? 2 * LATE : 0);
}

void distance_set(const struct distance *distance, struct network *network, unsigned processes) {
    struct rng *rng = &network->world->rng;
    for (unsigned j = 0; j < network->server_count; j++) {
        bool is_far = rng_chance(rng, 500);
        for (unsigned i = 0; i < processes; i++) {
            bool is_far_here = distance->has_far_nodes ? is_far : rng_chance(rng, 500);
            network->paths[i][j] =
                (struct path){.latency = (is_far_here ? distance->far : distance->near) / 2,
                              .jitter = distance->jitter,
                              .late = distance->late};
        }
    }
}
