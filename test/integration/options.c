/*
 * Refusals, whose message must name the wrong option and no password; and accepted values, which
 * must work: addresses, databases, logins, structs of other sizes.
 */
#include "harness.h"
#include "master_data.h"

#include <fcntl.h>
#include <math.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define KEY "orders:42"
#define GOOD "redis://127.0.0.1:1"
#define PASSWORD "S3cr3t"

/* ------------------------------------------------------------------------------------- mistakes */

static void assert_options_refused(struct fixture *f, const redlock_options *options,
                                   const char *named) {
    redlock_client *client = (redlock_client *)f; /* must be overwritten */
    redlock_error error;

    assert_int_equal(try_to_create(f, options, &client, &error), REDLOCK_EINVAL);
    assert_null(client);
    assert_int_equal(error.status, REDLOCK_EINVAL);
    if (strstr(error.message, named) == NULL) {
        fail_msg("\"%s\" is not in the error: %s", named, error.message);
    }
    assert_null(strstr(error.message, PASSWORD));
    assert_int_equal(try_to_create(f, options, &client, NULL), REDLOCK_EINVAL);
    assert_int_equal(f->allocator.blocks, 0);
}

static const struct {
    const char *uri;
    const char *named; /* part of the message */
} bad_uris[] = {
    {"", "redis://"},
    {"127.0.0.1", "redis://"},
    {"127.0.0.1:6379", "redis://"},
    {"redis:", "redis://"},
    {"redis:/127.0.0.1", "redis://"},
    {"http://127.0.0.1:6379", "redis://"},
    {"REDIS", "redis://"},
    {"redis://", "host"},
    {"redis://:6379", "host"},
    {"redis:///0", "host"},
    {"redis://[]:6379", "host"},
    {"redis://ho st", "space"},
    {"redis://ho\nst", "printable"},
    {"redis://h\xc3\xb6st", "printable"},
    {"redis://ho$t", "host"},
    {"redis://127.0.0.1:", "port"},
    {"redis://127.0.0.1:0", "port"},
    {"redis://127.0.0.1:65536", "port"},
    {"redis://127.0.0.1:99999999999999999999", "port"},
    {"redis://127.0.0.1:-1", "port"},
    {"redis://127.0.0.1:+1", "port"},
    {"redis://127.0.0.1:6379x", "port"},
    {"redis://127.0.0.1:x", "port"},
    {"redis://::1:6379", "host"},
    {"redis://::1", "host"},
    {"redis://fe80::1", "bracket"},
    {"redis://[::1", "]"},
    {"redis://[::1]6379", "]"},
    {"redis://[::1]:", "port"},
    {"redis://[host]:6379", "host"},
    {"redis://127.0.0.1/x", "database"},
    {"redis://127.0.0.1/-1", "database"},
    {"redis://127.0.0.1/1/2", "database"},
    {"redis://127.0.0.1/1x", "database"},
    {"redis://127.0.0.1/99999999999999999999", "database"},
    {"redis://127.0.0.1?db=1", "durable=yes"},
    {"redis://127.0.0.1/0?db=1", "durable=yes"},
    {"redis://127.0.0.1?durable=perhaps", "durable"},
    {"redis://127.0.0.1#1", "#"},
    {"redis://@127.0.0.1", "password"},
    {"redis://:@127.0.0.1", "password"},
    {"redis://user@127.0.0.1", "password"},
    {"redis://user:@127.0.0.1", "password"},
    {"redis://a:" PASSWORD ":b@127.0.0.1", "%3A"},
    {"redis://:" PASSWORD "@x@127.0.0.1", "%40"},
    {"redis://:" PASSWORD "/x@127.0.0.1", "%"},
    {"redis://:" PASSWORD "%@127.0.0.1", "%"},
    {"redis://:" PASSWORD "%4@127.0.0.1", "%"},
    {"redis://:" PASSWORD "%4x@127.0.0.1", "%"},
    {"redis://:" PASSWORD "%00@127.0.0.1", "%"},
    {"redis://%zz:" PASSWORD "@127.0.0.1", "%"},
    {"redis://:" PASSWORD "@", "host"},
    {"redis://:" PASSWORD "@:6379", "host"},
    {"redis://:" PASSWORD "@127.0.0.1:x", "port"},
    {"unix://", "unix:///path"},
    {"unix:///", "path"},
    {"unix:/tmp/sock", "unix://"},
    {"unix://tmp/sock", "unix:///path"},
    {"unix:///tmp/%zz", "%"},
    {"unix:///tmp/sock?", "db="},
    {"unix:///tmp/sock?db=", "database"},
    {"unix:///tmp/sock?db=x", "database"},
    {"unix:///tmp/sock?database=1", "db="},
    {"unix:///tmp/sock?db=1&x=2", "db="},
};

static void a_mistaken_uri_is_named(void **state) {
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof(bad_uris) / sizeof(bad_uris[0]); i++) {
        const char *uris[] = {GOOD, GOOD "1", bad_uris[i].uri, GOOD "2"};
        redlock_options options = patient_options(f, uris, 4);

        assert_options_refused(f, &options, bad_uris[i].named);
        assert_options_refused(f, &options, "nodes[2]");
    }
}

static void a_server_that_is_named_twice_is_refused(void **state) {
    static const char *const twice[][4] = {
        {"redis://127.0.0.1:7001", "redis://127.0.0.1:7001", "nodes[1]: 127.0.0.1:7001",
         "nodes[0] 127.0.0.1:7001"},
        {"redis://localhost", "redis://:secret@LOCALHOST:6379/0?durable=yes",
         "nodes[1]: LOCALHOST:6379", "nodes[0] localhost:6379"},
        {"redis://[::1]/2", "redis://[::1]:6379/2", "nodes[1]: [::1]:6379/2",
         "nodes[0] [::1]:6379/2"},
        {"unix:///run/a", "unix:///run/%61?db=0", "nodes[1]: /run/a", "nodes[0] /run/a"},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof(twice) / sizeof(twice[0]); i++) {
        redlock_options options = patient_options(f, twice[i], 2);

        assert_options_refused(f, &options, "is named twice");
        assert_options_refused(f, &options, twice[i][2]);
        assert_options_refused(f, &options, twice[i][3]);
    }
}

static void a_uri_too_long_is_named(void **state) {
    struct fixture *f = *state;
    static char uri[70000] = "unix:///";
    const char *uris[] = {uri};
    redlock_options options = patient_options(f, uris, 1);

    for (size_t length = 200; length < sizeof(uri); length += 33333) {
        memset(uri + 8, 'x', length);
        uri[8 + length] = '\0';
        assert_options_refused(f, &options, "nodes[0]");
        assert_options_refused(f, &options, "longer");
    }
}

/* Puts one mistake into valid options. */
typedef void mistake(redlock_options *options);

static const char *const null_uri[] = {GOOD, NULL};

static void no_size(redlock_options *options) {
    options->size = 0;
}
static void no_nodes(redlock_options *options) {
    options->nodes = NULL;
}
static void a_null_node(redlock_options *options) {
    options->nodes = null_uri;
    options->node_count = 2;
}
static void no_node_count(redlock_options *options) {
    options->node_count = 0;
}
static void too_many_nodes(redlock_options *options) {
    options->node_count = REDLOCK_MAX_NODES + 1;
}
static void huge_node_count(redlock_options *options) {
    options->node_count = SIZE_MAX;
}
static void negative_drift(redlock_options *options) {
    options->drift = -0.01;
}
static void large_drift(redlock_options *options) {
    options->drift = 0.51;
}
static void drift_that_is_no_number(redlock_options *options) {
    options->drift = NAN;
}
static void no_max_ttl(redlock_options *options) {
    options->max_ttl_ms = 0;
}
static void no_commands(redlock_options *options) {
    options->max_commands = 0;
}
static void no_bytes(redlock_options *options) {
    options->max_bytes = 0;
}
static void shrinking_retry_delay(redlock_options *options) {
    options->retry_delay_ms = 10;
    options->retry_delay_max_ms = 9;
}
static void shrinking_reconnect_delay(redlock_options *options) {
    options->reconnect_delay_ms = 10;
    options->reconnect_delay_max_ms = 9;
}
static void name_with_a_space(redlock_options *options) {
    options->name = "red lock";
}
static void name_with_a_newline(redlock_options *options) {
    options->name = "redlock\r\nFLUSHALL";
}
static void unknown_log_level(redlock_options *options) {
    options->log_level = (redlock_log_level)17;
}
static void half_an_allocator(redlock_options *options) {
    static const redlock_allocator half = {0};

    options->allocator = &half;
}

static void counters_that_end_before_locks(redlock_options *options) {
    options->fence_idle_ms = 5;
}

static const struct {
    mistake *make;
    const char *named;
} mistakes[] = {
    {no_size, "size"},
    {no_nodes, "nodes"},
    {a_null_node, "nodes[1]"},
    {no_node_count, "node_count"},
    {too_many_nodes, "node_count"},
    {huge_node_count, "node_count"},
    {negative_drift, "drift"},
    {large_drift, "drift"},
    {drift_that_is_no_number, "drift"},
    {no_max_ttl, "max_ttl_ms"},
    {no_commands, "max_commands"},
    {no_bytes, "max_bytes"},
    {shrinking_retry_delay, "retry_delay_max_ms"},
    {shrinking_reconnect_delay, "reconnect_delay_max_ms"},
    {name_with_a_space, "name"},
    {name_with_a_newline, "name"},
    {unknown_log_level, "log_level"},
    {half_an_allocator, "allocator"},
    {counters_that_end_before_locks, "fence_idle_ms: 5"},
};

static void a_mistaken_option_is_named(void **state) {
    struct fixture *f = *state;
    const char *uris[] = {GOOD, GOOD, GOOD};

    for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++) {
        redlock_options options = patient_options(f, uris, 3);

        mistakes[i].make(&options);
        assert_options_refused(f, &options, mistakes[i].named);
    }
}

static void record_nothing(redlock_lock *lock, redlock_status status, void *arg) {
    (void)lock;
    (void)status;
    (void)arg;
    fail_msg("a refused request has called back");
}

static void assert_request_refused(redlock_client *client, const redlock_request *request,
                                   const char *named) {
    redlock_lock *lock = (redlock_lock *)client; /* must be overwritten */

    assert_refused(client, redlock_acquire(client, request, record_nothing, NULL, &lock),
                   REDLOCK_EINVAL, named);
    assert_null(lock);
}

static void a_mistaken_request_is_named(void **state) {
    struct fixture *f = *state;
    const char *uris[] = {GOOD};
    redlock_options options = patient_options(f, uris, 1);
    redlock_client *client = create_client(f, &options);
    redlock_request request = request_for(KEY, 1000);

    assert_string_equal(redlock_client_error(client), "");
    assert_refused(client, redlock_acquire(client, NULL, record_nothing, NULL, NULL),
                   REDLOCK_EINVAL, "request");
    assert_refused(client, redlock_acquire(client, &request, NULL, NULL, NULL), REDLOCK_EINVAL,
                   "on_acquired");
    request.key = NULL;
    assert_request_refused(client, &request, "key");
    request.key = "";
    assert_request_refused(client, &request, "key");
    request = request_for(KEY, 0);
    assert_request_refused(client, &request, "ttl_ms");
    request = request_for(KEY, LONG_TTL_MS + 1);
    assert_request_refused(client, &request, "max_ttl_ms");
    request = request_for(KEY, UINT64_MAX);
    assert_request_refused(client, &request, "ttl_ms");
    request = request_for(KEY, 1000);
    request.min_validity_ms = 999;
    assert_request_refused(client, &request, "min_validity_ms");
    request.min_validity_ms = UINT64_MAX;
    assert_request_refused(client, &request, "min_validity_ms");
    request = request_for(KEY, 1000);
    request.size = 0;
    assert_request_refused(client, &request, "REDLOCK_REQUEST_INIT");
}

static void replicas_that_take_longer_than_a_stall_are_named(void **state) {
    struct fixture *f = *state;
    const char *uris[] = {GOOD};
    redlock_options options = patient_options(f, uris, 1);
    redlock_request request = request_for(KEY, 1000);

    options.node_timeout_ms = 1000;
    options.stall_timeout_ms = 400; /* a node may wait for its replicas for 501 ms */
    request.wait_replicas = 1;
    redlock_client *client = create_client(f, &options);
    assert_request_refused(client, &request, "wait_replicas: 1");
    assert_request_refused(client, &request, "stall_timeout_ms, 400");
    assert_request_refused(client, &request, "node_timeout_ms, 1000");
}

static char longest_key[REDLOCK_MAX_KEY + 2];

static void a_key_may_be_so_long_and_no_longer(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_request request = request_for(longest_key, LONG_TTL_MS);

    memset(longest_key, 'k', sizeof(longest_key));
    longest_key[REDLOCK_MAX_KEY] = '\0';
    assert_int_equal(extend(f, hold_for(f, client, &request), 0), REDLOCK_OK);
    assert_int_equal(let_go(f, TAILQ_FIRST(&f->calls)->lock), REDLOCK_OK);

    longest_key[REDLOCK_MAX_KEY] = 'k';
    longest_key[REDLOCK_MAX_KEY + 1] = '\0';
    assert_request_refused(client, &request, "65536");
    request.key_length = REDLOCK_MAX_KEY + 1;
    assert_request_refused(client, &request, "65536");
    request.key_length = SIZE_MAX;
    assert_request_refused(client, &request, "65536");
    request.key_length = REDLOCK_MAX_KEY;
    assert_int_equal(let_go(f, hold_for(f, client, &request)), REDLOCK_OK);
}

/* ---------------------------------------------------------------------------- structs that grow */

struct larger_options {
    redlock_options known;
    char unknown[16];
};

static void options_of_a_newer_header_must_leave_the_unknown_unset(void **state) {
    struct fixture *f = *state;
    struct larger_options options = {0};
    redlock_client *client;

    options.known = patient_options(f, masters_uris(f->masters), 5);
    options.known.size = sizeof(options);
    options.unknown[15] = 1;
    assert_options_refused(f, &options.known, "size");
    options.unknown[15] = 0;
    client = create_client(f, &options.known);
    assert_int_equal(let_go(f, hold(f, client, KEY, LONG_TTL_MS)), REDLOCK_OK);
}

static void options_of_an_older_header_get_defaults(void **state) {
    struct fixture *f = *state;
    /* guards are on by default, and the masters are new */
    redlock_options options = patient_options(f, durable_uris(f), 5);
    redlock_client *client;
    size_t logged;

    options.size = offsetof(redlock_options, log);
    options.log_level = (redlock_log_level)17; /* beyond the size: not read */
    client = connect_with(f, &options);
    logged = f->capture.count;
    assert_int_equal(let_go(f, hold(f, client, KEY, LONG_TTL_MS)), REDLOCK_OK);
    assert_int_equal(logged, 0);
    assert_int_equal(f->allocator.calls, 0);
}

struct larger_request {
    redlock_request known;
    uint64_t unknown;
};

static void requests_of_other_headers_are_read_likewise(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    struct larger_request request = {0};

    request.known = request_for(KEY, LONG_TTL_MS);
    request.known.size = sizeof(request);
    request.unknown = UINT64_C(1) << 63;
    assert_request_refused(client, &request.known, "size");
    request.unknown = 0;
    assert_int_equal(let_go(f, hold_for(f, client, &request.known)), REDLOCK_OK);
    request.known.size = offsetof(redlock_request, wait_ms);
    request.known.min_validity_ms = UINT64_MAX; /* beyond the size: not read */
    assert_int_equal(let_go(f, hold_for(f, client, &request.known)), REDLOCK_OK);
}

/* ------------------------------------------------------------------------ texts and numbers */

static void every_status_has_a_name_and_a_sentence(void **state) {
    (void)state;
#define ASSERT_STATUS(name, value, text)                                                           \
    assert_string_equal(redlock_status_name(REDLOCK_##name), "REDLOCK_" #name);                    \
    assert_string_equal(redlock_strerror(REDLOCK_##name), text);                                   \
    assert_int_equal(REDLOCK_##name, value);
    REDLOCK_STATUS_MAP(ASSERT_STATUS)
    for (int i = -100; i < 100; i++) {
        assert_true(strlen(redlock_strerror((redlock_status)i)) > 0);
        assert_true(strlen(redlock_status_name((redlock_status)i)) > 0);
        assert_int_equal(redlock_is_retryable((redlock_status)i),
                         i == REDLOCK_EHELD || i == REDLOCK_ENOQUORUM || i == REDLOCK_EEXPIRED);
    }
}

static void the_version_is_the_headers(void **state) {
    char version[32];

    (void)state;
    snprintf(version, sizeof(version), "%d.%d.%d", REDLOCK_VERSION_MAJOR, REDLOCK_VERSION_MINOR,
             REDLOCK_VERSION_PATCH);
    assert_string_equal(redlock_version(), version);
}

/* ---------------------------------------------------------------------------------- addresses */

static redlock_client *connect_to(struct fixture *f, const char *const *uris, size_t count) {
    redlock_options options = patient_options(f, uris, count);
    redlock_client *client = create_client(f, &options);

    wait_connected(f, client, count);
    return client;
}

static void strings_may_be_freed_when_the_call_returns(void **state) {
    struct fixture *f = *state;
    char text[64];
    const char *uris[1] = {text};
    char name[] = "worker-7";
    char key[] = KEY;
    redlock_options options = patient_options(f, uris, 1);
    redlock_request request = request_for(key, LONG_TTL_MS);
    redlock_client *client;
    struct call *call;
    char *list;

    snprintf(text, sizeof(text), "%s", masters_uri(f->masters, 0));
    options.name = name;
    client = create_client(f, &options);
    memset(text, 'x', sizeof(text));
    memset(name, 'x', sizeof(name) - 1);
    uris[0] = NULL;
    call = begin_acquire(f, client, &request);
    memset(key, 'x', sizeof(key) - 1);
    assert_int_equal(await(f, call), REDLOCK_OK);
    assert_int_equal(masters_query_integer(f->masters, 0, "EXISTS " KEY), 1);
    list = masters_query(f->masters, 0, "CLIENT LIST");
    assert_non_null(strstr(list, "name=worker-7"));
    free(list);
    assert_string_equal(node_info(client, 0).node, masters_address(f->masters, 0));
}

/* A program that starts another one must not pass on its connections. */
static void connections_are_closed_on_exec(void **state) {
    struct fixture *f = *state;
    bool open_before[1024] = {false};
    size_t opened = 0;

    for (int fd = 0; fd < 1024; fd++) {
        open_before[fd] = fcntl(fd, F_GETFD) >= 0;
    }
    connect_client(f);
    for (int fd = 0; fd < 1024; fd++) {
        int flags = open_before[fd] ? -1 : fcntl(fd, F_GETFD);

        if (flags >= 0) {
            opened++;
            assert_true((flags & FD_CLOEXEC) != 0);
        }
    }
    assert_int_in_range(opened, 5, 10);
}

static void unix_sockets_are_nodes_too(void **state) {
    struct fixture *f = *state;
    char with_db[256];
    const char *uris[5];
    redlock_client *client;

    for (size_t i = 0; i < 5; i++) {
        uris[i] = masters_unix_uri(f->masters, i);
    }
    snprintf(with_db, sizeof(with_db), "%s?db=0", uris[2]);
    uris[2] = with_db;
    client = connect_to(f, uris, 5);
    assert_string_equal(node_info(client, 0).node, uris[0] + strlen("unix://"));
    hold(f, client, KEY, LONG_TTL_MS);
    wait_holders(f, KEY, 5);
    assert_int_equal(try_lock(f, connect_client(f), KEY, LONG_TTL_MS), REDLOCK_EHELD);
}

static void a_missing_socket_is_named(void **state) {
    struct fixture *f = *state;
    const char *uris[] = {"unix:///nonexistent/redis.sock"};
    redlock_options options = patient_options(f, uris, 1);
    redlock_client *client = create_client(f, &options);
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    struct call *call;

    wait_disconnected(f, client, 0, 1);
    call = acquire(f, client, &request);
    assert_ended(call, REDLOCK_ENOQUORUM);
    assert_explained(call, "No such file");
    assert_explained(call, "/nonexistent/redis.sock");
}

static void databases_are_apart(void **state) {
    struct fixture *f = *state;
    char texts[5][64];
    const char *uris[5];
    redlock_client *client;

    for (size_t i = 0; i < 5; i++) {
        snprintf(texts[i], sizeof(texts[i]), "%s/7", masters_uri(f->masters, i));
        uris[i] = texts[i];
    }
    client = connect_to(f, uris, 5);
    hold(f, client, KEY, LONG_TTL_MS);
    assert_int_equal(try_lock(f, client, KEY, LONG_TTL_MS), REDLOCK_EHELD);
    assert_int_equal(try_lock(f, connect_client(f), KEY, LONG_TTL_MS), REDLOCK_OK);
}

/* Names are resolved without blocking the loop; requests may be made before that is done. */
static void hosts_may_be_names(void **state) {
    struct fixture *f = *state;
    char texts[5][64];
    const char *uris[5];
    redlock_options options;
    redlock_client *client;

    if (!HAS_NAMES) {
        print_message("# this build has no names\n");
        return;
    }
    for (size_t i = 0; i < 5; i++) {
        snprintf(texts[i], sizeof(texts[i]), "redis://localhost:%d", masters_port(f->masters, i));
        uris[i] = texts[i];
    }
    options = patient_options(f, uris, 5);
    client = create_client(f, &options);
    assert_int_equal(let_go(f, hold(f, client, KEY, LONG_TTL_MS)), REDLOCK_OK);
    wait_connected(f, client, 5);
}

static void a_name_that_is_none_is_named(void **state) {
    struct fixture *f = *state;
    /* No name may have such a long part: no name server is asked. */
    const char *uris[] = {
        "redis://xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        masters_uri(f->masters, 0), masters_uri(f->masters, 1)};
    redlock_options options = patient_options(f, uris, 3);
    redlock_client *client;

    options.stall_timeout_ms = 1000;
    client = create_client(f, &options);
    wait_connected(f, client, 2);
    assert_int_equal(let_go(f, hold(f, client, KEY, LONG_TTL_MS)), REDLOCK_OK);
    wait_disconnected(f, client, 0, 1);
    assert_true(strlen(node_info(client, 0).reason) > 0);
}

static bool has_ipv6(void) {
    struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    int fd = socket(AF_INET6, SOCK_STREAM, 0);
    bool bound = fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0;

    if (fd >= 0) {
        close(fd);
    }
    return bound;
}

static int masters_on_ipv6(void **state) {
    static const char *const arguments[] = {"--bind", "127.0.0.1", "::1", NULL};

    return start_fixture(state, 1, has_ipv6() ? arguments : NULL);
}

static void ipv6_addresses_stand_in_brackets(void **state) {
    struct fixture *f = *state;
    char text[64];
    const char *uris[] = {text};

    if (!has_ipv6()) {
        print_message("# this machine has no IPv6\n");
        return;
    }
    snprintf(text, sizeof(text), "redis://[::1]:%d", masters_port(f->masters, 0));
    assert_int_equal(let_go(f, hold(f, connect_to(f, uris, 1), KEY, LONG_TTL_MS)), REDLOCK_OK);
}

/* -------------------------------------------------------------------------------------- logins */

#define ODD_PASSWORD "p@ss:w/rd%?#[]\xc3\xa9 "
#define ODD_ENCODED "p%40ss%3Aw%2Frd%25%3f%23%5B%5d%C3%A9%20"

static int masters_with_odd_password(void **state) {
    static const char *const arguments[] = {"--requirepass", "simple", NULL};

    return start_fixture(state, 1, arguments);
}

static void logins_may_be_percent_encoded(void **state) {
    struct fixture *f = *state;
    char text[128];
    const char *uris[] = {text};
    char *answer =
        masters_query(f->masters, 0, "ACL SETUSER %s on >%s ~* +@all", "us:er", ODD_PASSWORD);

    assert_string_equal(answer, "OK");
    free(answer);
    snprintf(text, sizeof(text), "redis://us%%3aer:%s@127.0.0.1:%d", ODD_ENCODED,
             masters_port(f->masters, 0));
    f->capture.secret = ODD_PASSWORD;
    assert_int_equal(let_go(f, hold(f, connect_to(f, uris, 1), KEY, LONG_TTL_MS)), REDLOCK_OK);
}

static void a_user_without_permission_is_named(void **state) {
    struct fixture *f = *state;
    char text[128];
    const char *uris[] = {text};
    redlock_options options = patient_options(f, uris, 1);
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    char *answer = masters_query(f->masters, 0, "ACL SETUSER weak on >simple ~* +ping");
    struct call *call;

    assert_string_equal(answer, "OK");
    free(answer);
    snprintf(text, sizeof(text), "redis://weak:simple@127.0.0.1:%d", masters_port(f->masters, 0));
    call = acquire(f, create_client(f, &options), &request);
    assert_ended(call, REDLOCK_EACCESS);
    assert_explained(call, "NOPERM");
    assert_explained(call, "set"); /* the refused command */
}

/* The bounds apply to the commands of locks: the client's own commands need no room in them. */
static void the_least_bounds_leave_room_for_the_handshake(void **state) {
    struct fixture *f = *state;
    redlock_options options = patient_options(f, masters_uris(f->masters), 5);
    options.max_commands = 16;
    options.max_bytes = 4096;
    options.guards = REDLOCK_GUARDS_ON;
    options.max_ttl_ms = 1000;
    redlock_client *client = connect_with(f, &options);
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(node_info(client, i).disconnected, 0);
    }
    wait_trusted(f, client, 5);
    assert_int_equal(let_go(f, hold(f, client, "orders:42", 1000)), REDLOCK_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        ON_NO_MASTERS(a_mistaken_uri_is_named),
        ON_NO_MASTERS(a_server_that_is_named_twice_is_refused),
        ON_NO_MASTERS(a_uri_too_long_is_named),
        ON_NO_MASTERS(a_mistaken_option_is_named),
        ON_NO_MASTERS(a_mistaken_request_is_named),
        ON_NO_MASTERS(replicas_that_take_longer_than_a_stall_are_named),
        ON_FIVE_MASTERS(a_key_may_be_so_long_and_no_longer),
        ON_FIVE_MASTERS(options_of_a_newer_header_must_leave_the_unknown_unset),
        ON_FIVE_MASTERS(options_of_an_older_header_get_defaults),
        ON_FIVE_MASTERS(requests_of_other_headers_are_read_likewise),
        cmocka_unit_test(every_status_has_a_name_and_a_sentence),
        cmocka_unit_test(the_version_is_the_headers),
        ON_FIVE_MASTERS(strings_may_be_freed_when_the_call_returns),
        ON_FIVE_MASTERS(connections_are_closed_on_exec),
        ON_FIVE_MASTERS(unix_sockets_are_nodes_too),
        ON_NO_MASTERS(a_missing_socket_is_named),
        ON_FIVE_MASTERS(databases_are_apart),
        ON_FIVE_MASTERS(hosts_may_be_names),
        ON_FIVE_MASTERS(a_name_that_is_none_is_named),
        cmocka_unit_test_setup_teardown(ipv6_addresses_stand_in_brackets, masters_on_ipv6, finish),
        cmocka_unit_test_setup_teardown(logins_may_be_percent_encoded, masters_with_odd_password,
                                        finish),
        cmocka_unit_test_setup_teardown(a_user_without_permission_is_named,
                                        masters_with_odd_password, finish),
        ON_FIVE_MASTERS(the_least_bounds_leave_room_for_the_handshake),
    };

    return cmocka_run_group_tests_name("options", tests, NULL, NULL);
}
