/* Tests options and requests whose fields are set by name. */
#include "unit.h"

#include <redlock/settings.h>
#include <stdlib.h>
#include <string.h>

/* ---- memory: the linker wraps the functions that settings.c calls ---- */

static unsigned until_failure; /* calls until there is no memory; 0: there is */

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *memory, size_t size);

static bool fails(void) {
    return until_failure != 0 && --until_failure == 0;
}

void *__wrap_malloc(size_t size) {
    return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size) {
    return fails() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *memory, size_t size) {
    return fails() ? NULL : __real_realloc(memory, size);
}

/* ---- helpers ---- */

static void set_option(redlock_options *options, const char *field, const char *value) {
    redlock_error error;
    assert_int_equal(redlock_options_set(options, field, value, &error), REDLOCK_OK);
}

static void set_term(redlock_request *request, const char *field, const char *value,
                     size_t length) {
    redlock_error error;
    assert_int_equal(redlock_request_set(request, field, value, length, &error), REDLOCK_OK);
}

static void refuses_option(redlock_options *options, const char *field, const char *value,
                           const char *message) {
    redlock_error error;
    assert_int_equal(redlock_options_set(options, field, value, &error), REDLOCK_EINVAL);
    assert_int_equal(error.status, REDLOCK_EINVAL);
    assert_string_equal(error.message, message);
    assert_int_equal(redlock_options_set(options, field, value, NULL), REDLOCK_EINVAL);
}

static void refuses_term(redlock_request *request, const char *field, const char *value,
                         const char *message) {
    redlock_error error;
    assert_int_equal(redlock_request_set(request, field, value, 0, &error), REDLOCK_EINVAL);
    assert_string_equal(error.message, message);
}

static void assert_default_options(const redlock_options *options) {
    static redlock_options usual = REDLOCK_OPTIONS_INIT; /* static: zeros between its fields */
    assert_string_equal(options->name, usual.name);
    usual.name = options->name; /* the same text may be at two places */
    assert_memory_equal(options, &usual, sizeof(usual));
}

static void assert_default_request(const redlock_request *request) {
    static const redlock_request usual = REDLOCK_REQUEST_INIT;
    assert_memory_equal(request, &usual, sizeof(usual));
}

/* ---- tests ---- */

static void test_a_new_struct_has_the_defaults(void **state) {
    (void)state;
    redlock_options *options = redlock_options_new();
    redlock_request *request = redlock_request_new();
    assert_default_options(options);
    assert_default_request(request);
    redlock_options_free(options);
    redlock_request_free(request);
    redlock_options_free(NULL);
    redlock_request_free(NULL);
}

static void test_options_are_set_by_name(void **state) {
    (void)state;
    redlock_options *options = redlock_options_new();
    set_option(options, "nodes", "redis://one");
    set_option(options, "nodes", "redis://two");
    set_option(options, "node_timeout_ms", "1");
    set_option(options, "stall_timeout_ms", "2");
    set_option(options, "max_ttl_ms", "18446744073709551615");
    set_option(options, "drift", "0.025");
    set_option(options, "retry_delay_ms", "4");
    set_option(options, "retry_delay_max_ms", "5");
    set_option(options, "reconnect_delay_ms", "6");
    set_option(options, "reconnect_delay_max_ms", "7");
    set_option(options, "max_commands", "4294967295");
    set_option(options, "max_bytes", "8");
    set_option(options, "name", "ours");
    set_option(options, "log_level", "error");
    set_option(options, "guards", "lenient");
    set_option(options, "tls_ca_file", "a");
    set_option(options, "tls_ca_path", "b");
    set_option(options, "tls_cert_file", "c");
    set_option(options, "tls_key_file", "d");
    set_option(options, "fence_idle_ms", "9");
    set_option(options, "owner", "me");
    set_option(options, "close_timeout_ms", "10");
    set_option(options, "handover", "confirm");
    set_option(options, "max_local_handoffs", "11");
    set_option(options, "max_unsent", "12");
    set_option(options, "idle_close_ms", "13");

    assert_int_equal(options->node_count, 2);
    assert_string_equal(options->nodes[0], "redis://one");
    assert_string_equal(options->nodes[1], "redis://two");
    assert_int_equal(options->node_timeout_ms, 1);
    assert_int_equal(options->stall_timeout_ms, 2);
    assert_true(options->max_ttl_ms == UINT64_MAX);
    assert_true(options->drift == 0.025);
    assert_int_equal(options->retry_delay_ms, 4);
    assert_int_equal(options->retry_delay_max_ms, 5);
    assert_int_equal(options->reconnect_delay_ms, 6);
    assert_int_equal(options->reconnect_delay_max_ms, 7);
    assert_int_equal(options->max_commands, UINT32_MAX);
    assert_int_equal(options->max_bytes, 8);
    assert_string_equal(options->name, "ours");
    assert_int_equal(options->log_level, REDLOCK_LOG_ERROR);
    assert_int_equal(options->guards, REDLOCK_GUARDS_LENIENT);
    assert_string_equal(options->tls_ca_file, "a");
    assert_string_equal(options->tls_ca_path, "b");
    assert_string_equal(options->tls_cert_file, "c");
    assert_string_equal(options->tls_key_file, "d");
    assert_int_equal(options->fence_idle_ms, 9);
    assert_string_equal(options->owner, "me");
    assert_int_equal(options->close_timeout_ms, 10);
    assert_int_equal(options->handover, REDLOCK_HANDOVER_CONFIRM);
    assert_int_equal(options->max_local_handoffs, 11);
    assert_int_equal(options->max_unsent, 12);
    assert_int_equal(options->idle_close_ms, 13);
    redlock_options_free(options);
}

static void test_requests_are_set_by_name(void **state) {
    (void)state;
    redlock_request *request = redlock_request_new();
    set_term(request, "key", "a\0b", 3);
    set_term(request, "ttl_ms", "1", 0);
    set_term(request, "wait_ms", "18446744073709551615", 0);
    set_term(request, "retries", "2", 0);
    set_term(request, "min_validity_ms", "3", 0);
    set_term(request, "watchdog", "true", 0);
    set_term(request, "max_hold_ms", "4", 0);
    set_term(request, "fenced", "true", 0);
    set_term(request, "keys", "one", 0);
    set_term(request, "keys", "t\0o", 3);
    set_term(request, "min_hold_ms", "5", 0);
    set_term(request, "lock_delay_ms", "6", 0);
    set_term(request, "wait_replicas", "7", 0);
    set_term(request, "permits", "8", 0);
    set_term(request, "mode", "writer", 0);
    set_term(request, "watch_key", "true", 0);

    assert_int_equal(request->key_length, 3);
    assert_memory_equal(request->key, "a\0b", 4);
    assert_int_equal(request->ttl_ms, 1);
    assert_true(request->wait_ms == REDLOCK_FOREVER);
    assert_int_equal(request->retries, 2);
    assert_int_equal(request->min_validity_ms, 3);
    assert_true(request->watchdog);
    assert_int_equal(request->max_hold_ms, 4);
    assert_true(request->fenced);
    assert_int_equal(request->key_count, 2);
    assert_string_equal(request->keys[0], "one");
    assert_int_equal(request->key_lengths[0], 0);
    assert_memory_equal(request->keys[1], "t\0o", 4);
    assert_int_equal(request->key_lengths[1], 3);
    assert_int_equal(request->min_hold_ms, 5);
    assert_int_equal(request->lock_delay_ms, 6);
    assert_int_equal(request->wait_replicas, 7);
    assert_int_equal(request->permits, 8);
    assert_int_equal(request->mode, REDLOCK_WRITER);
    assert_true(request->watch_key);
    set_term(request, "key", "c", 0);
    set_term(request, "watchdog", "false", 0);
    assert_string_equal(request->key, "c");
    assert_int_equal(request->key_length, 0);
    assert_false(request->watchdog);
    redlock_request_free(request);
}

/* Each kind of field, set and taken back, leaves the struct as it was. */
static void test_null_is_the_default(void **state) {
    (void)state;
    static const char *const options_of[][2] = {
        {"nodes", "redis://one"}, {"max_ttl_ms", "1"}, {"max_commands", "1"},
        {"drift", "0.3"},         {"guards", "off"},   {"name", "ours"},
    };
    static const char *const terms_of[][2] = {
        {"key", "a"}, {"keys", "b"}, {"watchdog", "true"}, {"mode", "reader"}};
    redlock_options *options = redlock_options_new();
    redlock_request *request = redlock_request_new();
    for (size_t i = 0; i < sizeof(options_of) / sizeof(options_of[0]); i++) {
        set_option(options, options_of[i][0], options_of[i][1]);
        set_option(options, options_of[i][0], options_of[i][1]);
        set_option(options, options_of[i][0], NULL);
        assert_default_options(options);
    }
    for (size_t i = 0; i < sizeof(terms_of) / sizeof(terms_of[0]); i++) {
        set_term(request, terms_of[i][0], terms_of[i][1], 1 + strlen(terms_of[i][1]));
        set_term(request, terms_of[i][0], NULL, 0);
        assert_default_request(request);
    }
    redlock_options_free(options);
    redlock_request_free(request);
}

static void test_forever_is_a_number_of_64_bits(void **state) {
    (void)state;
    redlock_options *options = redlock_options_new();
    redlock_request *request = redlock_request_new();
    set_term(request, "wait_ms", "forever", 0);
    assert_true(request->wait_ms == REDLOCK_FOREVER);
    refuses_term(request, "retries", "forever",
                 "retries: \"forever\" is not a number up to 4294967295");
    refuses_option(options, "drift", "forever", "drift: \"forever\" is not a number such as 0.01");
    redlock_options_free(options);
    redlock_request_free(request);
}

static void test_a_refusal_names_the_field(void **state) {
    (void)state;
    redlock_options *options = redlock_options_new();
    redlock_request *request = redlock_request_new();
    refuses_option(options, "node", "a", "node: there is no such option");
    refuses_option(options, "size", "1", "size: there is no such option");
    refuses_option(options, "", NULL, ": there is no such option");
    refuses_option(options, NULL, "1", "no option is named, or there is no struct");
    refuses_option(NULL, "name", "a", "no option is named, or there is no struct");
    refuses_option(options, "max_ttl_ms", "",
                   "max_ttl_ms: \"\" is not a number up to 18446744073709551615");
    refuses_option(options, "max_ttl_ms", "-1",
                   "max_ttl_ms: \"-1\" is not a number up to 18446744073709551615");
    refuses_option(options, "max_ttl_ms", "1s",
                   "max_ttl_ms: \"1s\" is not a number up to 18446744073709551615");
    refuses_option(
        options, "max_ttl_ms", "18446744073709551616",
        "max_ttl_ms: \"18446744073709551616\" is not a number up to 18446744073709551615");
    refuses_option(options, "max_commands", "4294967296",
                   "max_commands: \"4294967296\" is not a number up to 4294967295");
    refuses_option(options, "drift", "", "drift: \"\" is not a number such as 0.01");
    refuses_option(options, "drift", "0,1", "drift: \"0,1\" is not a number such as 0.01");
    refuses_option(options, "drift", "1.", "drift: \"1.\" is not a number such as 0.01");
    refuses_option(options, "drift", "nan", "drift: \"nan\" is not a number such as 0.01");
    refuses_option(options, "guards", "ON", "guards: \"ON\" is not on, lenient or off");
    refuses_option(options, "handover", "", "handover: \"\" is not push or confirm");
    refuses_term(request, "watchdog", "1", "watchdog: \"1\" is not false or true");
    refuses_term(NULL, "key", "1", "no field of a request is named, or there is no struct");
    refuses_term(request, "on_lost", "1", "on_lost: there is no such field of a request");
    assert_default_options(options);
    assert_default_request(request);
    redlock_options_free(options);
    redlock_request_free(request);
}

static void test_without_memory_nothing_changes(void **state) {
    (void)state;
    redlock_request *request = redlock_request_new();
    set_term(request, "key", "a", 0);
    set_term(request, "keys", "one", 0);
    for (unsigned call = 1; call <= 3; call++) {
        redlock_error error;
        until_failure = call;
        assert_int_equal(redlock_request_set(request, "keys", "two", 0, &error), REDLOCK_ENOMEM);
        assert_string_equal(error.message, "keys: out of memory");
        until_failure = 1;
        assert_int_equal(redlock_request_set(request, "key", "b", 0, &error), REDLOCK_ENOMEM);
        assert_string_equal(error.message, "key: out of memory");
        assert_string_equal(request->key, "a");
        assert_int_equal(request->key_count, 1);
        assert_string_equal(request->keys[0], "one");
        assert_int_equal(request->key_lengths[0], 0);
    }
    until_failure = 1;
    assert_null(redlock_options_new());
    until_failure = 1;
    assert_null(redlock_request_new());
    redlock_request_free(request);
}

static void log_nothing(redlock_log_level level, const char *line, void *arg) {
    (void)level;
    (void)line;
    (void)arg;
}

static void trace_nothing(const redlock_event *event, void *arg) {
    (void)event;
    (void)arg;
}

static void lose_nothing(redlock_lock *lock, redlock_status status, void *arg) {
    (void)lock;
    (void)status;
    (void)arg;
}

static void test_hooks_are_set_with_their_argument(void **state) {
    redlock_options *options = redlock_options_new();
    redlock_request *request = redlock_request_new();
    redlock_options_set_log(NULL, log_nothing, state);
    redlock_options_set_trace(NULL, NULL, state);
    redlock_request_set_on_lost(NULL, NULL, state);
    redlock_options_set_log(options, log_nothing, state);
    redlock_options_set_trace(options, trace_nothing, &options);
    redlock_request_set_on_lost(request, lose_nothing, &request);
    assert_true(options->log == log_nothing && options->log_arg == state);
    assert_true(options->trace == trace_nothing && options->trace_arg == &options);
    assert_true(request->on_lost == lose_nothing && request->on_lost_arg == &request);
    redlock_options_free(options);
    redlock_request_free(request);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_new_struct_has_the_defaults),
        cmocka_unit_test(test_options_are_set_by_name),
        cmocka_unit_test(test_requests_are_set_by_name),
        cmocka_unit_test(test_null_is_the_default),
        cmocka_unit_test(test_forever_is_a_number_of_64_bits),
        cmocka_unit_test(test_a_refusal_names_the_field),
        cmocka_unit_test(test_without_memory_nothing_changes),
        cmocka_unit_test(test_hooks_are_set_with_their_argument),
    };
    return cmocka_run_group_tests_name("settings", tests, NULL, NULL);
}
