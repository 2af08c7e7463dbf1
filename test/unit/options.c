/*
 * Tests options and requests: each bound of each field, structs of other versions, terms of a
 * lease.
 */
#include "core/options.h"
#include "base/nanos.h"
#include "unit.h"

#include <math.h>
#include <string.h>

static const char *const nodes[] = {"redis://h"};

static redlock_options usual_options(void) {
    redlock_options options = REDLOCK_OPTIONS_INIT;
    options.nodes = nodes;
    options.node_count = 1;
    return options;
}

static redlock_request usual_request(void) {
    redlock_request request = REDLOCK_REQUEST_INIT;
    request.key = "key";
    return request;
}

static void assert_begins_with(const char *text, const char *start) {
    if (strncmp(text, start, strlen(start)) != 0) {
        print_error("\"%s\" does not begin with \"%s\"\n", text, start);
        fail();
    }
}

static void assert_options_accepted(const redlock_options *given) {
    redlock_options options;
    redlock_error error = {REDLOCK_OK, ""};
    redlock_status status = options_read(given, &options, &error);
    assert_string_equal(error.message, "");
    assert_int_equal(status, REDLOCK_OK);
}

/* Asserts that the options are refused; `message` begins with the wrong field and a colon. */
static void assert_options_refused(const redlock_options *given, const char *message) {
    redlock_options options;
    redlock_error error = {REDLOCK_OK, ""};
    assert_int_equal(options_read(given, &options, &error), REDLOCK_EINVAL);
    assert_int_equal(error.status, REDLOCK_EINVAL);
    assert_begins_with(error.message, message);
    assert_int_equal(options_read(given, &options, NULL), REDLOCK_EINVAL);
}

static void assert_request_refused_by(const redlock_options *options, const redlock_request *given,
                                      const char *message) {
    redlock_request request;
    redlock_error error = {REDLOCK_OK, ""};
    assert_int_equal(options_read_request(given, options, &request, &error), REDLOCK_EINVAL);
    assert_int_equal(error.status, REDLOCK_EINVAL);
    assert_begins_with(error.message, message);
}

/* All other fields of such a request were checked before. */
static void test_the_key_alone(void **state) {
    (void)state;
    redlock_request given = REDLOCK_REQUEST_INIT;
    redlock_request request;
    redlock_error error = {REDLOCK_OK, ""};
    given.key = "orders:42";
    given.ttl_ms = 1234;
    assert_int_equal(options_read_key(&given, &request, &error), REDLOCK_OK);
    assert_int_equal(request.key_length, strlen("orders:42"));
    assert_int_equal(request.ttl_ms, 1234);
    given.key = "";
    assert_int_equal(options_read_key(&given, &request, &error), REDLOCK_EINVAL);
    assert_string_equal(error.message, "key: empty");
}

static void assert_request_refused(const redlock_request *given, const char *message) {
    redlock_options options = usual_options();
    assert_request_refused_by(&options, given, message);
}

static redlock_request assert_request_accepted(const redlock_request *given) {
    redlock_options options = usual_options();
    redlock_request request;
    redlock_error error = {REDLOCK_OK, ""};
    redlock_status status = options_read_request(given, &options, &request, &error);
    assert_string_equal(error.message, "");
    assert_int_equal(status, REDLOCK_OK);
    return request;
}

/* ---- options ---- */

static void test_the_defaults(void **state) {
    (void)state;
    redlock_options given = usual_options(), options;
    assert_int_equal(options_read(&given, &options, NULL), REDLOCK_OK);
    assert_ptr_equal(options.nodes, nodes);
    assert_int_equal(options.node_count, 1);
    assert_int_equal(options.node_timeout_ms, 0);
    assert_int_equal(options.stall_timeout_ms, 0);
    assert_int_equal(options.max_ttl_ms, 30000);
    assert_true(options.drift == 0.01);
    assert_int_equal(options.retry_delay_ms, 200);
    assert_int_equal(options.retry_delay_max_ms, 200);
    assert_int_equal(options.reconnect_delay_ms, 50);
    assert_int_equal(options.reconnect_delay_max_ms, 2000);
    assert_int_equal(options.max_commands, 65536);
    assert_int_equal(options.max_bytes, 16 << 20);
    assert_string_equal(options.name, "redlock");
    assert_true(options.log == NULL);
    assert_int_equal(options.log_level, REDLOCK_LOG_INFO);
    assert_int_equal(options.guards, REDLOCK_GUARDS_ON);
    assert_null(options.allocator);
    assert_null(options.tls_ca_file);
    assert_null(options.tls_ca_path);
    assert_null(options.tls_cert_file);
    assert_null(options.tls_key_file);
}

#define CENTURY UINT64_C(3155760000000)
#define WEEK UINT64_C(604800000)
#define DURATION(field, least)                                                                     \
    { #field ": ", offsetof(redlock_options, field), sizeof(uint64_t), least, CENTURY }

/* The fields with a minimum and a maximum; a maximum of 0 means that of the type. */
static const struct bounds {
    const char *field;
    size_t offset, size;
    uint64_t least, most;
} bounds[] = {
    DURATION(node_timeout_ms, 0),
    DURATION(stall_timeout_ms, 0),
    DURATION(max_ttl_ms, 1),
    DURATION(retry_delay_max_ms, 200), /* the default of retry_delay_ms */
    DURATION(reconnect_delay_ms, 1),
    DURATION(reconnect_delay_max_ms, 50),
    {"node_count: ", offsetof(redlock_options, node_count), sizeof(size_t), 1, REDLOCK_MAX_NODES},
    {"max_commands: ", offsetof(redlock_options, max_commands), sizeof(uint32_t), 16, 0},
    {"max_bytes: ", offsetof(redlock_options, max_bytes), sizeof(size_t), 4096, 0},
};

static redlock_options with_value(const struct bounds *field, uint64_t value) {
    redlock_options options = usual_options();
    uint32_t narrow = (uint32_t)value;
    options.reconnect_delay_max_ms = options.retry_delay_max_ms = CENTURY;
    memcpy((char *)&options + field->offset,
           field->size == sizeof(narrow) ? (void *)&narrow : (void *)&value, field->size);
    return options;
}

static void test_the_bounds_of_each_field(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(bounds); i++) {
        redlock_options options = with_value(&bounds[i], bounds[i].least);
        assert_options_accepted(&options);
        if (bounds[i].least > 0) {
            options = with_value(&bounds[i], bounds[i].least - 1);
            assert_options_refused(&options, bounds[i].field);
            options = with_value(&bounds[i], 0);
            assert_options_refused(&options, bounds[i].field);
        }
        options = with_value(&bounds[i], bounds[i].most != 0 ? bounds[i].most : UINT64_MAX);
        assert_options_accepted(&options);
        if (bounds[i].most != 0) {
            options = with_value(&bounds[i], bounds[i].most + 1);
            assert_options_refused(&options, bounds[i].field);
            options = with_value(&bounds[i], UINT64_MAX);
            assert_options_refused(&options, bounds[i].field);
        }
    }
}

static void test_a_delay_is_at_most_its_bound(void **state) {
    (void)state;
    redlock_options options = usual_options();
    options.retry_delay_ms = 0;
    assert_options_refused(&options, "retry_delay_ms: 0 is not between 1 and 3155760000000");
    options.retry_delay_ms = options.retry_delay_max_ms = 7;
    assert_options_accepted(&options);
    options.retry_delay_ms = 8;
    assert_options_refused(&options, "retry_delay_max_ms: 7 is not between 8 and 3155760000000");
    options = usual_options();
    options.reconnect_delay_ms = 2001;
    assert_options_refused(&options, "reconnect_delay_max_ms: 2000 is not between 2001 and");
}

static void test_the_drift(void **state) {
    (void)state;
    static const struct {
        double drift;
        const char *message; /* NULL: accepted */
    } rows[] = {
        {0, NULL},
        {0.01, NULL},
        {0.5, NULL},
        {-0.001, "drift: -0.001 is not between 0 and 0.5"},
        {0.51, "drift: 0.51 is not between 0 and 0.5"},
        {1, "drift: "}, /* a percentage by mistake */
        {INFINITY, "drift: "},
        {NAN, "drift: "},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        redlock_options options = usual_options();
        options.drift = rows[i].drift;
        if (rows[i].message == NULL) {
            assert_options_accepted(&options);
        } else {
            assert_options_refused(&options, rows[i].message);
        }
    }
}

static void test_nodes_must_be_set(void **state) {
    (void)state;
    redlock_options options = usual_options();
    options.nodes = NULL;
    assert_options_refused(&options, "nodes: not set");
}

static void test_name_and_owner(void **state) {
    (void)state;
    static const char longest[] =
        "0123456789012345678901234567890123456789012345678901234567890123";
    static const struct {
        const char *name;
        bool is_good;
    } rows[] = {
        {NULL, true},    {"", true},       {"!~", true},           {longest, true}, {"a b", false},
        {"a\nb", false}, {"a\x7f", false}, {"caf\xc3\xa9", false}, {"\x01", false},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        redlock_options named = usual_options(), owned = usual_options();
        named.name = owned.owner = rows[i].name;
        if (rows[i].is_good) {
            assert_options_accepted(&named);
            assert_options_accepted(&owned);
        } else {
            assert_options_refused(&named, "name: must be at most 64 printable ASCII");
            assert_options_refused(&owned, "owner: must be at most 64 printable ASCII");
        }
    }
    char too_long[sizeof(longest) + 1];
    redlock_options options = usual_options();
    strcpy(too_long, longest);
    strcat(too_long, "x");
    options.name = too_long;
    assert_options_refused(&options, "name: must be at most 64");
}

static void test_the_guards(void **state) {
    (void)state;
    redlock_options options = usual_options();
    for (int guards = REDLOCK_GUARDS_ON; guards <= REDLOCK_GUARDS_OFF; guards++) {
        options.guards = (redlock_guards)guards;
        assert_options_accepted(&options);
    }
    options.guards = (redlock_guards)3;
    assert_options_refused(&options, "guards: 3 is not one of");
    options.guards = (redlock_guards)-1;
    assert_options_refused(&options, "guards: -1 is not one of");
}

static uint64_t accepted_idle_ms(const redlock_options *given) {
    redlock_options options;
    assert_options_accepted(given);
    assert_int_equal(options_read(given, &options, NULL), REDLOCK_OK);
    return options.fence_idle_ms;
}

static void test_counters_live_as_long_as_locks_may(void **state) {
    (void)state;
    redlock_options options = usual_options();
    options.fence_idle_ms = 5;
    assert_options_refused(&options, "fence_idle_ms: 5 is less than max_ttl_ms, 30000, and not 0");
    options.fence_idle_ms = 29999;
    assert_options_refused(&options, "fence_idle_ms: 29999 is less than max_ttl_ms, 30000");
    options.fence_idle_ms = 30000;
    assert_int_equal(accepted_idle_ms(&options), 30000);
    options.max_ttl_ms = WEEK + 2;
    options.fence_idle_ms = WEEK + 1;
    assert_options_refused(&options, "fence_idle_ms: 604800001 is less than max_ttl_ms, 604800002");
}

/* An application that has not set fence_idle_ms is not refused for it. */
static void test_by_default_counters_follow_the_longest_ttl(void **state) {
    (void)state;
    redlock_options options = usual_options();
    assert_int_equal(accepted_idle_ms(&options), WEEK);
    options.max_ttl_ms = WEEK;
    assert_int_equal(accepted_idle_ms(&options), WEEK);
    options.max_ttl_ms = WEEK + 1;
    assert_int_equal(accepted_idle_ms(&options), WEEK + 1);
    options.max_ttl_ms = CENTURY;
    assert_int_equal(accepted_idle_ms(&options), CENTURY);
}

static void test_counters_may_live_for_ever(void **state) {
    (void)state;
    redlock_options options = usual_options();
    assert_int_equal(options.fence_idle_ms, WEEK);
    options.max_ttl_ms = CENTURY;
    options.fence_idle_ms = 0;
    assert_int_equal(accepted_idle_ms(&options), 0);
    options.fence_idle_ms = CENTURY;
    assert_options_accepted(&options);
    options.fence_idle_ms = CENTURY + 1;
    assert_options_refused(&options, "fence_idle_ms: ");
}

static void test_the_log_level(void **state) {
    (void)state;
    redlock_options options = usual_options();
    options.log_level = REDLOCK_LOG_DEBUG;
    assert_options_accepted(&options);
    options.log_level = REDLOCK_LOG_ERROR;
    assert_options_accepted(&options);
    options.log_level = (redlock_log_level)4;
    assert_options_refused(&options, "log_level: 4 is not one of");
    options.log_level = (redlock_log_level)-1;
    assert_options_refused(&options, "log_level: -1 is not one of");
}

static void *some_malloc(size_t size, void *context) {
    (void)size;
    return context;
}

static void *some_realloc(void *memory, size_t size, void *context) {
    (void)size;
    (void)context;
    return memory;
}

static void some_free(void *memory, void *context) {
    (void)memory;
    (void)context;
}

static void test_an_allocator_is_whole(void **state) {
    (void)state;
    redlock_options options = usual_options();
    for (unsigned missing = 0; missing < 4; missing++) {
        redlock_allocator allocator = {missing == 0 ? NULL : some_malloc,
                                       missing == 1 ? NULL : some_realloc,
                                       missing == 2 ? NULL : some_free, NULL};
        options.allocator = &allocator;
        if (missing < 3) {
            assert_options_refused(&options, "allocator: malloc, realloc and free must all be set");
        } else {
            assert_options_accepted(&options);
        }
    }
}

/* ---- structs of other versions ---- */

/* The files themselves are checked where they are read. */
static void test_a_tls_key_belongs_to_a_certificate(void **state) {
    (void)state;
    redlock_options options = usual_options();
    options.tls_key_file = "key.pem";
    assert_options_refused(&options,
                           "tls_key_file: tls_cert_file, which it belongs to, is not set");
    options.tls_cert_file = "cert.pem";
    assert_options_accepted(&options);
    options.tls_key_file = NULL;
    assert_options_accepted(&options);
}

static void test_a_struct_without_its_size(void **state) {
    (void)state;
    redlock_options options = {.nodes = nodes, .node_count = 1};
    assert_options_refused(&options, "size: not set; initialise the struct with "
                                     "REDLOCK_OPTIONS_INIT");
    redlock_request request = {.key = "key"};
    assert_request_refused(&request, "size: not set; initialise the struct with "
                                     "REDLOCK_REQUEST_INIT");
}

static void test_a_size_that_no_struct_has(void **state) {
    (void)state;
    redlock_options options = usual_options();
    options.size = 4097;
    assert_options_refused(&options, "size: 4097 is not that of the struct; use "
                                     "REDLOCK_OPTIONS_INIT");
    redlock_request request = REDLOCK_REQUEST_INIT;
    request.size = SIZE_MAX;
    assert_request_refused(&request, "size: 18446744073709551615 is not that of the struct");
}

static void test_an_older_smaller_struct_gets_the_defaults(void **state) {
    (void)state;
    redlock_options given, options;
    memset(&given, 0xee, sizeof(given)); /* the memory after the struct must not be read */
    given.size = offsetof(redlock_options, node_timeout_ms);
    given.nodes = nodes;
    given.node_count = 1;
    assert_int_equal(options_read(&given, &options, NULL), REDLOCK_OK);
    assert_int_equal(options.node_timeout_ms, 0);
    assert_string_equal(options.name, "redlock");
    given.size = offsetof(redlock_options, node_timeout_ms) - 1;
    assert_options_refused(&given, "size: not set");

    redlock_request asked, request;
    redlock_options usual = usual_options();
    memset(&asked, 0xee, sizeof(asked));
    asked.size = offsetof(redlock_request, key_length);
    asked.key = "key";
    assert_int_equal(options_read_request(&asked, &usual, &request, NULL), REDLOCK_OK);
    assert_int_equal(request.key_length, 3);
    assert_int_equal(request.ttl_ms, 10000);
    assert_true(request.on_lost == NULL);
}

static void test_a_newer_larger_struct_must_not_use_its_new_fields(void **state) {
    (void)state;
    struct {
        redlock_options options;
        char more[16];
    } given = {usual_options(), {0}};
    given.options.size = sizeof(given);
    assert_options_accepted(&given.options);
    given.more[15] = 1;
    assert_options_refused(&given.options, "size: a field was set that this version");
    given.options.size = sizeof(given) - 1;
    assert_options_accepted(&given.options);

    struct {
        redlock_request request;
        char more[8];
    } asked = {usual_request(), {0}};
    asked.request.size = sizeof(asked);
    assert_request_accepted(&asked.request);
    asked.more[0] = 1;
    assert_request_refused(&asked.request, "size: a field was set that this version");
}

/* ---- requests ---- */

static void test_keys_that_stay(void **state) {
    (void)state;
    redlock_request request = usual_request();
    request.ttl_ms = 10000;
    request.min_hold_ms = 10001;
    assert_request_refused(&request, "min_hold_ms: 10001 is more than ttl_ms, 10000");
    request.min_hold_ms = 10000;
    assert_request_accepted(&request);
    request.lock_delay_ms = 20001;
    assert_request_refused(&request, "ttl_ms: 10000 and lock_delay_ms, 20001, are more together "
                                     "than max_ttl_ms, 30000");
    request.lock_delay_ms = UINT64_MAX;
    assert_request_refused(&request, "ttl_ms: 10000 and lock_delay_ms");
    request.lock_delay_ms = 20000;
    assert_request_accepted(&request);
}

static void test_several_keys(void **state) {
    (void)state;
    static const char *names[REDLOCK_MAX_KEYS + 1] = {"a", "b", "a"};
    static size_t lengths[REDLOCK_MAX_KEYS + 1];
    static char long_name[REDLOCK_MAX_KEY + 1];
    redlock_request request = usual_request();
    size_t length;
    request.keys = names;
    request.key_count = 2;
    assert_request_refused(&request, "key: set beside keys");
    request.key = NULL;
    request = assert_request_accepted(&request);
    assert_string_equal(options_key(&request, 1, &length), "b");
    assert_int_equal(length, 1);
    request.key_count = 3;
    assert_request_refused(&request, "keys[2]: the same as keys[0]");
    lengths[2] = 2; /* a different key, with its NUL */
    request.key_lengths = lengths;
    request = assert_request_accepted(&request);
    assert_string_equal(options_key(&request, 2, &length), "a");
    assert_int_equal(length, 2);
    assert_string_equal(options_key(&request, 0, &length), "a");
    assert_int_equal(length, 1);
    request.key_lengths = NULL;
    names[2] = NULL;
    assert_request_refused(&request, "keys[2]: not set");
    names[2] = "";
    assert_request_refused(&request, "keys[2]: empty");
    names[2] = "c::fence";
    assert_request_refused(&request, "keys[2]: what ends in ::fence is kept");
    memset(long_name, 'k', REDLOCK_MAX_KEY - 1);
    names[2] = long_name;
    assert_request_refused(&request, "keys: longer than 65536 bytes together");
    names[2] = "c";
    request.permits = 2;
    assert_request_refused(&request, "permits: set beside keys");
    request.permits = 0;
    request.key_count = 0;
    assert_request_refused(&request, "key_count: 0 is not between 1 and 64");
    request.key_count = REDLOCK_MAX_KEYS + 1;
    assert_request_refused(&request, "key_count: 65 is not between 1 and 64");
    request.keys = NULL;
    assert_request_refused(&request, "keys: not set");
}

static void test_the_mode(void **state) {
    (void)state;
    redlock_request request = usual_request();
    assert_int_equal(request.mode, REDLOCK_EXCLUSIVE);
    request.mode = (redlock_mode)-1;
    assert_request_refused(&request, "mode: -1 is not one of redlock_mode");
    request.mode = (redlock_mode)3;
    assert_request_refused(&request, "mode: 3 is not one of redlock_mode");
    request.mode = REDLOCK_READER;
    assert_request_accepted(&request);
    request.fenced = true;
    assert_request_refused(&request, "fenced: readers do not hold the key alone");
    request.mode = REDLOCK_WRITER;
    assert_request_accepted(&request);
    request.fenced = false;
    assert_request_accepted(&request);
}

static void test_what_no_mode_goes_with(void **state) {
    (void)state;
    static const char *const keys[] = {"a", "b"};
    redlock_request request = usual_request();
    request.min_hold_ms = 1;
    request.mode = REDLOCK_WRITER;
    assert_request_accepted(&request);
    request.mode = REDLOCK_READER;
    assert_request_refused(&request, "min_hold_ms: readers do not hold the key alone");
    for (redlock_mode mode = REDLOCK_READER; mode <= REDLOCK_WRITER; mode++) {
        request = usual_request();
        request.mode = mode;
        request.permits = 2;
        assert_request_refused(&request,
                               "mode: readers and writers have one key, neither keys nor permits");
        request.permits = 0;
        request.key = NULL;
        request.keys = keys;
        request.key_count = 2;
        assert_request_refused(&request,
                               "mode: readers and writers have one key, neither keys nor permits");
    }
}

static void test_the_key(void **state) {
    (void)state;
    static char key[REDLOCK_MAX_KEY + 2];
    redlock_request request = usual_request();
    request.key = NULL;
    assert_request_refused(&request, "key: not set");
    request.key = "";
    assert_request_refused(&request, "key: empty");
    request.key = REDLOCK_MARKER_KEY;
    assert_request_refused(&request, "key: redlock:marker is kept");
    request.key = "redlock:waiting";
    assert_request_refused(&request, "key: redlock:waiting is kept for queues");
    request.key = "redlock:queues";
    assert_request_refused(&request, "key: redlock:queues is kept for queues");
    request.key = "orders:42::queue";
    assert_request_refused(&request, "key: what ends in ::queue is kept for queues");
    request.key = "orders:42::fence";
    assert_request_refused(&request, "key: what ends in ::fence is kept for counters");
    request.key = "::fence";
    assert_request_refused(&request, "key: what ends in ::fence is kept");
    request.key = "orders:42::readers";
    assert_request_refused(&request, "key: what ends in ::readers is kept for readers");
    request.key = "orders:42::writer";
    assert_request_refused(&request, "key: what ends in ::writer is kept for writers");
    request.key = "orders:fence"; /* allowed */
    assert_request_accepted(&request);
    request.key = "redlock:markee";
    request = assert_request_accepted(&request);
    assert_int_equal(request.key_length, 14);
    size_t length;
    assert_string_equal(options_key(&request, 0, &length), "redlock:markee");
    assert_int_equal(length, 14);
    request.key_length = 0;
    request.key = "a\0b";
    assert_int_equal(assert_request_accepted(&request).key_length, 1);
    request.key_length = 3;
    assert_int_equal(assert_request_accepted(&request).key_length, 3);
    memset(key, 'k', REDLOCK_MAX_KEY);
    request.key = key;
    request.key_length = 0;
    assert_int_equal(assert_request_accepted(&request).key_length, REDLOCK_MAX_KEY);
    key[REDLOCK_MAX_KEY] = 'k';
    assert_request_refused(&request, "key: longer than 65536 bytes");
    request.key_length = REDLOCK_MAX_KEY;
    assert_request_accepted(&request);
    request.key_length = REDLOCK_MAX_KEY + 1;
    assert_request_refused(&request, "key: longer than 65536 bytes");
    request.key_length = SIZE_MAX;
    assert_request_refused(&request, "key: longer than 65536 bytes");
}

static void test_the_ttl_leaves_more_than_the_least_validity(void **state) {
    (void)state;
    static const struct {
        uint64_t ttl_ms, min_validity_ms;
        const char *message; /* NULL: accepted */
    } rows[] = {
        {3, 0, NULL}, /* it leaves 0.97 ms */
        {30000, 0, NULL},
        {10000, 9897, NULL},
        {10000, 9898,
         "ttl_ms: 10000 leaves 9898 ms of validity after drift, and more than "
         "min_validity_ms, 9898, is asked for"},
        {10000, 10000, "ttl_ms: "},
        {10000, UINT64_MAX, "ttl_ms: "},
        {1, 0, "ttl_ms: 1 leaves 0 ms"},
        {2, 0, "ttl_ms: 2 leaves 0 ms"},
        {3, 1, "ttl_ms: 3 leaves 0 ms"},
        {0, 0, "ttl_ms: 0 is not between 1 and max_ttl_ms, 30000"},
        {30001, 0, "ttl_ms: 30001 is not between 1 and max_ttl_ms, 30000"},
        {UINT64_MAX, 0, "ttl_ms: 18446744073709551615 is not between"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        redlock_request request = usual_request();
        request.ttl_ms = rows[i].ttl_ms;
        request.min_validity_ms = rows[i].min_validity_ms;
        if (rows[i].message == NULL) {
            assert_request_accepted(&request);
        } else {
            assert_request_refused(&request, rows[i].message);
        }
    }
}

static void test_a_watched_key_needs_a_watchdog(void **state) {
    (void)state;
    redlock_request request = usual_request();
    redlock_options options = REDLOCK_OPTIONS_INIT;
    request.watch_key = true;
    assert_request_refused(&request, "watch_key: ");
    request.watchdog = true;
    assert_request_accepted(&request);
    assert_true(options_terms(&options, &request).watches);
    request.mode = REDLOCK_READER;
    assert_request_refused(&request, "watch_key: ");
}

static void test_max_hold_bounds_a_watchdog(void **state) {
    (void)state;
    redlock_request request = usual_request();
    request.max_hold_ms = 1;
    assert_request_refused(&request, "max_hold_ms: ");
    request.watchdog = true;
    assert_request_accepted(&request);
}

static void test_permits_leave_room_in_the_key(void **state) {
    (void)state;
    static char key[REDLOCK_MAX_KEY + 1];
    redlock_request request = usual_request();
    assert_int_equal(assert_request_accepted(&request).permits, 0);
    request.permits = REDLOCK_MAX_PERMITS;
    assert_int_equal(assert_request_accepted(&request).permits, 256);
    request.permits++;
    assert_request_refused(&request, "permits: 257 is not between 0 and 256");
    request.permits = UINT32_MAX;
    assert_request_refused(&request, "permits: 4294967295 is not");
    memset(key, 'k', REDLOCK_MAX_KEY);
    request.key = key;
    request.key_length = REDLOCK_MAX_KEY - 4;
    request.permits = 1;
    assert_request_accepted(&request);
    request.key_length++;
    assert_request_refused(&request, "key: with permits, longer than 65532 bytes");
    request.permits = 0;
    assert_request_accepted(&request);
    request.permits = 2;
    request.key_length = 0;
    assert_request_refused(&request, "key: with permits, longer than 65532 bytes");
}

/* A WAIT makes a node silent for slightly more than 1/2 of the round's time. */
static void test_replicas_are_waited_for_before_a_stall(void **state) {
    (void)state;
    redlock_options options = usual_options();
    redlock_request request = usual_request(), checked;
    assert_int_equal(options_wait_ms(&options), 126);
    request.wait_replicas = 2;
    options.stall_timeout_ms = 249;
    assert_request_refused_by(&options, &request,
                              "wait_replicas: 2 needs a stall_timeout_ms, 249, of at least "
                              "node_timeout_ms, 250: ");
    options.node_timeout_ms = 50;
    assert_int_equal(options_wait_ms(&options), 26);
    for (options.stall_timeout_ms = 1; options.stall_timeout_ms < 50; options.stall_timeout_ms++) {
        assert_request_refused_by(&options, &request, "wait_replicas: 2 needs a stall_timeout_ms");
    }
    options.stall_timeout_ms = 49;
    assert_request_refused_by(&options, &request,
                              "wait_replicas: 2 needs a stall_timeout_ms, 49, of at least "
                              "node_timeout_ms, 50: ");
    options.stall_timeout_ms = 50;
    assert_int_equal(options_read_request(&request, &options, &checked, NULL), REDLOCK_OK);
    options.stall_timeout_ms = 0; /* follows the network */
    assert_int_equal(options_read_request(&request, &options, &checked, NULL), REDLOCK_OK);
    options.stall_timeout_ms = 1;
    request.wait_replicas = 0;
    assert_int_equal(options_read_request(&request, &options, &checked, NULL), REDLOCK_OK);
}

/* ---- terms ---- */

static void test_how_long_to_go_on_trying(void **state) {
    (void)state;
    static const struct {
        uint64_t wait_ms;
        uint32_t retries;
        uint64_t wait;
        uint32_t expected_retries;
    } rows[] = {
        {0, 0, NANOS_NEVER, 0}, /* one try */
        {0, 3, NANOS_NEVER, 3},
        {500, 0, MS(500), UINT32_MAX},
        {500, 3, MS(500), 3}, /* whichever bound is reached first */
        {1, 0, MS(1), UINT32_MAX},
        {UINT64_MAX, 0, NANOS_NEVER, UINT32_MAX},
        {UINT64_MAX, 3, NANOS_NEVER, 3},
        {UINT64_MAX / 2, 0, NANOS_NEVER, UINT32_MAX}, /* longer than the clock can represent */
        {0, UINT32_MAX, NANOS_NEVER, UINT32_MAX},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        redlock_options options = usual_options();
        redlock_request request = usual_request();
        request.wait_ms = rows[i].wait_ms;
        request.retries = rows[i].retries;
        struct lease_terms terms = options_terms(&options, &request);
        assert_int_equal(terms.wait, rows[i].wait);
        assert_int_equal(terms.retries, rows[i].expected_retries);
    }
}

static void test_the_terms_are_what_was_asked_for(void **state) {
    (void)state;
    redlock_options options = usual_options();
    redlock_request request = usual_request();
    struct lease_terms terms = options_terms(&options, &request);
    assert_true(terms.drift == 0.01);
    assert_int_equal(terms.ttl, MS(10000));
    assert_int_equal(terms.connect_patience, MS(50));
    assert_int_equal(terms.retry_delay, MS(200));
    assert_int_equal(terms.retry_delay_max, MS(200));
    assert_int_equal(terms.min_validity, 0);
    assert_false(terms.watchdog);
    assert_int_equal(terms.permits, 0);
    assert_int_equal(terms.max_hold, NANOS_NEVER);
    request.min_validity_ms = 300;
    request.watchdog = true;
    request.max_hold_ms = 60000;
    terms = options_terms(&options, &request);
    assert_int_equal(terms.min_validity, MS(300));
    assert_true(terms.watchdog);
    assert_int_equal(terms.max_hold, MS(60000));
    request.permits = 7;
    assert_int_equal(options_terms(&options, &request).permits, 7);
    request.max_hold_ms = UINT64_MAX;
    assert_int_equal(options_terms(&options, &request).max_hold, NANOS_NEVER);
}

static void test_the_handover(void **state) {
    (void)state;
    redlock_options options = usual_options();
    options.handover = REDLOCK_HANDOVER_CONFIRM;
    assert_options_accepted(&options);
    options.handover = (redlock_handover)(REDLOCK_HANDOVER_CONFIRM + 1);
    assert_options_refused(&options, "handover:");
}

static bool trusts_pushes(const redlock_options *options, const redlock_request *request) {
    return options_terms(options, request).trusts_pushes;
}

/* A pushed key lasts only for a reservation, whatever min_hold_ms or lock_delay_ms are. */
static void test_who_may_trust_pushes(void **state) {
    (void)state;
    redlock_options options = usual_options();
    redlock_request request = usual_request();
    assert_false(trusts_pushes(&options, &request));
    request.watchdog = true;
    assert_true(trusts_pushes(&options, &request));
    request.min_hold_ms = 1;
    assert_false(trusts_pushes(&options, &request));
    request.min_hold_ms = 0;
    request.lock_delay_ms = 1;
    assert_false(trusts_pushes(&options, &request));
    request.lock_delay_ms = 0;
    options.guards = REDLOCK_GUARDS_OFF;
    assert_false(trusts_pushes(&options, &request));
    options.guards = REDLOCK_GUARDS_ON;
    request.ttl_ms = 99;
    assert_false(trusts_pushes(&options, &request));
    request.ttl_ms = 100;
    assert_true(trusts_pushes(&options, &request));
    options.handover = REDLOCK_HANDOVER_CONFIRM;
    assert_false(trusts_pushes(&options, &request));
}

/* Less the drift of the longest TTL, because the node's own clock measures it. */
static void test_a_reservation_ends_before_a_new_memory_counts(void **state) {
    (void)state;
    static const struct {
        uint64_t max_ttl_ms;
        uint64_t ttl_ms;
        uint64_t reservation;
    } rows[] = {
        {30000, 30000, MS(1000)}, {30000, 700, MS(700)}, {1000, 1000, MS(988)},
        {1000, 500, MS(500)},     {500, 500, MS(493)},   {3, 3, MS(1)},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        redlock_options options = usual_options();
        redlock_request request = usual_request();
        options.max_ttl_ms = rows[i].max_ttl_ms;
        request.ttl_ms = rows[i].ttl_ms;
        assert_int_equal(options_terms(&options, &request).reservation, rows[i].reservation);
    }
}

/* Requests that limit their tries, or that wait for replicas, poll. */
static void test_who_stands_in_queue(void **state) {
    (void)state;
    redlock_options options = usual_options();
    redlock_request request = usual_request();
    request.wait_ms = 0;
    request.retries = 0;
    assert_false(options_terms(&options, &request).queues);
    request.wait_ms = 1;
    assert_true(options_terms(&options, &request).queues);
    request.retries = 1;
    assert_false(options_terms(&options, &request).queues);
    request.retries = 0;
    request.wait_replicas = 1;
    assert_false(options_terms(&options, &request).queues);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_defaults),
        cmocka_unit_test(test_the_bounds_of_each_field),
        cmocka_unit_test(test_a_delay_is_at_most_its_bound),
        cmocka_unit_test(test_the_drift),
        cmocka_unit_test(test_nodes_must_be_set),
        cmocka_unit_test(test_name_and_owner),
        cmocka_unit_test(test_the_guards),
        cmocka_unit_test(test_counters_live_as_long_as_locks_may),
        cmocka_unit_test(test_by_default_counters_follow_the_longest_ttl),
        cmocka_unit_test(test_counters_may_live_for_ever),
        cmocka_unit_test(test_the_log_level),
        cmocka_unit_test(test_an_allocator_is_whole),
        cmocka_unit_test(test_a_tls_key_belongs_to_a_certificate),
        cmocka_unit_test(test_a_struct_without_its_size),
        cmocka_unit_test(test_a_size_that_no_struct_has),
        cmocka_unit_test(test_an_older_smaller_struct_gets_the_defaults),
        cmocka_unit_test(test_a_newer_larger_struct_must_not_use_its_new_fields),
        cmocka_unit_test(test_the_key),
        cmocka_unit_test(test_the_key_alone),
        cmocka_unit_test(test_several_keys),
        cmocka_unit_test(test_keys_that_stay),
        cmocka_unit_test(test_the_mode),
        cmocka_unit_test(test_what_no_mode_goes_with),
        cmocka_unit_test(test_the_ttl_leaves_more_than_the_least_validity),
        cmocka_unit_test(test_max_hold_bounds_a_watchdog),
        cmocka_unit_test(test_a_watched_key_needs_a_watchdog),
        cmocka_unit_test(test_permits_leave_room_in_the_key),
        cmocka_unit_test(test_replicas_are_waited_for_before_a_stall),
        cmocka_unit_test(test_how_long_to_go_on_trying),
        cmocka_unit_test(test_the_terms_are_what_was_asked_for),
        cmocka_unit_test(test_the_handover),
        cmocka_unit_test(test_who_may_trust_pushes),
        cmocka_unit_test(test_who_stands_in_queue),
        cmocka_unit_test(test_a_reservation_ends_before_a_new_memory_counts),
    };
    return cmocka_run_group_tests_name("options", tests, NULL, NULL);
}
