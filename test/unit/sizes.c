/*
 * Tests the sizes of the structs that a client has many of, on machines with 8-byte pointers.
 * test/integration/allocations.c checks the bytes that an allocator counts for a lock.
 */
#include "lock/lock_state.h"
#include "round/operation.h"
#include "unit.h"

#include <stddef.h>

static void a_lock_and_a_key_of_16_bytes_take_320(void **state) {
    (void)state;
    if (sizeof(void *) != 8) {
        skip();
    }
    size_t key = offsetof(struct key, bytes) + KEY_SHORT_MAX + 1;
    assert_true(KEY_SHORT_MAX >= 16);
    assert_int_in_range(sizeof(struct redlock_lock) + key, 1, 320);
}

static void a_lease_takes_two_cache_lines(void **state) {
    (void)state;
    if (sizeof(void *) != 8) {
        skip();
    }
    assert_int_in_range(sizeof(struct lease), 1, 128);
}

/* A vote touches two cache lines of its operation, the second of which is the round's first. */
static void a_vote_touches_two_cache_lines(void **state) {
    (void)state;
    if (sizeof(void *) != 8) {
        skip();
    }
    assert_int_equal(offsetof(struct operation, round), 64);
    assert_int_in_range(offsetof(struct round, votes) + 5, 1, 64);
    assert_int_in_range(offsetof(struct operation, listener) + sizeof(struct operation_listener), 1,
                        64);
}

/* The answers of five nodes do not take the space of 32. */
static void an_operation_is_sized_for_its_nodes(void **state) {
    (void)state;
    if (sizeof(void *) != 8) {
        skip();
    }
    size_t answers = OPERATION_STEP * sizeof(struct round_answer);
    assert_int_equal(round_indexes((struct quorum_lists){0x1f, 0}), 5);
    assert_int_equal(round_indexes((struct quorum_lists){0x1f, UINT32_C(1) << 31}), 32);
    assert_int_in_range(sizeof(struct operation) + answers, 1, 656);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lock_and_a_key_of_16_bytes_take_320),
        cmocka_unit_test(a_lease_takes_two_cache_lines),
        cmocka_unit_test(a_vote_touches_two_cache_lines),
        cmocka_unit_test(an_operation_is_sized_for_its_nodes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
