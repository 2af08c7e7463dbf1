/* Tests nodes' pending releases, which are kept only as long as they are of use. */
#include "unit.h"

#include "base/memory.h"
#include "node/pending_releases.h"

#define TOKEN "0123456789012345678901234567890123456789"

static bool add(struct pending_releases *pending, struct key *key, uint64_t until, uint64_t now) {
    return pending_releases_add(pending,
                                &(struct release){.key = key, .token = TOKEN, .until = until}, now);
}

/* A pending release with a long TTL does not keep expired ones after it. */
static void expired_releases_make_room_whatever_stands_before_them(void **state) {
    redlock_allocator allocator = memory_allocator(NULL);
    struct keys keys;
    struct pending_releases pending;
    (void)state;

    keys_init(&keys, &allocator);
    pending_releases_init(&pending, &allocator, SIZE_MAX);
    struct key *key = key_create(&keys, "k", 1);
    assert_true(add(&pending, key, 30000, 0));
    for (uint64_t now = 0; now < 3 * PENDING_RELEASES_MAX; now++) {
        assert_true(add(&pending, key, now + 1, now));
        assert_true(pending.count < 1000);
    }
    pending_releases_drop_expired(&pending, 29999);
    assert_true(pending.count >= 1);
    pending_releases_finish(&pending);
    key_drop(key);
    keys_finish(&keys);
}

static void what_is_beyond_the_bound_is_refused(void **state) {
    redlock_allocator allocator = memory_allocator(NULL);
    struct keys keys;
    struct pending_releases pending;
    (void)state;

    keys_init(&keys, &allocator);
    pending_releases_init(&pending, &allocator, SIZE_MAX);
    struct key *key = key_create(&keys, "k", 1);
    for (size_t i = 0; i < PENDING_RELEASES_MAX; i++) {
        assert_true(add(&pending, key, 1000, 0));
    }
    assert_false(add(&pending, key, 1000, 0));
    assert_true(add(&pending, key, 2000, 1000)); /* the others have expired */
    assert_int_equal(pending.count, 1);
    pending_releases_finish(&pending);
    key_drop(key);
    keys_finish(&keys);
}

/* Returns how many pending releases of a key fit into the bound, besides those already there. */
static size_t fitting(struct pending_releases *pending, struct key *key) {
    size_t count = 0;
    while (add(pending, key, 1000, 0)) {
        assert_true(pending->bytes <= pending->max_bytes);
        count++;
    }
    return count;
}

static void their_bytes_are_bounded_too(void **state) {
    static char name[8192] = "long";
    redlock_allocator allocator = memory_allocator(NULL);
    struct keys keys;
    struct pending_releases pending;
    (void)state;

    keys_init(&keys, &allocator);
    struct key *brief = key_create(&keys, "k", 1);
    struct key *lengthy = key_create(&keys, name, sizeof(name));
    assert_true(key_append(lengthy, name, sizeof(name)));
    pending_releases_init(&pending, &allocator, 1 << 20);
    assert_int_in_range(fitting(&pending, lengthy), 60, 64); /* of 16 KiB, and their structs */
    assert_int_in_range(fitting(&pending, brief), 1, 200);   /* in the rest */
    assert_true(add(&pending, lengthy, 2000, 1000));         /* the others have expired */
    assert_int_equal(pending.count, 1);
    pending_releases_drop_first(&pending);
    assert_int_equal(pending.bytes, 0);
    pending_releases_finish(&pending);
    pending_releases_init(&pending, &allocator,
                          1); /* some pending releases fit even with the lowest bound */
    assert_int_in_range(fitting(&pending, lengthy), 3, 4);
    pending_releases_finish(&pending);
    key_drop(brief);
    key_drop(lengthy);
    keys_finish(&keys);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(expired_releases_make_room_whatever_stands_before_them),
        cmocka_unit_test(what_is_beyond_the_bound_is_refused),
        cmocka_unit_test(their_bytes_are_bounded_too),
    };
    return cmocka_run_group_tests_name("pending_releases", tests, NULL, NULL);
}
