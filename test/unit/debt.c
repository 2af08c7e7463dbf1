/* Tests the releases owed to nodes: kept while they are of use, and no longer. */
#include "unit.h"

#include "base/memory.h"
#include "node/debt.h"

#define TOKEN "0123456789012345678901234567890123456789"

static bool owe(struct debts *debts, struct key *key, uint64_t until, uint64_t now) {
    return debts_add(debts, &(struct owed){.key = key, .token = TOKEN, .until = until}, now);
}

/* A debt of a long TTL does not keep expired debts behind it. */
static void expired_debts_make_room_whatever_stands_before_them(void **state) {
    redlock_allocator allocator = memory_allocator(NULL);
    struct keys keys;
    struct debts debts;
    (void)state;

    keys_init(&keys, &allocator);
    debts_init(&debts, &allocator, SIZE_MAX);
    struct key *key = key_create(&keys, "k", 1);
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
    debts_init(&debts, &allocator, SIZE_MAX);
    struct key *key = key_create(&keys, "k", 1);
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

/* Returns how many debts of a key fit in the bound, beside those already there. */
static size_t fitting(struct debts *debts, struct key *key) {
    size_t count = 0;
    while (owe(debts, key, 1000, 0)) {
        assert_true(debts->bytes <= debts->max_bytes);
        count++;
    }
    return count;
}

static void their_bytes_are_bounded_too(void **state) {
    static char name[8192] = "long";
    redlock_allocator allocator = memory_allocator(NULL);
    struct keys keys;
    struct debts debts;
    (void)state;

    keys_init(&keys, &allocator);
    struct key *brief = key_create(&keys, "k", 1);
    struct key *lengthy = key_create(&keys, name, sizeof(name));
    assert_true(key_append(lengthy, name, sizeof(name)));
    debts_init(&debts, &allocator, 1 << 20);
    assert_int_in_range(fitting(&debts, lengthy), 60, 64); /* of 16 KiB, and their structs */
    assert_int_in_range(fitting(&debts, brief), 1, 200);   /* in the rest */
    assert_true(owe(&debts, lengthy, 2000, 1000));         /* the others have expired */
    assert_int_equal(debts.count, 1);
    debts_drop_first(&debts);
    assert_int_equal(debts.bytes, 0);
    debts_finish(&debts);
    debts_init(&debts, &allocator, 1); /* some debts fit even with the lowest bound */
    assert_int_in_range(fitting(&debts, lengthy), 3, 4);
    debts_finish(&debts);
    key_drop(brief);
    key_drop(lengthy);
    keys_finish(&keys);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(expired_debts_make_room_whatever_stands_before_them),
        cmocka_unit_test(what_is_beyond_the_bound_is_refused),
        cmocka_unit_test(their_bytes_are_bounded_too),
    };
    return cmocka_run_group_tests_name("debt", tests, NULL, NULL);
}
