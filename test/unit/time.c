/* Tests time: arithmetic that saturates, the drift, and the end of validity, to the nanosecond. */
#include "base/nanos.h"
#include "core/quorum.h"
#include "core/validity.h"
#include "unit.h"

static void test_arithmetic_saturates(void **state) {
    (void)state;
    static const struct {
        uint64_t a, b, sum, difference;
    } rows[] = {
        {0, 0, 0, 0},
        {5, 3, 8, 2},
        {3, 5, 8, 0},
        {NANOS_NEVER, 0, NANOS_NEVER, NANOS_NEVER},
        {0, NANOS_NEVER, NANOS_NEVER, 0},
        {NANOS_NEVER, 1, NANOS_NEVER, NANOS_NEVER - 1},
        {NANOS_NEVER - 1, 1, NANOS_NEVER, NANOS_NEVER - 2},
        {NANOS_NEVER - 1, 2, NANOS_NEVER, NANOS_NEVER - 3},
        {NANOS_NEVER, NANOS_NEVER, NANOS_NEVER, 0},
        {UINT64_C(1) << 63, UINT64_C(1) << 63, NANOS_NEVER, 0},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        assert_int_equal(nanos_add(rows[i].a, rows[i].b), rows[i].sum);
        assert_int_equal(nanos_sub(rows[i].a, rows[i].b), rows[i].difference);
        assert_int_equal(nanos_min(rows[i].a, rows[i].b),
                         rows[i].a <= rows[i].b ? rows[i].a : rows[i].b);
        assert_int_equal(nanos_max(rows[i].a, rows[i].b),
                         rows[i].a <= rows[i].b ? rows[i].b : rows[i].a);
    }
}

static void test_milliseconds(void **state) {
    (void)state;
    static const struct {
        uint64_t ms, nanos;
    } rows[] = {
        {0, 0},
        {1, 1000000},
        {30000, UINT64_C(30000000000)},
        {UINT64_C(18446744073709), UINT64_C(18446744073709000000)},
        {UINT64_C(18446744073710), NANOS_NEVER},
        {UINT64_MAX, NANOS_NEVER},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        assert_int_equal(nanos_from_ms(rows[i].ms), rows[i].nanos);
    }
    assert_int_equal(nanos_to_ms(0), 0);
    assert_int_equal(nanos_to_ms(999999),
                     0); /* rounded down: a validity is never stated too long */
    assert_int_equal(nanos_to_ms(1000000), 1);
    assert_int_equal(nanos_to_ms(1999999), 1);
    assert_int_equal(nanos_to_ms(NANOS_NEVER), UINT64_C(18446744073709));
}

static void test_drift_to_the_nanosecond(void **state) {
    (void)state;
    static const struct {
        uint64_t ttl;
        double drift;
        uint64_t expected;
    } rows[] = {
        {0, 0.01, 2000000},
        {MS(1), 0.01, 2010000},
        {MS(100), 0.01, 3000000},
        {MS(1999), 0.01, 21990000}, /* no rounding to whole seconds */
        {MS(10000), 0.01, 102000000},
        {MS(30000), 0.01, 302000000},
        {MS(86400000), 0.01, UINT64_C(864002000000)},
        {MS(10000), 0, 2000000},
        {MS(10000), 0.5, UINT64_C(5002000000)},
        {MS(10000), 0.25, UINT64_C(2502000000)},
        {MS(10000), 0.0001, 3000000},
        {1, 0.5, 2000001}, /* 0.5 ns is rounded up */
        {3, 0.5, 2000002},
        {4, 0.5, 2000002},
        {1, 0.001, 2000001},
        {NANOS_NEVER, 0, 2000000},
        {NANOS_NEVER, 0.5, NANOS_NEVER}, /* an inexact result is rounded up */
        {NANOS_NEVER, 1, NANOS_NEVER},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        assert_int_equal(validity_drift(rows[i].ttl, rows[i].drift), rows[i].expected);
    }
}

static void test_end_of_validity_to_the_nanosecond(void **state) {
    (void)state;
    static const struct {
        uint64_t start, ttl;
        double drift;
        uint64_t end;
    } rows[] = {
        {0, MS(10000), 0.01, MS(9898)},
        {MS(500), MS(10000), 0.01, MS(10398)},
        {MS(500), MS(10000), 0, MS(10498)},
        {7, MS(100), 0.01, MS(97) + 7},
        {0, MS(3), 0.01, 970000},
        {5, MS(2), 0.01, 5}, /* the 2 ms alone leave no validity: never negative */
        {5, MS(1), 0.01, 5},
        {5, 0, 0.01, 5},
        {0, MS(4), 0.5, 0},
        {0, MS(5), 0.5, 500000},
        {MS(500), NANOS_NEVER, 0, NANOS_NEVER}, /* beyond the largest time */
        {NANOS_NEVER - 1, MS(10000), 0.01, NANOS_NEVER},
        {NANOS_NEVER, MS(10000), 0.01, NANOS_NEVER},
        {MS(500), NANOS_NEVER, 0.5, MS(500)},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        assert_int_equal(validity_end(rows[i].start, rows[i].ttl, rows[i].drift), rows[i].end);
    }
}

/* Compares each usual TTL with integer arithmetic. */
static void test_each_ttl_from_1_ms_to_30_s(void **state) {
    (void)state;
    const uint64_t start = MS(123456789);
    for (uint64_t ttl_ms = 1; ttl_ms <= 30000; ttl_ms++) {
        uint64_t drift = MS(ttl_ms) / 100 + MS(2);
        uint64_t validity = MS(ttl_ms) > drift ? MS(ttl_ms) - drift : 0;
        assert_int_equal(validity_drift(MS(ttl_ms), 0.01), drift);
        assert_int_equal(validity_end(start, MS(ttl_ms), 0.01) - start, validity);
        assert_true((validity > 0) == (ttl_ms > 2));
    }
}

static void test_more_drift_never_leaves_more_validity(void **state) {
    (void)state;
    for (uint64_t ttl = 1; ttl < NANOS_NEVER / 3; ttl *= 3) {
        uint64_t last = NANOS_NEVER;
        for (unsigned share = 0; share <= 50; share++) {
            uint64_t end = validity_end(1, ttl, share / 100.0);
            assert_true(end >= 1 && end <= last && end <= nanos_add(1, ttl));
            last = end;
        }
    }
}

static void test_majorities(void **state) {
    (void)state;
    static const uint32_t quorums[] = {1, 2, 2, 3, 3, 4, 4, 5, 5};
    for (uint32_t n = 1; n <= COUNT_OF(quorums); n++) {
        assert_int_equal(quorum_of(n), quorums[n - 1]);
        assert_true(2 * quorum_of(n) > n); /* any two of them overlap */
        for (uint32_t against = 0; against <= n; against++) {
            assert_int_equal(quorum_is_blocked(n, against), n - against < quorums[n - 1]);
        }
    }
    assert_int_equal(quorum_of(32), 17);
}

/* Nodes that are not in the list do not count; an empty list requires nothing. */
static void test_a_quorum_of_a_list_is_met_by_its_own_nodes(void **state) {
    (void)state;
    for (uint32_t list = 0; list < 32; list++) {
        uint32_t size = (uint32_t)__builtin_popcount(list);
        for (uint32_t nodes = 0; nodes < 64; nodes++) {
            uint32_t votes = (uint32_t)__builtin_popcount(list & nodes);
            assert_int_equal(quorum_is_reached(size, votes), 2 * votes > size);
            assert_int_equal(quorum_is_met(list, nodes), size == 0 || 2 * votes > size);
        }
    }
}

/* The TTL to request for a given validity. */
static void test_the_ttl_of_a_validity(void **state) {
    (void)state;
    static const uint64_t validities[] = {0, 1, 999999, 5 * NANOS_PER_MS, 30000 * NANOS_PER_MS};
    static const double drifts[] = {0, 0.001, 0.01, 0.5};
    for (size_t i = 0; i < COUNT_OF(validities); i++) {
        for (size_t k = 0; k < COUNT_OF(drifts); k++) {
            uint64_t ttl = validity_ttl(validities[i], drifts[k]);
            uint64_t validity = validity_end(0, ttl, drifts[k]);
            assert_int_in_range(validity, validities[i], validities[i] + 2 * NANOS_PER_MS);
        }
    }
    assert_int_equal(validity_ttl(NANOS_NEVER, 0), NANOS_NEVER);
    assert_int_equal(validity_ttl(NANOS_NEVER / 2, 0.5), NANOS_NEVER);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arithmetic_saturates),
        cmocka_unit_test(test_milliseconds),
        cmocka_unit_test(test_drift_to_the_nanosecond),
        cmocka_unit_test(test_end_of_validity_to_the_nanosecond),
        cmocka_unit_test(test_each_ttl_from_1_ms_to_30_s),
        cmocka_unit_test(test_more_drift_never_leaves_more_validity),
        cmocka_unit_test(test_majorities),
        cmocka_unit_test(test_a_quorum_of_a_list_is_met_by_its_own_nodes),
        cmocka_unit_test(test_the_ttl_of_a_validity),
    };
    return cmocka_run_group_tests_name("time", tests, NULL, NULL);
}
