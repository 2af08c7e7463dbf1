/* The wheel of instants, against a plain list of them. */
#include "unit.h"

#include "base/wheel.h"
#include "core/backoff.h"

#include <stdbool.h>

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

/* Lets the time go on to `now`, and compares the entries that are due. */
static unsigned expire(struct model *model, uint64_t now) {
    struct wheel_slot due = LIST_HEAD_INITIALIZER(due);
    struct wheel_entry *entry;
    unsigned count = 0;
    model->now = now;
    wheel_expire(&model->wheel, now, &due);
    while ((entry = LIST_FIRST(&due)) != NULL) {
        struct item *item = (struct item *)(void *)entry;
        LIST_REMOVE(entry, link);
        assert_true(item->at <= now);
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

/* Follows wheel_next, as a timer does: it takes few steps to the instant, and none is beyond it. */
static void the_wheel_tells_when_to_look(void **state) {
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entries_are_due_at_their_instants),
        cmocka_unit_test(the_wheel_tells_when_to_look),
        cmocka_unit_test(a_crowd_at_one_instant_comes_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
