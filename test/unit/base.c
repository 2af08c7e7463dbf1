/* Tests the lowest floor: memory, pools, growing bytes, bounded text, errors. */
#include "base/bytes.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/pool.h"
#include "base/text.h"
#include "heap.h"
#include "unit.h"

#include <string.h>
#include <wchar.h>

/* ---- memory ---- */

static void test_the_applications_allocator_is_used(void **state) {
    (void)state;
    struct heap heap;
    heap_init(&heap);
    redlock_allocator chosen = memory_allocator(&heap.allocator);
    char *zeros = memory_zalloc(&chosen, 64);
    for (unsigned i = 0; i < 64; i++) {
        assert_int_equal(zeros[i], 0);
    }
    char *copy = memory_copy(&chosen, "a\0b", 3);
    assert_memory_equal(copy, "a\0b", 4); /* with a NUL added */
    copy = memory_realloc(&chosen, copy, 1000);
    assert_memory_equal(copy, "a\0b", 4);
    assert_int_equal(heap.out, 2);
    assert_int_equal(heap.calls, 3);
    memory_free(&chosen, copy);
    memory_free(&chosen, zeros);
    memory_free(&chosen, NULL);
    assert_int_equal(heap.out, 0);
}

static void test_libc_is_used_when_none_is_chosen(void **state) {
    (void)state;
    redlock_allocator libc = memory_allocator(NULL);
    char *memory = memory_alloc(&libc, 8);
    assert_non_null(memory);
    memory = memory_realloc(&libc, memory, 100000);
    assert_non_null(memory);
    memory_free(&libc, memory);
}

static void test_failure_is_null(void **state) {
    (void)state;
    struct heap heap;
    heap_init(&heap);
    heap.fail_from = 1;
    assert_null(memory_alloc(&heap.allocator, 8));
    assert_null(memory_zalloc(&heap.allocator, 8));
    assert_null(memory_realloc(&heap.allocator, NULL, 8));
    assert_null(memory_copy(&heap.allocator, "abc", 3));
    assert_int_equal(heap.out, 0);
}

/* ---- pools ---- */

/* Records the calls of a pool's set_up and take_down; the context of set_up. */
struct factory {
    unsigned set_up, taken_down;
    bool refuses;
};

struct product {
    struct product *own; /* the pool's while the product is spare */
    uint64_t content;
};

static bool set_up(void *object, void *context) {
    struct product *product = object;
    struct factory *factory = context;
    assert_int_equal(product->content, 0);
    if (factory->refuses) {
        return false;
    }
    factory->set_up++;
    return true;
}

static void take_down(void *object, void *context) {
    struct factory *factory = context;
    assert_non_null(object);
    factory->taken_down++;
}

static const struct pool_kind products = {
    .size = sizeof(struct product), .max_spares = 3, .set_up = set_up, .take_down = take_down};

static void test_a_pool_gives_back_what_it_was_given(void **state) {
    (void)state;
    struct heap heap;
    struct factory factory = {0};
    struct pool pool;
    heap_init(&heap);
    pool_init(&pool, &heap.allocator, &products, &factory);
    struct product *product = pool_take(&pool);
    product->content = 42;
    pool_put(&pool, product);
    for (unsigned i = 0; i < 1000; i++) {
        struct product *again = pool_take(&pool);
        assert_ptr_equal(again, product);
        assert_int_equal(again->content, 42); /* as its last user left it */
        again->own = again;
        pool_put(&pool, again);
    }
    assert_int_equal(heap.calls, 1); /* a steady load allocates nothing */
    assert_int_equal(factory.set_up, 1);
    assert_int_equal(factory.taken_down, 0);
    pool_finish(&pool);
    assert_int_equal(factory.taken_down, 1);
    assert_int_equal(heap.out, 0);
}

static void test_a_pool_keeps_no_more_than_its_bound(void **state) {
    (void)state;
    enum { OUT = 10 };
    struct heap heap;
    struct factory factory = {0};
    struct pool pool;
    struct product *out[OUT];
    heap_init(&heap);
    pool_init(&pool, &heap.allocator, &products, &factory);
    for (unsigned i = 0; i < OUT; i++) {
        out[i] = pool_take(&pool);
        assert_int_equal((uintptr_t)out[i] % _Alignof(max_align_t), 0);
        for (unsigned other = 0; other < i; other++) {
            assert_ptr_not_equal(out[i], out[other]);
        }
    }
    for (unsigned i = 0; i < OUT; i++) {
        pool_put(&pool, out[i]);
        assert_int_equal(pool.spares, i < 3 ? i + 1 : 3);
    }
    assert_int_equal(heap.out, 3);
    assert_int_equal(factory.taken_down, OUT - 3);
    pool_finish(&pool);
    assert_int_equal(pool.spares, 0);
    assert_int_equal(factory.taken_down, OUT);
    assert_int_equal(heap.out, 0);
}

static void test_a_pool_without_memory_or_set_up_gives_nothing(void **state) {
    (void)state;
    struct heap heap;
    struct factory factory = {.refuses = true};
    struct pool pool;
    heap_init(&heap);
    pool_init(&pool, &heap.allocator, &products, &factory);
    assert_null(pool_take(&pool));
    assert_int_equal(heap.out, 0); /* an object that could not be set up is freed, not taken down */
    assert_int_equal(factory.taken_down, 0);
    factory.refuses = false;
    heap.fail_from = heap.calls + 1;
    assert_null(pool_take(&pool));
    heap.fail_from = 0;
    pool_put(&pool, pool_take(&pool));
    pool_finish(&pool);
    assert_int_equal(heap.out, 0);
}

static void test_a_pool_of_plain_objects(void **state) {
    (void)state;
    static const struct pool_kind plain = {.size = 24, .max_spares = 0};
    struct heap heap;
    struct pool pool;
    heap_init(&heap);
    pool_init(&pool, &heap.allocator, &plain, NULL);
    pool_put(&pool, pool_take(&pool));
    assert_int_equal(heap.out, 0);
    pool_finish(&pool);
}

/* ---- bytes ---- */

static void test_bytes_grow_and_keep_their_memory(void **state) {
    (void)state;
    struct heap heap;
    struct bytes bytes;
    heap_init(&heap);
    bytes_init(&bytes, &heap.allocator);
    for (unsigned i = 0; i < 10000; i++) {
        bytes_append(&bytes, "\0\r\n", 3);
    }
    assert_int_equal(bytes.length, 30000);
    for (size_t i = 0; i < bytes.length; i++) {
        assert_int_equal(bytes.data[i], "\0\r\n"[i % 3]);
    }
    assert_int_in_range(heap.calls, 1, 12); /* the capacity doubles */
    size_t calls = heap.calls;
    bytes_clear(&bytes);
    assert_int_equal(bytes.length, 0);
    memset(bytes_reserve(&bytes, 30000), 'x', 30000);
    assert_int_equal(bytes.length, 0); /* the caller adds the number of bytes written */
    assert_int_equal(heap.calls, calls);
    bytes_finish(&bytes);
    bytes_finish(&bytes);
    assert_int_equal(heap.out, 0);
}

static void test_one_append_may_be_larger_than_any_doubling(void **state) {
    (void)state;
    static const char large[100000] = {1};
    struct heap heap;
    struct bytes bytes;
    heap_init(&heap);
    bytes_init(&bytes, &heap.allocator);
    bytes_append(&bytes, "x", 1);
    bytes_append(&bytes, large, sizeof(large));
    assert_int_equal(bytes.length, 1 + sizeof(large));
    assert_memory_equal(bytes.data + 1, large, sizeof(large));
    assert_int_equal(heap.calls, 2);
    bytes_finish(&bytes);
    assert_int_equal(heap.out, 0);
}

static void test_failed_bytes_stay_failed_until_cleared(void **state) {
    (void)state;
    static const char large[1000] = {1};
    struct heap heap;
    struct bytes bytes;
    heap_init(&heap);
    bytes_init(&bytes, &heap.allocator);
    bytes_append(&bytes, "before", 6);
    heap.fail_from = heap.calls + 1;
    bytes_append(&bytes, large, sizeof(large));
    assert_true(bytes.failed);
    heap.fail_from = 0;
    assert_null(bytes_reserve(
        &bytes, 1)); /* even though there would be room: a gap must not go unnoticed */
    bytes_append(&bytes, "after", 5);
    assert_true(bytes.failed);
    assert_int_equal(bytes.length, 6);
    bytes_clear(&bytes);
    bytes_append(&bytes, "again", 5);
    assert_false(bytes.failed);
    assert_memory_equal(bytes.data, "again", 5);
    bytes_finish(&bytes);
    assert_int_equal(heap.out, 0);
}

/* ---- text ---- */

static void test_text_is_cut_where_it_ends(void **state) {
    (void)state;
    static const struct {
        size_t capacity;
        const char *first, *second, *expected;
    } rows[] = {
        {16, "", "", ""},
        {16, "one, ", "two", "one, two"},
        {9, "one, ", "two", "one, two"}, /* just fits */
        {8, "one, ", "two", "one,..."},  /* one byte too many */
        {6, "one, ", "two", "on..."},    /* a piece that was complete is cut, too */
        {6, "one, ", "", "one, "},
        {4, "", "long", "..."},
        {4, "abc", "", "abc"},
        {8, "far too long", "", "far ..."},
        {8, "far too long", "and more", "far ..."},
        {8, "far too long", "", "far ..."},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char memory[17];
        struct text text;
        memset(memory, '#', sizeof(memory));
        text_init(&text, memory, rows[i].capacity);
        assert_string_equal(memory, "");
        text_append(&text, "%s", rows[i].first);
        text_append(&text, "%s", rows[i].second);
        assert_string_equal(memory, rows[i].expected);
        assert_int_equal(text.length, strlen(rows[i].expected));
        assert_int_equal(memory[rows[i].capacity], '#');
    }
}

static void test_text_that_cannot_be_formatted_is_left_out(void **state) {
    (void)state;
    char memory[32];
    struct text text;
    text_init(&text, memory, sizeof(memory));
    text_append(&text, "before ");
    text_append(&text, "no character: %lc", (wint_t)0x7fffffff);
    text_append(&text, "after");
    assert_string_equal(memory, "before after");
}

static void test_foreign_bytes_stay_on_one_line(void **state) {
    (void)state;
    static const struct {
        size_t capacity;
        const char *bytes;
        size_t length;
        const char *expected;
    } rows[] = {
        {32, "plain ~ text", 12, "> plain ~ text"},
        {32, "two\r\nlines", 10, "> two??lines"},
        {32, "\x01\x1b[31m\x7f\x80\xff", 9, "> ??[31m???"},
        {32, "ends\0here", 9, "> ends"},
        {32, "more than asked for", 4, "> more"},
        {32, "", 0, "> "},
        {8, "hello", 5, "> hello"}, /* just fits */
        {8, "hello!", 6, "> he..."},
        {4, "hello", 5, "..."},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char memory[33];
        struct text text;
        memset(memory, '#', sizeof(memory));
        text_init(&text, memory, rows[i].capacity);
        text_append(&text, "> ");
        text_append_foreign(&text, rows[i].bytes, rows[i].length);
        assert_string_equal(memory, rows[i].expected);
        assert_int_equal(text.length, strlen(rows[i].expected));
        assert_int_equal(memory[rows[i].capacity], '#');
    }
}

/* ---- errors ---- */

static void test_an_error_has_a_status_and_a_sentence(void **state) {
    (void)state;
    redlock_error error = {REDLOCK_OK, "old"};
    assert_int_equal(error_set(&error, REDLOCK_EINVAL, "ttl_ms: %d", 7), REDLOCK_EINVAL);
    assert_int_equal(error.status, REDLOCK_EINVAL);
    assert_string_equal(error.message, "ttl_ms: 7");
    assert_int_equal(error_set(NULL, REDLOCK_ENOMEM, "nobody asked"), REDLOCK_ENOMEM);
}

static void test_a_sentence_is_one_line(void **state) {
    (void)state;
    redlock_error error;
    error_set(&error, REDLOCK_EINVAL, "name: \"%s\"", "a\nb\033[1m\x7f caf\xc3\xa9~");
    assert_string_equal(error.message, "name: \"a?b?[1m? caf\xc3\xa9~\"");
}

static void test_a_sentence_that_is_too_long_is_cut(void **state) {
    (void)state;
    redlock_error error;
    assert_int_equal(error_set(&error, REDLOCK_EINVAL, "%0300d", 7), REDLOCK_EINVAL);
    assert_int_equal(strlen(error.message), sizeof(error.message) - 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_applications_allocator_is_used),
        cmocka_unit_test(test_libc_is_used_when_none_is_chosen),
        cmocka_unit_test(test_failure_is_null),
        cmocka_unit_test(test_a_pool_gives_back_what_it_was_given),
        cmocka_unit_test(test_a_pool_keeps_no_more_than_its_bound),
        cmocka_unit_test(test_a_pool_without_memory_or_set_up_gives_nothing),
        cmocka_unit_test(test_a_pool_of_plain_objects),
        cmocka_unit_test(test_bytes_grow_and_keep_their_memory),
        cmocka_unit_test(test_one_append_may_be_larger_than_any_doubling),
        cmocka_unit_test(test_failed_bytes_stay_failed_until_cleared),
        cmocka_unit_test(test_text_is_cut_where_it_ends),
        cmocka_unit_test(test_text_that_cannot_be_formatted_is_left_out),
        cmocka_unit_test(test_foreign_bytes_stay_on_one_line),
        cmocka_unit_test(test_an_error_has_a_status_and_a_sentence),
        cmocka_unit_test(test_a_sentence_is_one_line),
        cmocka_unit_test(test_a_sentence_that_is_too_long_is_cut),
    };
    return cmocka_run_group_tests_name("base", tests, NULL, NULL);
}
