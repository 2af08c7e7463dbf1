/* What nodes are owed: remembered while it is of use, and no longer. */
#include "unit.h"

#include "base/memory.h"
#include "debt.h"

#define TOKEN "0123456789012345678901234567890123456789"

static bool owe(struct debts *debts, struct key *key, uint64_t until, uint64_t now) {
    return debts_add(debts, &(struct owed){.key = key, .token = TOKEN, .until = until}, now);
}

/* A debt of a long TTL does not keep those behind it that have expired. */
static void expired_debts_make_room_whatever_stands_before_them(void **state) {
    redlock_allocator allocator = memory_allocator(NULL);
    struct keys keys;
    struct debts debts;
    (void)state;

    keys_init(&keys, &allocator);
    debts_init(&debts, &allocator);
    struct key *key = key_create(&keys, "k", 1, REDLOCK_EXCLUSIVE);
    assert_true(owe(&debts, key, 30000, 0));
    for (uint64_t now = 0; now < 3 * DEBTS_MAX; now++) {
        assert_true(owe(&debts, key, now + 1, now));
        assert_true(debts.count < 1000);
    }
    debts_drop_expired(&debts, 29999);
    assert_true(debts.count >= 1);
    debts_finish(&debts);
    key_drop(key);
    keys_finish(&keys);
}

static void what_is_beyond_the_bound_is_refused(void **state) {
    redlock_allocator allocator = memory_allocator(NULL);
    struct keys keys;
    struct debts debts;
    (void)state;

    keys_init(&keys, &allocator);
    debts_init(&debts, &allocator);
    struct key *key = key_create(&keys, "k", 1, REDLOCK_EXCLUSIVE);
    for (size_t i = 0; i < DEBTS_MAX; i++) {
        assert_true(owe(&debts, key, 1000, 0));
    }
    assert_false(owe(&debts, key, 1000, 0));
    assert_true(owe(&debts, key, 2000, 1000)); /* the others have expired */
    assert_int_equal(debts.count, 1);
    debts_finish(&debts);
    key_drop(key);
    keys_finish(&keys);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(expired_debts_make_room_whatever_stands_before_them),
        cmocka_unit_test(what_is_beyond_the_bound_is_refused),
    };
    return cmocka_run_group_tests_name("debt", tests, NULL, NULL);
}
