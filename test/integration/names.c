/*
 * Hosts that are names: all their addresses are tried, changed answers are followed, and a silent
 * name server delays no other node. The name server is the test's own: c-ares gets its address from
 * this test instead of /etc/resolv.conf.
 */
#include "clocks.h"
#include "folder.h"
#include "harness.h"
#include "master_data.h"
#include "name_server.h"
#include "name_settings.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY "orders:42"
#define FIVE 5
#define RESOLVED_MAX 9
#define NOBODY "127.0.0.2" /* refuses connections: the masters are at 127.0.0.1 */

/* The name server's answers; each question is counted. A second name server may replace it. */
static struct {
    struct event_base *base;
    struct name_server *servers[2];
    size_t count;                            /* the newest one is that of the settings */
    const char *addresses[RESOLVED_MAX + 1]; /* a list that ends with NULL */
    bool is_silent;
    bool is_silent_on_ipv6;
    bool is_truncating; /* whether it answers only over TCP */
    long late_us;       /* delay of each answer */
    size_t late;        /* number of unanswered questions */
    size_t questions;
    size_t questions_by_tcp;
    size_t old_questions; /* questions to the first server after the second one started */
} server;

static char hosts_path[FOLDER_SIZE + 16];

/* The machine has no hosts file, unless a test writes one. */
static void use_settings(void) {
    size_t newest = server.count - 1;

    name_settings_use(hosts_path[0] != '\0' ? hosts_path : "/dev/null",
                      name_server_where(server.servers[newest]));
}

static void answer(const struct name_question *question) {
    if (server.is_truncating && question->connection == NULL) {
        name_server_truncate(question);
    } else if (server.addresses[0] == NULL) {
        name_server_deny(question);
    } else {
        name_server_answer(question, server.addresses);
    }
}

static void on_late(evutil_socket_t fd, short what, void *question) {
    (void)fd;
    (void)what;
    server.late--;
    answer(question);
    free(question);
}

static void answer_late(const struct name_question *question) {
    const struct timeval late = {.tv_sec = server.late_us / 1000000,
                                 .tv_usec = server.late_us % 1000000};
    struct name_question *copy = malloc(sizeof(*copy));

    assert_non_null(copy);
    *copy = *question;
    server.late++;
    assert_int_equal(event_base_once(server.base, -1, EV_TIMEOUT, on_late, copy, &late), 0);
}

static void on_question(const struct name_question *question, void *arg) {
    bool is_old = *(const size_t *)arg < server.count;

    server.questions++;
    server.questions_by_tcp += question->connection != NULL;
    server.old_questions += is_old;
    if (server.is_silent || is_old || (server.is_silent_on_ipv6 && question->is_ipv6)) {
        return;
    }
    if (server.late_us > 0) {
        answer_late(question);
    } else {
        answer(question);
    }
}

static void start_server(struct fixture *f) {
    static size_t numbers[] = {1, 2};
    size_t index = server.count++;

    server.base = f->base;
    server.servers[index] = name_server_start(f->base, on_question, &numbers[index]);
    use_settings();
}

static int five_masters_and_names(void **state) {
    int result = five_masters(state);

    memset(&server, 0, sizeof(server));
    hosts_path[0] = '\0';
    if (result == 0) {
        start_server(*state);
    }
    return result;
}

static void stop_server(void *nothing) {
    (void)nothing;
    for (size_t i = 0; i < server.count; i++) {
        name_server_stop(server.servers[i]);
    }
}

/* The masters' URIs, the first of which has a name for its host. */
struct uris {
    char named[96];
    const char *list[FIVE];
};

static redlock_client *client_of(struct fixture *f, struct uris *uris, const char *name) {
    snprintf(uris->named, sizeof(uris->named), "redis://%s:%d", name, masters_port(f->masters, 0));
    uris->list[0] = uris->named;
    for (size_t i = 1; i < FIVE; i++) {
        uris->list[i] = masters_uri(f->masters, i);
    }
    redlock_options options = patient_options(f, uris->list, FIVE);
    return create_client(f, &options);
}

static void write_hosts(struct fixture *f, const char *text) {
    if (hosts_path[0] == '\0') {
        snprintf(hosts_path, sizeof(hosts_path), "%s/hosts", folder_for(f, "hosts"));
        use_settings();
    }
    FILE *file = fopen(hosts_path, "we");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

/* ------------------------------------------------------------------------- names that are found */

struct found {
    const char *name;                    /* of the test */
    const char *addresses[RESOLVED_MAX]; /* the name server's answer */
    const char *hosts;                   /* the text of the hosts file; NULL: none */
    bool is_silent, is_silent_on_ipv6, is_truncating;
};

static const struct found founds[] = {
    /* Only the debug log mentions the failed address. */
    {.name = "an_address_that_fails_is_no_failure_of_the_node", .addresses = {NOBODY, "127.0.0.1"}},
    /* The client waits for the other half, but not for long. */
    {.name = "half_of_an_answer_is_enough", .addresses = {"127.0.0.1"}, .is_silent_on_ipv6 = true},
    {.name = "the_hosts_file_counts",
     .hosts = "# two addresses\n" NOBODY " db.test other.test\n127.0.0.1\tdb.test\n",
     .is_silent = true},
    {.name = "an_answer_too_long_for_udp_comes_by_tcp",
     .addresses = {NOBODY, "127.0.0.1"},
     .is_truncating = true},
    {.name = "ipv4_comes_first", .addresses = {"::2", "127.0.0.1"}},
    {.name = "the_eighth_address_is_tried",
     .addresses = {NOBODY, "127.0.0.3", "127.0.0.4", "127.0.0.5", "127.0.0.6", "127.0.0.7",
                   "127.0.0.8", "127.0.0.1"}},
};

static void a_name_is_found(void **state) {
    struct fixture *f = *state;
    const struct found *found = f->row;
    struct uris uris;

    at_finish(f, stop_server, NULL);
    memcpy(server.addresses, found->addresses, sizeof(found->addresses));
    server.is_silent = found->is_silent;
    server.is_silent_on_ipv6 = found->is_silent_on_ipv6;
    server.is_truncating = found->is_truncating;
    if (found->hosts != NULL) {
        write_hosts(f, found->hosts);
    }
    redlock_client *client = client_of(f, &uris, "db.test");
    wait_connected(f, client, FIVE);
    assert_int_equal(node_info(client, 0).disconnected, 0);
    assert_int_equal(server.questions > 0, found->hosts == NULL);
    assert_int_equal(server.questions_by_tcp > 0, found->is_truncating);
}

/* ------------------------------------------------------------------------ answers that change */

/* The URIs of masters under one name. */
struct named {
    char text[FIVE][96];
    const char *list[FIVE];
};

static void name_masters(struct fixture *f, const char *host, size_t count, struct named *named) {
    for (size_t i = 0; i < count; i++) {
        snprintf(named->text[i], sizeof(named->text[i]), "redis://%s:%d", host,
                 masters_port(f->masters, i));
        named->list[i] = named->text[i];
    }
}

/*
 * All nodes have names. The first address of each refuses in the second round, as "::1" does where
 * masters listen on 127.0.0.1 only.
 */
static void the_first_request_waits_for_names(void **state) {
    static const char *const addresses[][3] = {
        {"127.0.0.1"}, {NOBODY, "127.0.0.1"}, {"127.0.0.1", NOBODY}};
    struct fixture *f = *state;

    at_finish(f, stop_server, NULL);
    for (size_t round = 0; round < sizeof(addresses) / sizeof(addresses[0]); round++) {
        struct named named;

        memcpy(server.addresses, addresses[round], sizeof(addresses[round]));
        name_masters(f, "db.test", FIVE, &named);
        redlock_options options = patient_options(f, named.list, FIVE);
        options.node_timeout_ms = options.stall_timeout_ms = LONG_TTL_MS / 2; /* of no help */
        redlock_client *client = create_client(f, &options);
        redlock_lock *lock = hold(f, client, KEY, LONG_TTL_MS);
        wait_holders(f, KEY, FIVE);
        assert_int_equal(let_go(f, lock), REDLOCK_OK);
        close_client(f, client);
    }
}

static void on_ready(redlock_status status, void *arg) {
    redlock_status *reported = arg;

    assert_int_equal(*reported, REDLOCK_EBUSY); /* only once */
    *reported = status;
}

static bool is_reported(void *arg) {
    return *(const redlock_status *)arg != REDLOCK_EBUSY;
}

/* The first address of each node refuses, which does not end the node's connecting. */
static void a_client_of_names_becomes_ready(void **state) {
    struct fixture *f = *state;
    redlock_status reported = REDLOCK_EBUSY; /* no callback has this status */
    struct named named;

    at_finish(f, stop_server, NULL);
    server.addresses[0] = NOBODY;
    server.addresses[1] = "127.0.0.1";
    name_masters(f, "db.test", FIVE, &named);
    redlock_options options = patient_options(f, named.list, FIVE);
    redlock_client *client = create_client(f, &options);
    assert_int_equal(redlock_client_ready(client, REDLOCK_FOREVER, on_ready, &reported),
                     REDLOCK_OK);
    run_until(f, is_reported, &reported, "the client is ready");
    assert_int_equal(reported, REDLOCK_OK);
    hold(f, client, KEY, LONG_TTL_MS);
}

/* A request that waits for a lookup ends with the client, and when the lookup times out. */
static void a_request_ends_while_names_are_looked_up(void **state) {
    struct fixture *f = *state;
    struct named named;

    at_finish(f, stop_server, NULL);
    server.is_silent = true;
    name_masters(f, "silent.test", 3, &named);
    redlock_options options = patient_options(f, named.list, 3);
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    redlock_client *client = create_client(f, &options);
    struct call *call = begin_acquire(f, client, &request);
    run_turns(f, 3);
    assert_non_null(strstr(redlock_explain(call->lock), "still being looked up"));
    close_client(f, client);
    assert_ended(call, REDLOCK_ECLOSED);

    options.stall_timeout_ms = 100; /* limit of the lookup */
    client = create_client(f, &options);
    call = begin_acquire(f, client, &request);
    assert_int_equal(await(f, call), REDLOCK_ENOQUORUM);
    assert_int_equal(votes(call, REDLOCK_VOTE_UNREACHABLE), 3);
    assert_non_null(strstr(call->why, "the name lookup was not answered"));
}

/*
 * A crowd, 1/2 of which is canceled while the rest waits in the queue; and a change of the nodes.
 */
static void a_crowd_waits_for_names(void **state) {
    enum { CROWD = 2000 };
    static struct call *calls[CROWD];
    struct fixture *f = *state;
    struct named named;

    at_finish(f, stop_server, NULL);
    server.addresses[0] = "127.0.0.1";
    name_masters(f, "db.test", FIVE, &named);
    redlock_options options = patient_options(f, named.list, FIVE);
    redlock_client *client = create_client(f, &options);
    for (size_t i = 0; i < CROWD; i++) {
        char key[32];
        snprintf(key, sizeof(key), "crowd:%zu", i / 4);
        redlock_request request = request_for(key, LONG_TTL_MS);
        request.wait_ms = LONG_TTL_MS;
        calls[i] = begin_acquire(f, client, &request);
    }
    for (size_t i = 1; i < CROWD; i += 2) {
        assert_int_equal(redlock_cancel(calls[i]->lock), REDLOCK_OK);
    }
    assert_int_equal(redlock_client_change_nodes(client, named.list, 3), REDLOCK_OK);
    for (size_t i = 0; i < CROWD; i += 4) {
        assert_int_equal(await(f, calls[i]), REDLOCK_OK);
        assert_int_equal(await(f, calls[i + 1]), REDLOCK_ECANCELED);
        assert_non_null(strstr(calls[i + 1]->why, "being looked up"));
        assert_int_equal(let_go(f, calls[i]->lock), REDLOCK_OK);
        assert_int_equal(await(f, calls[i + 2]), REDLOCK_OK);
    }
    close_client(f, client);
}

static void say_by_server(struct fixture *f, const char *address) {
    (void)f;
    server.addresses[0] = address;
}

static void say_by_hosts(struct fixture *f, const char *address) {
    char text[64];

    server.is_silent = true;
    snprintf(text, sizeof(text), "%s db.test\n", address);
    write_hosts(f, text);
}

struct change {
    const char *name; /* of the test */
    void (*say)(struct fixture *f, const char *address);
};

static const struct change changes[] = {
    {"an_answer_that_changes_is_followed", say_by_server},
    {"a_hosts_file_that_changes_is_followed", say_by_hosts},
};

static void a_change_is_followed(void **state) {
    struct fixture *f = *state;
    const struct change *change = f->row;
    struct uris uris;

    at_finish(f, stop_server, NULL);
    change->say(f, "127.0.0.1");
    redlock_client *client = client_of(f, &uris, "db.test");
    wait_connected(f, client, FIVE);
    masters_kill(f->masters, 0);
    change->say(f, NOBODY);
    wait_disconnected(f, client, 0, 3); /* the name is looked up again and again */
    size_t questions = server.questions;
    masters_restart(f->masters, 0);
    wait_disconnected(f, client, 0, 5); /* its old address is not connected to */
    assert_int_equal(server.questions > questions, change->say == say_by_server);
    change->say(f, "127.0.0.1");
    wait_connected(f, client, FIVE);
}

/* ---------------------------------------------------------------------------------- other cases */

static void all_addresses_of_a_name_are_tried(void **state) {
    struct fixture *f = *state;
    struct uris uris;

    at_finish(f, stop_server, NULL);
    server.addresses[0] = NOBODY;
    server.addresses[1] = "127.0.0.3";
    server.addresses[2] = NULL;
    redlock_client *client = client_of(f, &uris, "many.test");
    wait_disconnected(f, client, 0, 1); /* all addresses were tried, and each refused */
    wait_logged(f, "not at " NOBODY);
    server.addresses[1] = "127.0.0.1";
    wait_connected(f, client, FIVE);
    hold(f, client, KEY, LONG_TTL_MS);
    wait_holders(f, KEY, FIVE);
}

/* A name may have any number of addresses, and the client does not try more than 8 in a row. */
static void the_ninth_address_is_not_tried(void **state) {
    static const char *const addresses[] = {NOBODY,      "127.0.0.3", "127.0.0.4",
                                            "127.0.0.5", "127.0.0.6", "127.0.0.7",
                                            "127.0.0.8", "127.0.0.9", "127.0.0.1"};
    struct fixture *f = *state;
    struct uris uris;

    at_finish(f, stop_server, NULL);
    memcpy(server.addresses, addresses, sizeof(addresses));
    redlock_client *client = client_of(f, &uris, "many.test");
    wait_disconnected(f, client, 0, 2);
    wait_logged(f, "not at 127.0.0.8");
    wait_connected(f, client, FIVE - 1);
}

/* The name server answers a question for IPv4 addresses, but with none. */
static void a_name_may_have_only_ipv6(void **state) {
    struct fixture *f = *state;
    struct uris uris;

    at_finish(f, stop_server, NULL);
    server.addresses[0] = "::2"; /* nobody's */
    server.addresses[1] = "::3";
    redlock_client *client = client_of(f, &uris, "new.test");
    wait_disconnected(f, client, 0, 1);
    wait_logged(f, "not at ::2");
}

/* At one address there is no server; at the other one a server refuses the client. */
static void the_reason_is_that_of_who_answered(void **state) {
    static const char *const orders[][2] = {{NOBODY, "127.0.0.1"}, {"127.0.0.1", NOBODY}};
    struct fixture *f = *state;

    at_finish(f, stop_server, NULL);
    for (size_t i = 0; i < 2; i++) {
        char text[96];
        const char *uris[] = {text};
        redlock_options options = patient_options(f, uris, 1);
        server.addresses[0] = orders[i][0];
        server.addresses[1] = orders[i][1];
        snprintf(text, sizeof(text), "redis://nobody:wrong@both.test:%d",
                 masters_port(f->masters, 0));
        redlock_client *client = create_client(f, &options);
        wait_disconnected(f, client, 0, 2);
        assert_non_null(strstr(node_info(client, 0).reason, "WRONGPASS"));
        close_client(f, client);
    }
}

/* The settings name another name server while the client runs: the old one is no longer asked. */
static void a_name_server_that_changes_is_followed(void **state) {
    struct fixture *f = *state;
    struct uris uris;

    at_finish(f, stop_server, NULL);
    server.addresses[0] = "127.0.0.1";
    redlock_client *client = client_of(f, &uris, "moving.test");
    wait_connected(f, client, FIVE);
    start_server(f);
    masters_kill(f->masters, 0);
    wait_disconnected(f, client, 0, 2);
    masters_restart(f->masters, 0);
    wait_connected(f, client, FIVE);
    assert_int_equal(server.old_questions, 0);
}

/* New settings count even while a lookup by the old settings is unanswered. */
static void a_lookup_that_hangs_keeps_no_old_settings(void **state) {
    struct fixture *f = *state;
    struct uris uris;
    char silent[96];

    at_finish(f, stop_server, NULL);
    write_hosts(f, "127.0.0.1 db.test\n");
    server.is_silent = true;
    snprintf(uris.named, sizeof(uris.named), "redis://db.test:%d", masters_port(f->masters, 0));
    snprintf(silent, sizeof(silent), "redis://silent.test:%d", masters_port(f->masters, 1));
    const char *list[] = {silent, uris.named, masters_uri(f->masters, 2)};
    redlock_options options = patient_options(f, list, 3);
    redlock_client *client = create_client(f, &options);
    wait_connected(f, client, 2);
    masters_kill(f->masters, 0);
    write_hosts(f, NOBODY " db.test\n");
    wait_disconnected(f, client, 1, 2);
    masters_restart(f->masters, 0);
    wait_disconnected(f, client, 1, 4); /* its old address is not connected to */
    write_hosts(f, "127.0.0.1 db.test\n");
    wait_connected(f, client, 2);
    assert_true(server.questions > 0);
}

static bool is_asked(void *arg) {
    return server.questions >= *(const size_t *)arg;
}

static void a_client_is_closed_between_the_halves(void **state) {
    struct fixture *f = *state;
    struct uris uris;
    size_t both = 2;

    at_finish(f, stop_server, NULL);
    server.addresses[0] = "127.0.0.1";
    server.is_silent_on_ipv6 = true;
    redlock_client *client = client_of(f, &uris, "half.test");
    run_until(f, is_asked, &both, "the name server was asked for both");
    run_turns(f, 3);
    close_client(f, client);
}

/* Questions are repeated, and the lookup ends in the end, even if the client waits longer. */
static void a_name_server_that_never_answers_is_given_up(void **state) {
    struct fixture *f = *state;
    struct uris uris;
    size_t asked = 0;

    at_finish(f, stop_server, NULL);
    server.is_silent = true;
    stop_time();
    redlock_client *client = client_of(f, &uris, "silent.test");
    for (size_t tries = 1; tries <= 3; tries++) {
        asked += 2;
        run_until(f, is_asked, &asked, "the name server is asked for both families");
        assert_int_equal(node_info(client, 0).disconnected, 0);
        pass_time(1100u << (tries - 1));
    }
    wait_disconnected(f, client, 0, 1);
    resume_time();
    assert_int_equal(server.questions, asked);
    assert_non_null(strstr(node_info(client, 0).reason, "silent.test cannot be resolved: Timeout"));
    asked += 2;
    run_until(f, is_asked, &asked, "the name is looked up again");
}

/* After any number of turns of the loop, nothing is left of a lookup whose client was closed. */
static void a_lookup_may_be_canceled_at_any_instant(void **state) {
    enum { TURNS = 12 };
    struct fixture *f = *state;

    at_finish(f, stop_server, NULL);
    server.addresses[0] = NOBODY;
    for (unsigned i = 0; i < 4 * TURNS; i++) {
        struct named named;

        server.is_silent = i / TURNS == 1;
        server.is_silent_on_ipv6 = i / TURNS == 2;
        server.is_truncating = i / TURNS == 3;
        name_masters(f, "gone.test", FIVE, &named);
        redlock_options options = patient_options(f, named.list, FIVE);
        redlock_client *client = create_client(f, &options);
        run_turns(f, i % TURNS);
        close_client(f, client);
    }
}

static void a_name_that_does_not_exist_is_named(void **state) {
    struct fixture *f = *state;
    struct uris uris;

    at_finish(f, stop_server, NULL);
    redlock_client *client = client_of(f, &uris, "nowhere.test");
    wait_disconnected(f, client, 0, 2);
    assert_non_null(strstr(node_info(client, 0).reason,
                           "nowhere.test cannot be resolved: Domain name not found"));
    hold(f, client, KEY, LONG_TTL_MS);
}

static void a_silent_name_server_delays_nobody(void **state) {
    struct fixture *f = *state;
    struct uris uris;

    at_finish(f, stop_server, NULL);
    server.is_silent = true;
    redlock_client *client = client_of(f, &uris, "silent.test");
    redlock_lock *lock =
        hold(f, client, KEY, LONG_TTL_MS); /* at once, while the name is looked up */
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    assert_int_equal(node_info(client, 0).disconnected, 0);
    wait_connected(f, client, FIVE - 1);
    for (size_t i = 0; i < 100; i++) {
        assert_int_equal(try_lock(f, client, KEY, LONG_TTL_MS), REDLOCK_OK);
        rival_frees(f, 1, FIVE, KEY);
    }
    assert_int_equal(server.questions > 0, 1);
}

static bool has_answered(void *arg) {
    (void)arg;
    return server.late == 0;
}

/* A lookup that was abandoned and restarted gets more time. */
static void a_slow_name_server_is_waited_for(void **state) {
    struct fixture *f = *state;
    struct uris uris;
    redlock_request request = request_for(KEY, LONG_TTL_MS);

    at_finish(f, stop_server, NULL);
    server.addresses[0] = "127.0.0.1";
    server.late_us = 1600000;
    snprintf(uris.named, sizeof(uris.named), "redis://late.test:%d", masters_port(f->masters, 0));
    const char *list[] = {uris.named};
    redlock_options options = patient_options(f, list, 1);
    options.stall_timeout_ms = 1000;
    redlock_client *client = create_client(f, &options);
    assert_ended(acquire(f, client, &request), REDLOCK_ENOQUORUM); /* after 1 s */
    request.wait_ms = REDLOCK_FOREVER;
    struct call *call = acquire(f, client, &request);
    assert_ended(call, REDLOCK_OK);
    assert_int_equal(let_go(f, call->lock), REDLOCK_OK);
    run_until(f, has_answered, NULL, "all questions were answered");
}

#define ON_NAMES(test) cmocka_unit_test_setup_teardown(test, five_masters_and_names, finish)

int main(void) {
    const struct CMUnitTest tests[] = {
        ON_NAMES(the_first_request_waits_for_names),
        ON_NAMES(a_client_of_names_becomes_ready),
        ON_NAMES(a_request_ends_while_names_are_looked_up),
        ON_NAMES(a_crowd_waits_for_names),
        ON_NAMES(all_addresses_of_a_name_are_tried),
        ON_ROW(founds[0].name, a_name_is_found, five_masters_and_names, &founds[0]),
        ON_NAMES(the_reason_is_that_of_who_answered),
        ON_ROW(changes[0].name, a_change_is_followed, five_masters_and_names, &changes[0]),
        ON_NAMES(a_name_that_does_not_exist_is_named),
        ON_NAMES(a_silent_name_server_delays_nobody),
        ON_NAMES(a_slow_name_server_is_waited_for),
        ON_ROW(founds[2].name, a_name_is_found, five_masters_and_names, &founds[2]),
        ON_NAMES(a_name_server_that_changes_is_followed),
        ON_ROW(changes[1].name, a_change_is_followed, five_masters_and_names, &changes[1]),
        ON_NAMES(a_lookup_that_hangs_keeps_no_old_settings),
        ON_ROW(founds[1].name, a_name_is_found, five_masters_and_names, &founds[1]),
        ON_NAMES(a_client_is_closed_between_the_halves),
        ON_ROW(founds[3].name, a_name_is_found, five_masters_and_names, &founds[3]),
        ON_ROW(founds[4].name, a_name_is_found, five_masters_and_names, &founds[4]),
        ON_ROW(founds[5].name, a_name_is_found, five_masters_and_names, &founds[5]),
        ON_NAMES(the_ninth_address_is_not_tried),
        ON_NAMES(a_name_may_have_only_ipv6),
        ON_NAMES(a_name_server_that_never_answers_is_given_up),
        ON_NAMES(a_lookup_may_be_canceled_at_any_instant),
    };

    return cmocka_run_group_tests_name("names", tests, NULL, NULL);
}
