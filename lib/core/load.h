/*
 * The load of a connection, commands that are sent and not answered, and its bounds. A connection
 * that refused commands for want of room reports when there is plenty again: when half is free.
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

/* The purpose of a command, and with it the share of the room that it may fill. */
enum load_class {
    LOAD_NEW,  /* takes a lock, or looks at one: three quarters */
    LOAD_HELD, /* keeps a held lock, or gives one back: all of the room */
    LOAD_OWN   /* a question of the client: no bound refuses it, and it is counted apart */
};

struct load {
    uint32_t commands;
    size_t bytes;
    bool has_refused; /* a command was refused since there last was plenty of room */
};

/*
 * Returns the room that commands of this class may fill: requests for locks must not keep held
 * locks from being renewed. A command that finds an empty connection may fill all of it.
 */
static inline struct load_bounds
load_share(const struct load *load, const struct load_bounds *bounds, enum load_class load_class) {
    bool is_whole = load_class == LOAD_HELD || load->commands == 0;
    return is_whole ? *bounds
                    : (struct load_bounds){.commands = bounds->commands - bounds->commands / 4,
                                           .bytes = bounds->bytes - bounds->bytes / 4};
}

/* Returns whether one more command has room; a refusal is noted for load_remove. */
static inline bool load_has_room(struct load *load, const struct load_bounds *bounds,
                                 enum load_class load_class, size_t length) {
    if (load->commands < bounds->commands / 2 && load->bytes + length <= bounds->bytes / 2) {
        return true; /* whatever the class: the least share is larger */
    }
    struct load_bounds share = load_share(load, bounds, load_class);
    if (load_class == LOAD_OWN ||
        (load->commands < share.commands && load->bytes + length <= share.bytes)) {
        return true;
    }
    load->has_refused = load->commands > 0; /* else the command is too long at any time */
    return false;
}

/* Adds a command that was sent. */
static inline void load_add(struct load *load, size_t length) {
    load->commands++;
    load->bytes += length;
}

/* Removes a command that has ended; returns whether a refusal is over: there is plenty of room. */
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
