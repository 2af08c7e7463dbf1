/* Tests the wheel of instants against a plain list of them. */
#include "unit.h"

#include "base/wheel.h"
#include "core/backoff.h"

#include <stdbool.h>
#include <stdlib.h>

#define ENTRIES 300
#define STEPS 100000

struct item {
    struct wheel_entry entry;
    uint64_t at; /* the instant that was set; NANOS_NEVER: none */
};

struct model {
    struct wheel wheel;
    struct item items[ENTRIES];
    uint64_t now;
    uint64_t seed;
};

static uint64_t instant(const struct wheel_entry *entry) {
    return ((const struct item *)(const void *)entry)->at;
}

static void begin(struct model *model, uint64_t now) {
    model->now = now;
    model->seed = 1;
    wheel_init(&model->wheel, now, instant);
    for (unsigned i = 0; i < ENTRIES; i++) {
        wheel_entry_init(&model->items[i].entry);
        model->items[i].at = NANOS_NEVER;
    }
}

static void set(struct model *model, unsigned index, uint64_t at) {
    model->items[index].at = at;
    wheel_set(&model->wheel, &model->items[index].entry, at);
}

static uint64_t first_of(const struct model *model) {
    uint64_t first = NANOS_NEVER;
    for (unsigned i = 0; i < ENTRIES; i++) {
        first = nanos_min(first, model->items[i].at);
    }
    return first;
}

/* Advances the time to `now`, and compares the entries that are due, and their order. */
static unsigned expire(struct model *model, uint64_t now) {
    struct wheel_slot due = LIST_HEAD_INITIALIZER(due);
    struct wheel_entry *entry;
    unsigned count = 0;
    uint64_t began_at = model->wheel.tick; /* entries set too late are here */
    uint64_t tick = began_at;
    model->now = now;
    wheel_expire(&model->wheel, now, &due);
    while ((entry = LIST_FIRST(&due)) != NULL) {
        struct item *item = (struct item *)(void *)entry;
        LIST_REMOVE(entry, link);
        assert_true(item->at <= now);
        assert_true(tick == began_at || item->at >> WHEEL_TICK_BITS >= tick);
        tick = nanos_max(tick, item->at >> WHEEL_TICK_BITS);
        item->at = NANOS_NEVER;
        count++;
    }
    uint64_t first = first_of(model);
    uint64_t next = wheel_next(&model->wheel);
    assert_true(first > now);
    assert_true(next > now && next <= first);
    return count;
}

/* Draws a time of any order of magnitude up to 2^bits. */
static uint64_t draw_time(struct model *model, unsigned bits) {
    return backoff_random(&model->seed) >> (64 - 1 - backoff_random(&model->seed) % bits);
}

static void step(struct model *model, unsigned bits) {
    unsigned index = (unsigned)(backoff_random(&model->seed) % ENTRIES);
    switch (backoff_random(&model->seed) % 8) {
    case 0:
        set(model, index, NANOS_NEVER);
        break;
    case 4:
        wheel_remove(&model->wheel, &model->items[index].entry);
        model->items[index].at = NANOS_NEVER;
        break;
    case 1: /* too late */
        set(model, index, nanos_sub(model->now, draw_time(model, bits)));
        break;
    case 2:
        expire(model, nanos_add(model->now, draw_time(model, bits / 2)));
        break;
    case 3: /* the clock was set back */
        model->now = nanos_sub(model->now, draw_time(model, 20));
        break;
    default:
        set(model, index, nanos_min(nanos_add(model->now, draw_time(model, bits)), UINT64_MAX - 1));
        break;
    }
}

static void entries_are_due_at_their_instants(void **state) {
    static const unsigned bits[] = {20, 32, 44, 63};
    static struct model model;
    (void)state;

    for (size_t i = 0; i < COUNT_OF(bits); i++) {
        begin(&model, UINT64_C(1) << 40);
        for (unsigned n = 0; n < STEPS; n++) {
            step(&model, bits[i]);
        }
        expire(&model, UINT64_MAX - 1);
        assert_int_equal(wheel_next(&model.wheel), NANOS_NEVER);
    }
}

/* Follows wheel_next, as a timer does: it takes few steps to the instant, and none beyond it. */
static void the_wheel_says_when_to_look(void **state) {
    static struct model model;
    (void)state;

    for (unsigned shift = 0; shift < 63; shift++) {
        begin(&model, 12345678);
        set(&model, 0, nanos_add(model.now, UINT64_C(1) << shift));
        unsigned looks = 0;
        while (expire(&model, wheel_next(&model.wheel)) == 0) {
            looks++;
        }
        assert_true(looks < WHEEL_LEVELS);
    }
}

/* After a long absence the due entries come in order: what was due first is most urgent. */
static void what_was_due_first_comes_first(void **state) {
    static struct model model;
    uint64_t span = WHEEL_TICK << 3 * WHEEL_SLOT_BITS;
    (void)state;

    for (unsigned n = 0; n < 100; n++) {
        begin(&model, n * span / 7);
        model.seed = n + 1;
        for (unsigned i = 0; i < ENTRIES; i++) {
            set(&model, i, model.now + 1 + backoff_random(&model.seed) % (2 * span));
        }
        assert_int_equal(expire(&model, model.now + 2 * span), ENTRIES);
    }
}

static void a_crowd_at_one_instant_comes_at_once(void **state) {
    static struct model model;
    uint64_t at = 3 * WHEEL_TICK + 1;
    (void)state;

    begin(&model, 0);
    for (unsigned i = 0; i < ENTRIES; i++) {
        set(&model, i, i % 2 == 0 ? at : at + 1);
    }
    assert_int_equal(expire(&model, at - 1), 0);
    assert_int_equal(expire(&model, at), ENTRIES / 2);
    assert_int_equal(expire(&model, at + 1), ENTRIES / 2);
}

/* ---- many entries of one slot ---- */

#define CROWD (5 * WHEEL_SLICE)

static struct item crowd[CROWD];

/* Sets the crowd to one instant, in order, so far off that its slot is filed in slices. */
static void set_crowd(struct model *model, uint64_t at) {
    begin(model, 0);
    for (unsigned i = 0; i < CROWD; i++) {
        wheel_entry_init(&crowd[i].entry);
        crowd[i].at = at;
        wheel_set(&model->wheel, &crowd[i].entry, at);
    }
}

/* Expires once. Returns the number of entries that were due; `lowest` is the first of these. */
static unsigned expire_some(struct model *model, uint64_t now, unsigned *lowest) {
    struct wheel_slot due = LIST_HEAD_INITIALIZER(due);
    struct wheel_entry *entry;
    unsigned count = 0;
    *lowest = CROWD;
    wheel_expire(&model->wheel, now, &due);
    while ((entry = LIST_FIRST(&due)) != NULL) {
        struct item *item = (struct item *)(void *)entry;
        LIST_REMOVE(entry, link);
        assert_true(item->at <= now);
        item->at = NANOS_NEVER;
        *lowest = item - crowd < *lowest ? (unsigned)(item - crowd) : *lowest;
        count++;
    }
    return count;
}

/* The entry set last is due first, and no call takes longer than a slice. */
static void a_large_slot_is_filed_in_slices(void **state) {
    static struct model model;
    uint64_t at = (WHEEL_TICK << 2 * WHEEL_SLOT_BITS) * 3;
    unsigned lowest;
    (void)state;

    set_crowd(&model, at);
    assert_int_equal(expire_some(&model, at - 1, &lowest), 0);
    for (unsigned left = CROWD; left > 0; left -= WHEEL_SLICE) {
        assert_true(wheel_next(&model.wheel) <= at);
        assert_int_equal(expire_some(&model, at, &lowest), WHEEL_SLICE);
        assert_int_equal(lowest, left - WHEEL_SLICE);
    }
    assert_int_equal(wheel_next(&model.wheel), NANOS_NEVER);
}

/* Rare calls expire more: with turns of 30 ms, more than one slice is due. */
static void a_slice_grows_with_the_time_since_the_last(void **state) {
    static struct model model;
    uint64_t at = (WHEEL_TICK << 2 * WHEEL_SLOT_BITS) * 3;
    unsigned lowest;
    (void)state;

    set_crowd(&model, at);
    assert_int_equal(expire_some(&model, at, &lowest), WHEEL_SLICE);
    assert_int_equal(expire_some(&model, at + 2 * WHEEL_TICK, &lowest),
                     WHEEL_SLICE + 2 * WHEEL_SLICE_PER_TICK);
    assert_int_equal(expire_some(&model, at + 100 * WHEEL_TICK, &lowest),
                     CROWD - 2 * WHEEL_SLICE - 2 * WHEEL_SLICE_PER_TICK);
    assert_int_equal(wheel_next(&model.wheel), NANOS_NEVER);
}

static void a_slice_grows_with_its_delay(void **state) {
    static struct model model;
    uint64_t at = (WHEEL_TICK << 2 * WHEEL_SLOT_BITS) * 3;
    unsigned lowest;
    (void)state;

    set_crowd(&model, at);
    assert_int_equal(expire_some(&model, at + 4 * WHEEL_TICK, &lowest),
                     WHEEL_SLICE + 4 * WHEEL_SLICE_PER_TICK);
    set_crowd(&model, at);
    assert_int_equal(expire_some(&model, at + 1000 * WHEEL_TICK, &lowest), CROWD);
}

/* Entries that are yet to be filed can be reset, cleared and removed; others are not affected. */
static void what_is_to_be_filed_may_change(void **state) {
    static struct model model;
    uint64_t at = (WHEEL_TICK << 2 * WHEEL_SLOT_BITS) * 3;
    uint64_t end = at + (WHEEL_TICK << 3 * WHEEL_SLOT_BITS);
    unsigned lowest;
    (void)state;

    set_crowd(&model, at);
    assert_int_equal(expire_some(&model, at, &lowest), WHEEL_SLICE);
    crowd[0].at = at - 1; /* earlier: filed at once, in a slot of this tick */
    wheel_set(&model.wheel, &crowd[0].entry, at - 1);
    wheel_remove(&model.wheel, &crowd[1].entry);
    crowd[2].at = NANOS_NEVER;
    crowd[3].at = end;
    assert_int_equal(expire_some(&model, at, &lowest), WHEEL_SLICE + 1);
    assert_int_equal(lowest, 0);
    unsigned count = 2 * WHEEL_SLICE + 1;
    for (unsigned i = 2; i < CROWD / WHEEL_SLICE; i++) {
        count += expire_some(&model, at, &lowest);
    }
    assert_int_equal(count, CROWD - 3);
    assert_true(wheel_next(&model.wheel) > at);
    assert_int_equal(crowd[1].at, at);
    while (wheel_next(&model.wheel) < end) {
        assert_int_equal(expire_some(&model, wheel_next(&model.wheel), &lowest), 0);
    }
    assert_int_equal(expire_some(&model, end, &lowest), 1);
    assert_int_equal(lowest, 3);
}

#define MULTITUDE (1u << 19)

static uint64_t even_instant(const struct wheel_entry *entry) {
    (void)entry;
    return (WHEEL_TICK << 2 * WHEEL_SLOT_BITS) * 3;
}

/* A slot has more entries than are filed before the next one begins: that one waits. */
static void slots_are_filed_in_their_order(void **state) {
    static struct wheel wheel;
    uint64_t at = even_instant(NULL);
    uint64_t span = WHEEL_TICK << 2 * WHEEL_SLOT_BITS;
    struct wheel_entry *entries = calloc(MULTITUDE + 1, sizeof(*entries));
    size_t count = 0, calls = 0;
    (void)state;

    assert_non_null(entries);
    wheel_init(&wheel, 0, even_instant);
    for (size_t i = 0; i <= MULTITUDE; i++) {
        wheel_entry_init(&entries[i]);
        wheel_file(&wheel, &entries[i], i < MULTITUDE ? at : at + span);
    }
    for (uint64_t now = at; wheel_next(&wheel) != NANOS_NEVER; now = at + span) {
        struct wheel_slot due = LIST_HEAD_INITIALIZER(due);
        struct wheel_entry *entry;
        wheel_expire(&wheel, now, &due);
        LIST_FOREACH(entry, &due, link) {
            count++;
            assert_true(entry != &entries[MULTITUDE] || count > MULTITUDE / 2);
        }
        calls++;
        assert_true(calls < 3 || count == MULTITUDE + 1 || wheel_next(&wheel) <= now);
    }
    assert_int_equal(count, MULTITUDE + 1);
    assert_in_range(calls, 3, MULTITUDE / WHEEL_SLICE);
    free(entries);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entries_are_due_at_their_instants),
        cmocka_unit_test(the_wheel_says_when_to_look),
        cmocka_unit_test(what_was_due_first_comes_first),
        cmocka_unit_test(a_crowd_at_one_instant_comes_at_once),
        cmocka_unit_test(a_large_slot_is_filed_in_slices),
        cmocka_unit_test(a_slice_grows_with_the_time_since_the_last),
        cmocka_unit_test(a_slice_grows_with_its_delay),
        cmocka_unit_test(what_is_to_be_filed_may_change),
        cmocka_unit_test(slots_are_filed_in_their_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
