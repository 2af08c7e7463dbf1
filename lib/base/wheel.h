/*
 * The instants of many timers, in a hierarchical wheel (Varghese and Lauck, "Hashed and
 * Hierarchical Timing Wheels", SOSP 1987, scheme 7): setting, moving and clearing one takes the
 * same time whether there are ten or a million. The wheel reads no clock, and allocates nothing.
 *
 * Time is cut into ticks of WHEEL_TICK ns. A wheel of 64 slots holds the instants of the next 64
 * ticks, a second one those of the next 64 times 64 ticks, and so on. When the time comes to a slot
 * of an upper wheel, its entries go to the lower ones.
 *
 * A slot of the third wheel or above may hold all of a million entries. These are filed some at a
 * time, those that were set last first: the shorter the time for which an entry was set, the less
 * is it late.
 *
 * An entry that is set to a later instant, or to none, stays in its slot until the time comes
 * there: most timers of rounds are never waited for, and setting them costs nothing.
 */
#ifndef REDLOCK_BASE_WHEEL_H
#define REDLOCK_BASE_WHEEL_H

#include "base/nanos.h"

#include <stdint.h>
#include <sys/queue.h>

/* A power of two, about a quarter of a millisecond. */
#define WHEEL_TICK_BITS 18
#define WHEEL_TICK (UINT64_C(1) << WHEEL_TICK_BITS)

/* Slots of a wheel, and wheels: together they cover all instants but NANOS_NEVER. */
#define WHEEL_SLOT_BITS 6
#define WHEEL_SLOTS (1u << WHEEL_SLOT_BITS)
#define WHEEL_LEVELS 8

/*
 * The lowest level whose slots are filed in slices, and the entries of a slice: so many, and more
 * for each tick by which it is late, or since the slice before. So a loop that was away, or whose
 * turns are long, does not fall behind. Filing an entry that is in no cache takes up to a
 * microsecond: what a tick adds takes a quarter of a tick, or a slice would be longer than the one
 * before.
 */
#define WHEEL_SLICED_LEVEL 2
#define WHEEL_SLICE 1024
#define WHEEL_SLICE_PER_TICK 64

struct wheel_entry {
    LIST_ENTRY(wheel_entry) link;
    uint64_t filed_at; /* the instant whose slot the entry is in; NANOS_NEVER: in none */
};

/* Returns the instant of an entry, which its owner keeps; NANOS_NEVER: not set. */
typedef uint64_t wheel_instant(const struct wheel_entry *entry);

LIST_HEAD(wheel_slot, wheel_entry);

struct wheel {
    wheel_instant *instant;
    uint64_t tick;      /* no entry is due before this one, but for those that were set too late */
    uint64_t sliced_at; /* the tick of the latest slice if it left some, else UINT64_MAX */
    uint64_t occupied[WHEEL_LEVELS]; /* masks: slots with an entry */
    struct wheel_slot slots[WHEEL_LEVELS][WHEEL_SLOTS];
    struct wheel_slot begun[WHEEL_LEVELS]; /* of the slots whose time has come: to be filed */
};

/* Begins an empty wheel, of which no earlier instant than `now` will be asked for. */
void wheel_init(struct wheel *wheel, uint64_t now, wheel_instant *instant);

/* Begins an entry that is not set. */
static inline void wheel_entry_init(struct wheel_entry *entry) {
    entry->filed_at = NANOS_NEVER;
}

/* Puts an entry in the slot of an instant, which is before that of the slot it is in, if any. */
void wheel_file(struct wheel *wheel, struct wheel_entry *entry, uint64_t at);

/*
 * Takes note that the instant of an entry is `at` from now on, which may be over; NANOS_NEVER: that
 * the entry is not set.
 */
static inline void wheel_set(struct wheel *wheel, struct wheel_entry *entry, uint64_t at) {
    if (at < entry->filed_at) {
        wheel_file(wheel, entry, at);
    }
}

/* Takes an entry out for good: before its memory is freed. */
void wheel_remove(struct wheel *wheel, struct wheel_entry *entry);

/*
 * Returns the instant at which wheel_expire is to be called next, at the latest that of the first
 * entry; NANOS_NEVER if there is no entry in any slot.
 */
uint64_t wheel_next(const struct wheel *wheel);

/*
 * Takes out the entries whose instant is not after `now`, and adds them to `due`, an empty list, in
 * the order of their ticks: of locks that all had to wait, the first due is the first to expire.
 * The caller takes them out of the list before it sets them. If entries are left to be filed, which
 * may be due, wheel_next is not after `now`.
 */
void wheel_expire(struct wheel *wheel, uint64_t now, struct wheel_slot *due);

#endif
