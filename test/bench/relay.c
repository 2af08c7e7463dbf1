/*
 * The benchmark's relay, between a client and a node of the test: order, delays, ends, and URIs.
 * Times are checked only from below, because a busy machine is slower.
 */
#include "relay.h"

#include "clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* requires the headers above */
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
/* Limit of every wait: generous, for busy machines. */
#define LIMIT_MS 60000
#define URI_SIZE 64

/* A node, and a connection to it by way of the relay. */
struct rig {
    int listener;
    char uri[URI_SIZE];
    struct relay *relay;
    int client;
    int node;
};

static int listen_anywhere(char uri[URI_SIZE]) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(fd, 8), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &length), 0);
    snprintf(uri, URI_SIZE, "redis://127.0.0.1:%d", ntohs(address.sin_port));
    return fd;
}

static int connect_to(const char *uri) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    int port = 0;

    assert_int_equal(sscanf(uri, "redis://127.0.0.1:%d", &port), 1);
    address.sin_port = htons((uint16_t)port);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

static void wait_for(int fd) {
    struct pollfd readable = {.fd = fd, .events = POLLIN};

    assert_int_equal(poll(&readable, 1, LIMIT_MS), 1);
}

static void set_up(struct rig *rig, const struct relay_delays *delays) {
    const char *uri = rig->uri;

    rig->listener = listen_anywhere(rig->uri);
    rig->relay = relay_start(&uri, 1, delays);
    assert_non_null(rig->relay);
    rig->client = connect_to(relay_uris(rig->relay)[0]);
    wait_for(rig->listener);
    rig->node = accept(rig->listener, NULL, NULL);
    assert_true(rig->node >= 0);
}

static void check_no_process_is_left(void) {
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

static void tear_down(struct rig *rig) {
    close(rig->client);
    close(rig->node);
    close(rig->listener);
    relay_finish(rig->relay);
    check_no_process_is_left();
}

static void send_all(int fd, const char *bytes, size_t size) {
    while (size > 0) {
        ssize_t sent = send(fd, bytes, size, MSG_NOSIGNAL);

        assert_true(sent > 0);
        bytes += sent;
        size -= (size_t)sent;
    }
}

static void receive_all(int fd, char *bytes, size_t size) {
    while (size > 0) {
        ssize_t got;

        wait_for(fd);
        got = recv(fd, bytes, size, 0);
        assert_true(got > 0);
        bytes += got;
        size -= (size_t)got;
    }
}

static void check_end(int fd) {
    char byte;

    wait_for(fd);
    assert_int_equal(recv(fd, &byte, 1, 0), 0);
}

/* --------------------------------------------------------------------------------------- tests */

/* Sends numbers in small and large pieces, and checks that they arrive in order, before the end. */
static void check_order(int from, int to) {
    static uint32_t sent[1 << 20];
    static uint32_t received[COUNT_OF(sent)];
    size_t size = 0;

    for (size_t i = 0; i < COUNT_OF(sent); i++) {
        sent[i] = (uint32_t)i;
    }
    for (size_t at = 0; at < sizeof(sent); at += size) {
        size = at < 65536 ? 256 : sizeof(sent) - at;
        send_all(from, (const char *)sent + at, size);
    }
    assert_int_equal(shutdown(from, SHUT_WR), 0);
    receive_all(to, (char *)received, sizeof(received));
    assert_memory_equal(received, sent, sizeof(sent));
    check_end(to);
}

static void test_bytes_keep_their_order(void **state) {
    static const struct relay_delays rows[] = {
        {.rtt_count = 1},
        {.rtt_count = 1, .rtt_ms = {2}},
        {.rtt_count = 1, .jitter_ms = 5, .late_percent = 20, .late_ms = 10},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct rig rig;

        set_up(&rig, &rows[i]);
        /* A half-closed connection carries the other direction. */
        check_order(rig.client, rig.node);
        check_order(rig.node, rig.client);
        tear_down(&rig);
    }
}

/* Returns the time until a byte has gone there and back, in ms. */
static double round_trip_ms(const struct rig *rig) {
    uint64_t from_ns = clock_now_ns();
    char byte = 'x';

    send_all(rig->client, &byte, 1);
    receive_all(rig->node, &byte, 1);
    send_all(rig->node, &byte, 1);
    receive_all(rig->client, &byte, 1);
    return (double)(clock_now_ns() - from_ns) / 1e6;
}

static void test_round_trips_take_the_time_added(void **state) {
    static const struct {
        struct relay_delays delays;
        double least_ms;
    } rows[] = {
        {{.rtt_count = 1, .rtt_ms = {0.5}}, 0.5},
        {{.rtt_count = 1, .rtt_ms = {30}}, 30},
        {{.rtt_count = 1, .rtt_ms = {2}, .jitter_ms = 1}, 2},
        {{.rtt_count = 1, .rtt_ms = {2}, .late_percent = 100, .late_ms = 10}, 22},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct rig rig;

        set_up(&rig, &rows[i].delays);
        for (size_t trip = 0; trip < 3; trip++) {
            assert_true(round_trip_ms(&rig) >= rows[i].least_ms);
        }
        tear_down(&rig);
    }
}

static void test_an_end_takes_as_long_as_bytes(void **state) {
    static const struct relay_delays delays = {.rtt_count = 1, .rtt_ms = {40}};
    struct rig rig;
    uint64_t from_ns;

    (void)state;
    set_up(&rig, &delays);
    from_ns = clock_now_ns();
    shutdown(rig.node, SHUT_RDWR);
    check_end(rig.client);
    assert_true(clock_now_ns() - from_ns >= UINT64_C(20000000));
    tear_down(&rig);
}

static void test_an_aborted_connection_ends_the_other(void **state) {
    static const struct relay_delays delays = {.rtt_count = 1, .rtt_ms = {1}};
    const struct linger at_once = {.l_onoff = 1, .l_linger = 0};
    struct rig rig;

    (void)state;
    set_up(&rig, &delays);
    assert_true(round_trip_ms(&rig) >= 1);
    setsockopt(rig.client, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    close(rig.client);
    check_end(rig.node);
    rig.client = connect_to(relay_uris(rig.relay)[0]);
    tear_down(&rig);
}

static void test_a_node_that_is_gone_ends_connections(void **state) {
    static const struct relay_delays delays = {.rtt_count = 1};
    char text[URI_SIZE];
    const char *uri = text;
    struct relay *relay;
    int client;

    (void)state;
    close(listen_anywhere(text));
    relay = relay_start(&uri, 1, &delays);
    assert_non_null(relay);
    client = connect_to(relay_uris(relay)[0]);
    check_end(client);
    close(client);
    relay_finish(relay);
    check_no_process_is_left();
}

static void test_only_the_address_of_a_uri_changes(void **state) {
    static const char *const uris[] = {
        "redis://127.0.0.1",
        "redis://user:p%40ss@127.0.0.1:7000/3?durable=yes",
        "redis://:a@b@10.0.0.1/",
    };
    static const struct {
        const char *start;
        const char *end;
    } parts[] = {
        {"redis://127.0.0.1:", ""},
        {"redis://user:p%40ss@127.0.0.1:", "/3?durable=yes"},
        {"redis://:a@b@127.0.0.1:", "/"},
    };
    static const struct relay_delays delays = {.rtt_count = 3, .rtt_ms = {1, 2, 3}};
    struct relay *relay = relay_start(uris, COUNT_OF(uris), &delays);

    (void)state;
    assert_non_null(relay);
    for (size_t i = 0; i < COUNT_OF(uris); i++) {
        const char *uri = relay_uris(relay)[i];
        size_t length = strlen(parts[i].start);

        assert_int_equal(strncmp(uri, parts[i].start, length), 0);
        uri += length;
        assert_true(strspn(uri, "0123456789") > 0);
        assert_string_equal(uri + strspn(uri, "0123456789"), parts[i].end);
    }
    relay_finish(relay);
    check_no_process_is_left();
}

static void test_other_uris_are_refused(void **state) {
    static const char *const uris[] = {
        "rediss://127.0.0.1",      "unix:///tmp/socket",     "redis://localhost",
        "redis://[::1]:6379",      "redis://127.0.0.1:",     "redis://127.0.0.1:0",
        "redis://127.0.0.1:65536", "redis://127.0.0.1:1x",   "redis://",
        "redis://127.0.0",         "redis://a:b@127.0.0.1:", "127.0.0.1",
    };
    static const struct relay_delays delays = {.rtt_count = 1};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(uris); i++) {
        assert_null(relay_start(&uris[i], 1, &delays));
    }
    check_no_process_is_left();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes_keep_their_order),
        cmocka_unit_test(test_round_trips_take_the_time_added),
        cmocka_unit_test(test_an_end_takes_as_long_as_bytes),
        cmocka_unit_test(test_an_aborted_connection_ends_the_other),
        cmocka_unit_test(test_a_node_that_is_gone_ends_connections),
        cmocka_unit_test(test_only_the_address_of_a_uri_changes),
        cmocka_unit_test(test_other_uris_are_refused),
    };

    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
