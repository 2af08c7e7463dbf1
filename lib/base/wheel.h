/*
 * The instants of many timers, in a hierarchical timing wheel (Varghese and Lauck, "Hashed and
 * Hierarchical Timing Wheels", SOSP 1987, scheme 7): setting, moving and clearing a timer takes the
 * same time whether there are ten or a million. The wheel reads no clock and allocates nothing.
 *
 * Time is divided into ticks of WHEEL_TICK ns. The lowest wheel has 64 slots for the next 64 ticks,
 * the second one 64 slots for the next 64 times 64 ticks, and so on. When the time reaches a slot
 * of an upper wheel, its entries move to the lower wheels.
 *
 * A slot of the third wheel or above may hold all of a million entries. Its entries are moved in
 * slices, last set first: the shorter the time for which an entry was set, the less late it is.
 *
 * An entry that is moved to a later instant, or cleared, stays in its slot until the time reaches
 * the slot: most round timers never expire, and so cost nothing to move.
 */
#ifndef REDLOCK_BASE_WHEEL_H
#define REDLOCK_BASE_WHEEL_H

#include "base/nanos.h"

#include <stdint.h>
#include <sys/queue.h>

/* 2^18 ns, about 1/4 ms. */
#define WHEEL_TICK_BITS 18
#define WHEEL_TICK (UINT64_C(1) << WHEEL_TICK_BITS)

/* The slots of each wheel, and the number of wheels: enough for all instants but NANOS_NEVER. */
#define WHEEL_SLOT_BITS 6
#define WHEEL_SLOTS (1u << WHEEL_SLOT_BITS)
#define WHEEL_LEVELS 8

/*
 * The lowest level whose slots are moved in slices; the number of entries in a slice; and the
 * number added for each tick by which the slice is late, or since the previous slice. So a loop
 * that was away, or whose turns are long, catches up. Moving an entry that is in no cache takes up
 * to 1 us: the entries that a tick adds take 1/4 of a tick, so that slices do not grow longer and
 * longer.
 */
#define WHEEL_SLICED_LEVEL 2
#define WHEEL_SLICE 1024
#define WHEEL_SLICE_PER_TICK 64

struct wheel_entry {
    LIST_ENTRY(wheel_entry) link;
    uint64_t filed_at; /* instant whose slot the entry is in; NANOS_NEVER: in none */
};

/* Returns the instant of an entry, which the owner of the entry keeps; NANOS_NEVER: not set. */
typedef uint64_t wheel_instant(const struct wheel_entry *entry);

LIST_HEAD(wheel_slot, wheel_entry);

struct wheel {
    wheel_instant *instant;
    uint64_t tick;      /* current tick: no entry lies in an earlier one */
    uint64_t sliced_at; /* tick of the latest slice if it left entries, else UINT64_MAX */
    uint64_t occupied[WHEEL_LEVELS]; /* masks of the slots with entries */
    struct wheel_slot slots[WHEEL_LEVELS][WHEEL_SLOTS];
    struct wheel_slot begun[WHEEL_LEVELS]; /* entries of expired slots that are yet to be moved */
};

/* Initializes an empty wheel that starts at `now`. */
void wheel_init(struct wheel *wheel, uint64_t now, wheel_instant *instant);

/* Initializes an entry that is not set. */
static inline void wheel_entry_init(struct wheel_entry *entry) {
    entry->filed_at = NANOS_NEVER;
}

/* Puts an entry in the slot of an instant, which must be earlier than the entry's current one. */
void wheel_file(struct wheel *wheel, struct wheel_entry *entry, uint64_t at);

/*
 * Records that the instant of an entry is now `at`, which may be in the past; NANOS_NEVER: the
 * entry is not set.
 */
static inline void wheel_set(struct wheel *wheel, struct wheel_entry *entry, uint64_t at) {
    if (at < entry->filed_at) {
        wheel_file(wheel, entry, at);
    }
}

/* Removes an entry; required before its memory is freed. */
void wheel_remove(struct wheel *wheel, struct wheel_entry *entry);

/*
 * Returns the instant at which wheel_expire must be called next, not later than that of the first
 * entry; NANOS_NEVER if all slots are empty.
 */
uint64_t wheel_next(const struct wheel *wheel);

/*
 * Moves the entries whose instant is not after `now` to `due`, an empty list, in the order of their
 * ticks: of locks that all had to wait, the first due is the first to expire. The caller removes
 * each entry from the list before it sets the entry again. If entries are yet to be moved, which
 * may be due, wheel_next does not return a time after `now`.
 */
void wheel_expire(struct wheel *wheel, uint64_t now, struct wheel_slot *due);

#endif
