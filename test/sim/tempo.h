/* A clock with its own rate, which may be set: maps true time to its reading. */
#ifndef REDLOCK_SIM_TEMPO_H
#define REDLOCK_SIM_TEMPO_H

#include <stdint.h>

struct tempo {
    uint64_t true_base; /* true time of a reference reading */
    uint64_t own_base;  /* the reading at that time */
    int64_t ppm;        /* excess of its rate over that of true time, in millionths */
};

static inline uint64_t tempo_read(const struct tempo *tempo, uint64_t now) {
    int64_t passed = (int64_t)(now - tempo->true_base);
    return tempo->own_base + (uint64_t)(passed + passed * tempo->ppm / 1000000);
}

/*
 * Returns the first true time at which the clock reads at least `own`, if it is not set meanwhile.
 */
static inline uint64_t tempo_true(const struct tempo *tempo, uint64_t own) {
    if (own <= tempo->own_base) {
        return tempo->true_base;
    }
    int64_t passed = (int64_t)(own - tempo->own_base);
    if (passed > INT64_MAX / 2000000) {
        return UINT64_MAX;
    }
    uint64_t at = tempo->true_base + (uint64_t)(passed * 1000000 / (1000000 + tempo->ppm));
    while (tempo_read(tempo, at) < own) {
        at++;
    }
    return at;
}

/* Sets the clock forward or back, and changes its rate. */
static inline void tempo_set(struct tempo *tempo, uint64_t now, int64_t by, int64_t ppm) {
    tempo->own_base = tempo_read(tempo, now) + (uint64_t)by;
    tempo->true_base = now;
    tempo->ppm = ppm;
}

#endif
