/* Tests the names of statuses, and the version. Links the whole library. */
#include "unit.h"

#include <redlock.h>
#include <stdio.h>
#include <string.h>

static void test_each_status(void **state) {
    (void)state;
    static const struct {
        redlock_status status;
        int value;
        const char *name, *text;
        bool is_retryable;
    } rows[] = {
        {REDLOCK_OK, 0, "REDLOCK_OK", "success", false},
        {REDLOCK_EINVAL, -1, "REDLOCK_EINVAL", "an argument or option is not valid", false},
        {REDLOCK_ENOMEM, -2, "REDLOCK_ENOMEM", "out of memory", false},
        {REDLOCK_EHELD, -3, "REDLOCK_EHELD", "the key is held by another", true},
        {REDLOCK_ENOQUORUM, -4, "REDLOCK_ENOQUORUM", "too few nodes answered to decide", true},
        {REDLOCK_EEXPIRED, -5, "REDLOCK_EEXPIRED", "the validity time ended first", true},
        {REDLOCK_ELOST, -6, "REDLOCK_ELOST",
         "a quorum of the nodes no longer holds the lock for us", false},
        {REDLOCK_ECANCELED, -7, "REDLOCK_ECANCELED", "the request was canceled", false},
        {REDLOCK_ECLOSED, -8, "REDLOCK_ECLOSED", "the client was closed", false},
        {REDLOCK_EBUSY, -9, "REDLOCK_EBUSY", "something that is under way has to end first", false},
        {REDLOCK_ESYSTEM, -10, "REDLOCK_ESYSTEM",
         "the operating system or a library refused a service", false},
        {REDLOCK_EACCESS, -11, "REDLOCK_EACCESS",
         "too many nodes refuse the client's login, database or rights", false},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        assert_int_equal(rows[i].status, rows[i].value); /* programs are built against these */
        assert_string_equal(redlock_status_name(rows[i].status), rows[i].name);
        assert_string_equal(redlock_strerror(rows[i].status), rows[i].text);
        assert_int_equal(redlock_is_retryable(rows[i].status), rows[i].is_retryable);
    }
    unsigned count = 0;
#define COUNT_STATUS(name, value, text) count++;
    REDLOCK_STATUS_MAP(COUNT_STATUS)
#undef COUNT_STATUS
    assert_int_equal(count, COUNT_OF(rows)); /* a new status belongs in this table */
}

static void test_numbers_that_are_no_status(void **state) {
    (void)state;
    static const int numbers[] = {1, 42, -12, -1000};
    for (size_t i = 0; i < COUNT_OF(numbers); i++) {
        redlock_status status = (redlock_status)numbers[i];
        assert_string_equal(redlock_strerror(status), "not a status of libredlock");
        assert_string_equal(redlock_status_name(status), "REDLOCK_?");
        assert_false(redlock_is_retryable(status));
    }
}

static void test_the_version_is_the_headers(void **state) {
    (void)state;
    char version[32];
    snprintf(version, sizeof(version), "%d.%d.%d", REDLOCK_VERSION_MAJOR, REDLOCK_VERSION_MINOR,
             REDLOCK_VERSION_PATCH);
    assert_string_equal(redlock_version(), version);
    assert_string_equal(redlock_version(), PROJECT_VERSION);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_status),
        cmocka_unit_test(test_numbers_that_are_no_status),
        cmocka_unit_test(test_the_version_is_the_headers),
    };
    return cmocka_run_group_tests_name("status", tests, NULL, NULL);
}
