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

/* What a command is for, and how much of the room is its. */
enum load_claim {
    LOAD_NEW,  /* to take a lock, or to look at one: three quarters */
    LOAD_HELD, /* to keep one that is held, or to give one back: all of it */
    LOAD_OWN   /* the client's own question: no bound refuses it, and it is counted apart */
};

struct load {
    uint32_t commands;
    size_t bytes;
    bool has_refused; /* since there last was plenty of room */
};

/*
 * Returns what such commands may fill. A crowd that wants locks must not keep those that are held
 * from being renewed. One that finds nothing before it may be as long as any.
 */
static inline struct load_bounds
load_share(const struct load *load, const struct load_bounds *bounds, enum load_claim claim) {
    bool is_whole = claim == LOAD_HELD || load->commands == 0;
    return is_whole ? *bounds
                    : (struct load_bounds){.commands = bounds->commands - bounds->commands / 4,
                                           .bytes = bounds->bytes - bounds->bytes / 4};
}

/* Whether one more command goes in. If not, that is remembered for load_remove. */
static inline bool load_has_room(struct load *load, const struct load_bounds *bounds,
                                 enum load_claim claim, size_t length) {
    struct load_bounds share = load_share(load, bounds, claim);
    if (claim == LOAD_OWN ||
        (load->commands < share.commands && load->bytes + length <= share.bytes)) {
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
