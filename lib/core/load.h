/*
 * What a connection carries, commands sent and not answered, and the bounds of that. Who was
 * refused for want of room is told when there is plenty again: when half of it is free.
 */
#ifndef REDLOCK_CORE_LOAD_H
#define REDLOCK_CORE_LOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct load_bounds {
    uint32_t commands;
    size_t bytes;
};

struct load {
    uint32_t commands;
    size_t bytes;
    bool has_refused; /* since there last was plenty of room */
};

/* Whether one more command goes in. If not, that is remembered for load_remove. */
static inline bool load_has_room(struct load *load, const struct load_bounds *bounds,
                                 size_t length) {
    if (load->commands < bounds->commands && load->bytes + length <= bounds->bytes) {
        return true;
    }
    load->has_refused = load->commands > 0; /* else it is too long, and waits for nothing */
    return false;
}

static inline void load_add(struct load *load, size_t length) {
    load->commands++;
    load->bytes += length;
}

/* A command has ended. True when there is plenty of room again, after there had been none. */
static inline bool load_remove(struct load *load, const struct load_bounds *bounds, size_t length) {
    load->commands--;
    load->bytes -= length;
    if (!load->has_refused || load->commands > bounds->commands / 2 ||
        load->bytes > bounds->bytes / 2) {
        return false;
    }
    load->has_refused = false;
    return true;
}

#endif
