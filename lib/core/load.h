/*
 * The load of a connection (its commands that were sent and not answered), and its bounds. A
 * connection that has refused commands for lack of room reports when half of the room is free
 * again.
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

/* The purpose of a command, which decides the share of the room that it may fill. */
enum load_class {
    LOAD_NEW,  /* takes a lock, or looks at one: may fill 3/4 */
    LOAD_HELD, /* renews or releases a lock: may fill all of the room */
    LOAD_OWN   /* a command of the client's own: never refused, counted apart */
};

struct load {
    uint32_t commands;
    size_t bytes;
    bool has_refused; /* a command was refused since half of the room was last free */
};

/*
 * Returns the room that commands of this class may fill: requests for locks must not keep held
 * locks from being renewed. A command on an idle connection may fill all of it.
 */
static inline struct load_bounds
load_share(const struct load *load, const struct load_bounds *bounds, enum load_class load_class) {
    bool is_whole = load_class == LOAD_HELD || load->commands == 0;
    return is_whole ? *bounds
                    : (struct load_bounds){.commands = bounds->commands - bounds->commands / 4,
                                           .bytes = bounds->bytes - bounds->bytes / 4};
}

/* Returns whether one more command has room. Records a refusal, for load_remove. */
static inline bool load_has_room(struct load *load, const struct load_bounds *bounds,
                                 enum load_class load_class, size_t length) {
    if (load->commands < bounds->commands / 2 && load->bytes + length <= bounds->bytes / 2) {
        return true; /* room for any class: the smallest share is 3/4 */
    }
    struct load_bounds share = load_share(load, bounds, load_class);
    if (load_class == LOAD_OWN ||
        (load->commands < share.commands && load->bytes + length <= share.bytes)) {
        return true;
    }
    /* A command that is too long for an idle connection will not fit later either. */
    load->has_refused = load->commands > 0;
    return false;
}

/*
 * Returns whether a request's first command may be sent. Requests beyond a fraction of the room, or
 * `most` commands, wait: the server answers in order, so what is sent later waits for all of them
 * there. Records a refusal, for load_remove.
 */
static inline bool load_admits(struct load *load, const struct load_bounds *bounds, uint32_t most) {
    bool has_room = load->commands <= bounds->commands / 8 && load->commands <= most &&
                    load->bytes <= bounds->bytes / 8;
    load->has_refused |= !has_room;
    return has_room;
}

/* Adds a command that was sent. */
static inline void load_add(struct load *load, size_t length) {
    load->commands++;
    load->bytes += length;
}

/* Removes a command that has ended. Returns whether a refusal is over: half of the room is free. */
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
