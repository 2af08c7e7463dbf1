/*
 * An entry's level is the highest group of six bits in which its tick differs from the wheel's; its
 * slot is the value of these six bits. So all entries of a level come before those of the next
 * level, and the slots of a level are in order. The wheel's tick never advances past a slot that is
 * not empty, so each entry stays in the right slot.
 */
#include "base/wheel.h"

#include <stdbool.h>
#include <stddef.h>

void wheel_init(struct wheel *wheel, uint64_t now, wheel_instant *instant) {
    *wheel =
        (struct wheel){.instant = instant, .tick = now >> WHEEL_TICK_BITS, .sliced_at = UINT64_MAX};
}

static unsigned level_of(const struct wheel *wheel, uint64_t tick) {
    uint64_t difference = (tick ^ wheel->tick) | 1;
    return (63 - (unsigned)__builtin_clzll(difference)) / WHEEL_SLOT_BITS;
}

static unsigned slot_of(uint64_t tick, unsigned level) {
    return (unsigned)(tick >> (level * WHEEL_SLOT_BITS)) & (WHEEL_SLOTS - 1);
}

/* Returns the tick under which an entry is filed: of an instant in the past, the wheel's tick. */
static uint64_t tick_of(const struct wheel *wheel, const struct wheel_entry *entry) {
    return nanos_max(entry->filed_at >> WHEEL_TICK_BITS, wheel->tick);
}

static void insert_entry(struct wheel *wheel, struct wheel_entry *entry, uint64_t at) {
    entry->filed_at = at;
    uint64_t tick = tick_of(wheel, entry);
    unsigned level = level_of(wheel, tick);
    unsigned slot = slot_of(tick, level);
    LIST_INSERT_HEAD(&wheel->slots[level][slot], entry, link);
    wheel->occupied[level] |= UINT64_C(1) << slot;
}

static void remove_entry(struct wheel *wheel, struct wheel_entry *entry) {
    uint64_t tick = tick_of(wheel, entry);
    unsigned level = level_of(wheel, tick);
    unsigned slot = slot_of(tick, level);
    LIST_REMOVE(entry, link);
    if (LIST_EMPTY(&wheel->slots[level][slot])) {
        wheel->occupied[level] &= ~(UINT64_C(1) << slot);
    }
}

void wheel_file(struct wheel *wheel, struct wheel_entry *entry, uint64_t at) {
    if (entry->filed_at != NANOS_NEVER) {
        remove_entry(wheel, entry);
    }
    insert_entry(wheel, entry, at);
}

void wheel_remove(struct wheel *wheel, struct wheel_entry *entry) {
    if (entry->filed_at != NANOS_NEVER) {
        remove_entry(wheel, entry);
    }
    wheel_entry_init(entry);
}

/* The first slot that is not empty. */
struct position {
    unsigned level; /* WHEEL_LEVELS: all slots are empty */
    unsigned slot;
    uint64_t tick; /* first tick of the slot */
};

static struct position first_of(const struct wheel *wheel) {
    struct position position = {.level = 0};
    while (position.level < WHEEL_LEVELS && wheel->occupied[position.level] == 0) {
        position.level++;
    }
    if (position.level == WHEEL_LEVELS) {
        return position;
    }
    unsigned shift = position.level * WHEEL_SLOT_BITS;
    /* The bits above the level's six are those of the wheel's tick; the slot gives the six. */
    uint64_t turns = wheel->tick >> shift >> WHEEL_SLOT_BITS << WHEEL_SLOT_BITS;
    position.slot = (unsigned)__builtin_ctzll(wheel->occupied[position.level]);
    position.tick = (turns | position.slot) << shift;
    return position;
}

/* Returns the first instant of a slot. */
static uint64_t first_in(const struct wheel_slot *slot) {
    const struct wheel_entry *entry;
    uint64_t first = NANOS_NEVER;
    LIST_FOREACH(entry, slot, link) {
        first = nanos_min(first, entry->filed_at);
    }
    return first;
}

static bool has_begun(const struct wheel *wheel) {
    for (unsigned level = WHEEL_SLICED_LEVEL; level < WHEEL_LEVELS; level++) {
        if (!LIST_EMPTY(&wheel->begun[level])) {
            return true;
        }
    }
    return false;
}

uint64_t wheel_next(const struct wheel *wheel) {
    if (has_begun(wheel)) {
        return wheel->tick << WHEEL_TICK_BITS;
    }
    struct position position = first_of(wheel);
    if (position.level == WHEEL_LEVELS) {
        return NANOS_NEVER;
    }
    return position.level == 0 ? first_in(&wheel->slots[0][position.slot])
                               : position.tick << WHEEL_TICK_BITS;
}

/* The list of due entries, in order. */
struct due {
    struct wheel_slot *list;
    struct wheel_entry *last; /* NULL: the list is empty */
};

static void add_due(struct due *due, struct wheel_entry *entry) {
    if (due->last == NULL) {
        LIST_INSERT_HEAD(due->list, entry, link);
    } else {
        LIST_INSERT_AFTER(due->last, entry, link);
    }
    due->last = entry;
}

/*
 * Moves an entry that is in no slot to `due` if its time has come, otherwise to the slot of its
 * instant, if it is set. An entry that is due in a later tick than the wheel's also goes to its
 * slot, which is opened in its turn: other entries may be due before it.
 */
static void refile(struct wheel *wheel, struct wheel_entry *entry, uint64_t now, struct due *due) {
    uint64_t at = wheel->instant(entry);
    entry->filed_at = NANOS_NEVER;
    if (at <= now && at >> WHEEL_TICK_BITS <= wheel->tick) {
        add_due(due, entry);
    } else if (at != NANOS_NEVER) {
        insert_entry(wheel, entry, at);
    }
}

/* Moves at most `slice` entries of a list. Returns what is left of the slice. */
static size_t file(struct wheel *wheel, struct wheel_slot *list, uint64_t now, size_t slice,
                   struct due *due) {
    struct wheel_entry *entry;
    while (slice > 0 && (entry = LIST_FIRST(list)) != NULL) {
        LIST_REMOVE(entry, link);
        refile(wheel, entry, now, due);
        slice--;
    }
    return slice;
}

/* Opens a slot: moves all of its entries to an empty list, and the wheel's tick to the slot's. */
static void open(struct wheel *wheel, struct position position, struct wheel_slot *begun) {
    struct wheel_slot *slot = &wheel->slots[position.level][position.slot];
    *begun = *slot;
    LIST_FIRST(begun)->link.le_prev = &LIST_FIRST(begun);
    LIST_INIT(slot);
    wheel->occupied[position.level] &= ~(UINT64_C(1) << position.slot);
    wheel->tick = position.tick;
}

/* Returns the number of entries that a call at `tick` may move. */
static size_t slice_at(const struct wheel *wheel, uint64_t tick) {
    struct position position = first_of(wheel);
    uint64_t since = wheel->sliced_at;
    if (position.level < WHEEL_LEVELS) {
        since = nanos_min(since, position.tick);
    }
    uint64_t late = tick > since ? tick - since : 0;
    return WHEEL_SLICE +
           (size_t)nanos_min(late, SIZE_MAX / 2 / WHEEL_SLICE_PER_TICK) * WHEEL_SLICE_PER_TICK;
}

/* Opens the slots whose time has come at `tick`, in order, as far as the slice goes. */
static void open_all(struct wheel *wheel, uint64_t tick, uint64_t now, size_t slice,
                     struct due *due) {
    struct position position = first_of(wheel);
    while (position.level < WHEEL_LEVELS && position.tick <= tick) {
        struct wheel_slot *begun = &wheel->begun[position.level];
        bool is_last = position.level == 0 && position.tick == tick; /* some may be due later */
        if (!LIST_EMPTY(begun)) {
            return; /* the slice is used up: entries of the previous slot come first */
        }
        open(wheel, position, begun);
        if (position.level < WHEEL_SLICED_LEVEL) {
            file(wheel, begun, now, SIZE_MAX, due);
        } else {
            slice = file(wheel, begun, now, slice, due);
        }
        if (is_last) {
            return;
        }
        position = first_of(wheel);
    }
    wheel->tick = tick;
}

void wheel_expire(struct wheel *wheel, uint64_t now, struct wheel_slot *list) {
    struct due due = {.list = list};
    uint64_t tick = nanos_max(now >> WHEEL_TICK_BITS, wheel->tick);
    size_t slice = slice_at(wheel, tick);
    for (unsigned level = WHEEL_SLICED_LEVEL; level < WHEEL_LEVELS; level++) {
        slice = file(wheel, &wheel->begun[level], now, slice, &due);
    }
    open_all(wheel, tick, now, slice, &due);
    wheel->sliced_at = has_begun(wheel) ? tick : UINT64_MAX;
}
