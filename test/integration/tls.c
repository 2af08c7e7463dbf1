/*
 * Nodes at rediss://: the servers that a client trusts, its reasons when it does not, and locks
 * over TLS. In a build without TLS: the refusal.
 */
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY "orders:42"
#define PASSWORD "S3cr3t-p4ssw0rd"

static void assert_options_refused(struct fixture *f, const redlock_options *options,
                                   const char *named) {
    redlock_client *client = (redlock_client *)f;
    redlock_error error;

    assert_int_equal(try_to_create(f, options, &client, &error), REDLOCK_EINVAL);
    assert_null(client);
    if (strstr(error.message, named) == NULL) {
        fail_msg("\"%s\" is not in the error: %s", named, error.message);
    }
    assert_null(strstr(error.message, PASSWORD));
    assert_int_equal(f->allocator.blocks, 0);
}

#if !HAS_TLS

/* A node at rediss:// never counts as one at redis://. */
static void a_node_is_refused(void **state) {
    struct fixture *f = *state;
    const char *uris[] = {"redis://127.0.0.1:1", "rediss://:" PASSWORD "@127.0.0.1:1"};
    redlock_options options = patient_options(f, uris, 2);

    assert_options_refused(f, &options, "nodes[1]: this build of libredlock has no TLS");
    assert_options_refused(f, &options, "hiredis >= 1.0");
}

static void options_are_refused(void **state) {
    struct fixture *f = *state;
    const char *uris[] = {"redis://127.0.0.1:1"};
    redlock_options options = patient_options(f, uris, 1);

    options.tls_cert_file = "cert.pem";
    assert_options_refused(f, &options, "tls_cert_file: this build of libredlock has no TLS");
    options.tls_ca_path = "/";
    assert_options_refused(f, &options, "tls_ca_path: this build of libredlock has no TLS");
    options.tls_ca_file = "ca.pem";
    assert_options_refused(f, &options, "tls_ca_file: this build of libredlock has no TLS");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        ON_NO_MASTERS(a_node_is_refused),
        ON_NO_MASTERS(options_are_refused),
    };

    print_message("# this build has no TLS, for its hiredis has none: what needs it is left out\n");
    return cmocka_run_group_tests_name("tls", tests, NULL, NULL);
}

#else

#include "authority.h"
#include "cycles.h"
#include "folder.h"
#include "harness_peer.h"
#include "master_data.h"
#include "proxy.h"
#include "watchdog.h"

#include <signal.h>

/* -------------------------------------------------------------------------------- certificates */

static char folder[FOLDER_SIZE];

/* Returns a path, valid for the next few calls. */
static const char *path_of(const char *name) {
    static char paths[8][FOLDER_SIZE + 32];
    static unsigned next;
    char *path = paths[next++ % 8];

    snprintf(path, sizeof(paths[0]), "%s/%s", folder, name);
    return path;
}

static void write_text(const char *name, const char *text) {
    FILE *file = fopen(path_of(name), "we");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0 && fclose(file) == 0);
}

static int make_certificates(void **state) {
    static const struct certificate wishes[] = {
        {.file = "good", .names = "DNS:localhost,IP:127.0.0.1,IP:::1"},
        {.file = "number", .names = "IP:127.0.0.1"},
        {.file = "name", .names = "DNS:localhost"},
        {.file = "common", .subject = "localhost"},
        {.file = "beside", .subject = "localhost", .names = "IP:127.0.0.1"},
        {.file = "elsewhere", .names = "DNS:elsewhere.example,IP:192.0.2.1"},
        {.file = "expired", .names = "DNS:localhost,IP:127.0.0.1", .has_expired = true},
        {.file = "locked", .names = "DNS:client", .passphrase = "secret"},
        {.file = "client", .names = "DNS:client"},
    };
    static const struct certificate strange = {.file = "strange",
                                               .names = "DNS:localhost,IP:127.0.0.1"};
    struct authority *authority, *stranger;

    (void)state;
    if (folder_make(folder, "tls") != 0) {
        return -1;
    }
    authority = authority_create(folder, "ca");
    stranger = authority_create(folder, "stranger");
    for (size_t i = 0; i < sizeof(wishes) / sizeof(wishes[0]); i++) {
        authority_issue(authority, &wishes[i]);
    }
    authority_issue(stranger, &strange);
    authority_destroy(authority);
    authority_destroy(stranger);
    write_text("empty.pem", "");
    write_text("text.pem", "this is no certificate\n");
    return 0;
}

static int remove_certificates(void **state) {
    (void)state;
    return folder_remove(folder);
}

/* ------------------------------------------------------------------------------------- servers */

#define ARGUMENTS_MAX 16

/* Writes the arguments of redis-server for the certificate to present, followed by `more`. */
static void write_arguments(const char *arguments[ARGUMENTS_MAX], const char *name,
                            const char *const *more) {
    static char paths[3][FOLDER_SIZE + 32];
    size_t count = 0;

    snprintf(paths[0], sizeof(paths[0]), "%s/%s.pem", folder, name);
    snprintf(paths[1], sizeof(paths[1]), "%s/%s.key", folder, name);
    snprintf(paths[2], sizeof(paths[2]), "%s/ca.pem", folder);
    arguments[count++] = "--tls-cert-file";
    arguments[count++] = paths[0];
    arguments[count++] = "--tls-key-file";
    arguments[count++] = paths[1];
    arguments[count++] = "--tls-ca-cert-file";
    arguments[count++] = paths[2];
    arguments[count++] = "--tls-auth-clients";
    arguments[count++] = "no";
    while (more != NULL && *more != NULL && count < ARGUMENTS_MAX - 1) {
        arguments[count++] = *more++;
    }
    arguments[count] = NULL;
}

/* Starts masters over TLS that present this certificate. */
static int start_tls(void **state, size_t count, const char *name, const char *const *more) {
    const char *arguments[ARGUMENTS_MAX];
    const struct masters_options options = {.arguments = arguments, .tls = true};

    write_arguments(arguments, name, more);
    return start_fixture_with(state, count, &options);
}

static int five_good(void **state) {
    return start_tls(state, 5, "good", NULL);
}

static int one_good(void **state) {
    return start_tls(state, 1, "good", NULL);
}

#define ON(setup, test) cmocka_unit_test_setup_teardown(test, setup, finish)

static redlock_options trusting_options(struct fixture *f, const char *const *uris, size_t count) {
    redlock_options options = patient_options(f, uris, count);

    options.tls_ca_file = path_of("ca.pem");
    return options;
}

static redlock_client *connect_trusting(struct fixture *f) {
    size_t count = masters_count(f->masters);
    redlock_options options = trusting_options(f, masters_uris(f->masters), count);

    return connect_with(f, &options);
}

/* Asserts that the reason for the node contains one of these texts. */
#define ASSERT_REASON(client, node, ...)                                                           \
    assert_reason(client, node, (const char *const[]){__VA_ARGS__, NULL})

static void assert_reason(const redlock_client *client, size_t node, const char *const *texts) {
    const char *reason = node_info(client, node).reason;

    for (size_t i = 0; texts[i] != NULL; i++) {
        if (strstr(reason, texts[i]) != NULL) {
            return;
        }
    }
    fail_msg("\"%s\" is not in the reason: %s", texts[0], reason);
}

/* Acquires, competes with another client, extends, and releases. */
static void assert_lock_works(struct fixture *f, redlock_client *client, redlock_client *other) {
    redlock_lock *lock = hold(f, client, KEY, LONG_TTL_MS);

    assert_int_equal(try_lock(f, other, KEY, LONG_TTL_MS), REDLOCK_EHELD);
    assert_int_equal(extend(f, lock, LONG_TTL_MS), REDLOCK_OK);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    wait_released(f, KEY);
    assert_int_equal(let_go(f, hold(f, other, KEY, LONG_TTL_MS)), REDLOCK_OK);
}

/* -------------------------------------------------------------------------- a lock over TLS */

static void a_lock_lives_over_tls(void **state) {
    struct fixture *f = *state;

    assert_lock_works(f, connect_trusting(f), connect_trusting(f));
}

/* Requests may be made at once: they wait for the handshake. */
static void requests_wait_for_the_handshake(void **state) {
    struct fixture *f = *state;
    redlock_options options = trusting_options(f, masters_uris(f->masters), 5);
    redlock_client *client = create_client(f, &options);
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    struct call *call = acquire(f, client, &request);

    assert_ended(call, REDLOCK_OK);
    assert_int_equal(votes(call, REDLOCK_VOTE_UNREACHABLE), 0);
    assert_int_equal(let_go(f, call->lock), REDLOCK_OK);
}

static void a_watchdog_renews_over_tls(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_trusting(f);
    redlock_request request = request_for(KEY, 60000);
    redlock_lock *lock;

    request.watchdog = true;
    lock = hold_for(f, client, &request);
    size_t before = executed(f, 0, "evalsha");
    for (size_t i = 0; i < 5; i++) {
        pass_renewal(f, lock, 60000);
    }
    wait_executed(f, 0, "evalsha", before + 4); /* the first renewal carries the text */
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    wait_released(f, KEY);
}

static void thousands_of_cycles(void **state) {
    static struct cycles cycles;
    struct fixture *f = *state;

    cycles = (struct cycles){.prefix = "cycle", .ttl_ms = LONG_TTL_MS};
    cycles_run(&cycles, f, connect_trusting(f), 64, cycles_here(4000));
}

/* Begins `count` acquisitions of keys of `length` bytes. The caller frees the array. */
static struct call **begin_many(struct fixture *f, redlock_client *client, size_t count,
                                size_t length) {
    struct call **calls = calloc(count, sizeof(*calls));
    char *key = calloc(1, length + 1);

    assert_true(calls != NULL && key != NULL);
    memset(key, 'k', length);
    for (size_t i = 0; i < count; i++) {
        redlock_request request = request_for(key, LONG_TTL_MS);
        size_t rest = i;

        for (unsigned k = 0; k < 8; k++, rest /= 10) {
            key[k] = (char)('0' + rest % 10);
        }
        calls[i] = begin_acquire(f, client, &request);
    }
    free(key);
    return calls;
}

static void assert_all_ok(struct fixture *f, struct call **calls, size_t count) {
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(await(f, calls[i]), REDLOCK_OK);
    }
}

/* Acquires more in one turn than a socket takes, with more answers than a TLS record holds. */
static void acquire_many(struct fixture *f, redlock_client *client, size_t count, size_t length) {
    struct call **calls = begin_many(f, client, count, length);

    assert_all_ok(f, calls, count);
    for (size_t i = 0; i < count; i++) {
        calls[i] = begin_release(f, calls[i]->lock);
    }
    assert_all_ok(f, calls, count);
    free(calls);
}

static void thousands_at_once(void **state) {
    struct fixture *f = *state;

    acquire_many(f, connect_trusting(f), cycles_here(8000), 16);
}

static void long_keys_fill_the_socket(void **state) {
    struct fixture *f = *state;

    /* the acquisitions' share of max_bytes */
    acquire_many(f, connect_trusting(f), 180, REDLOCK_MAX_KEY);
}

static void a_server_that_restarts_is_found_again(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_trusting(f);

    for (size_t i = 0; i < 5; i++) {
        redlock_lock *lock = hold(f, client, KEY, LONG_TTL_MS);

        masters_kill(f->masters, i);
        wait_connected(f, client, 4);
        assert_int_equal(let_go(f, lock), REDLOCK_OK);
        masters_restart(f->masters, i);
        wait_connected(f, client, 5);
    }
    assert_lock_works(f, client, connect_trusting(f));
}

/* The application has the default action for SIGPIPE, which ends the process. */
static void no_sigpipe_reaches_the_host(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_trusting(f);

    signal(SIGPIPE, SIG_DFL);
    for (unsigned i = 0; i < 20; i++) {
        redlock_request request = request_for(KEY, LONG_TTL_MS);
        struct call *first, *second;

        masters_kill(f->masters, 0);
        first =
            begin_acquire(f, client, &request); /* the first write succeeds, the second does not */
        second = begin_acquire(f, client, &request);
        await(f, first);
        await(f, second);
        masters_restart(f->masters, 0);
        wait_connected(f, client, 1);
    }
    signal(SIGPIPE, SIG_IGN);
}

static void a_stalled_server_is_dropped(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_trusting(f);
    redlock_lock *lock;

    freeze(f, 2);
    lock = hold(f, client, KEY, LONG_TTL_MS);
    pass_until_disconnected(f, client, 2, PATIENT_MS, 1);
    ASSERT_REASON(client, 2, "stalled");
    pass_until_disconnected(f, client, 2, PATIENT_MS,
                            2); /* the node's port accepts connections, and sends nothing */
    ASSERT_REASON(client, 2, "in the TLS handshake");
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    thaw(f, 2);
    wait_connected(f, client, 5);
    wait_releases_done(f, client, 2);
    wait_released(f, KEY);
}

/* ------------------------------------------------------------------------------ pieces and jams */

/* Makes a client of the fixture's only master, through a proxy. */
static redlock_client *connect_through(struct fixture *f, const struct proxy *proxy) {
    char text[64];
    const char *uris[] = {text};
    redlock_options options = trusting_options(f, uris, 1);

    snprintf(text, sizeof(text), "rediss://127.0.0.1:%d", proxy_port(proxy));
    return connect_with(f, &options);
}

/* The handshake and the answers arrive byte by byte, so that each read is incomplete. */
static void everything_may_come_in_pieces(void **state) {
    static const size_t pieces[] = {1, 2, 7, 100};
    struct fixture *f = *state;
    struct proxy *proxy = proxy_create_blind(f, 0);

    for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
        redlock_client *client;

        proxy_set_piece(proxy, pieces[i]);
        client = connect_through(f, proxy);
        assert_int_equal(let_go(f, hold(f, client, KEY, LONG_TTL_MS)), REDLOCK_OK);
        wait_answered(f, client, 0);
        close_client(f, client);
    }
}

#define JAM 150

/* Bytes that the socket does not take wait, and are sent later even if the server sends nothing. */
static void a_jam_clears(void **state) {
    struct fixture *f = *state;
    struct proxy *proxy = proxy_create_blind(f, 0);
    redlock_client *client = connect_through(f, proxy);

    for (unsigned i = 0; i < 3; i++) {
        struct call **calls;

        proxy_jam_requests(proxy);
        calls = begin_many(f, client, JAM, REDLOCK_MAX_KEY);
        run_turns(f, 200);
        proxy_pass_requests(proxy);
        assert_all_ok(f, calls, JAM);
        for (size_t k = 0; k < JAM; k++) {
            assert_int_equal(let_go(f, calls[k]->lock), REDLOCK_OK);
        }
        free(calls);
    }
}

/* --------------------------------------------------------------- servers that the client trusts */

/* A client's view of the fixture's first master: its name, and the reason for distrust. */
struct doubt {
    const char *host;
    const char *ca_file; /* NULL: the system's */
    const char *reason;  /* NULL: it is trusted */
};

static void assert_doubted(struct fixture *f, redlock_client *client, const char *reason) {
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    struct call *call;

    wait_disconnected(f, client, 0, 2);
    ASSERT_REASON(client, 0, reason);
    call = acquire(f, client, &request);
    assert_ended(call, REDLOCK_ENOQUORUM);
    assert_int_equal(votes(call, REDLOCK_VOTE_UNREACHABLE), 1);
}

static void assert_doubts(struct fixture *f, const struct doubt *doubts, size_t count) {
    f->capture.secret = PASSWORD;
    for (size_t i = 0; i < count; i++) {
        char text[96];
        const char *uris[] = {text};
        redlock_options options = patient_options(f, uris, 1);
        redlock_client *client;

        snprintf(text, sizeof(text), "rediss://:" PASSWORD "@%s:%d", doubts[i].host,
                 masters_port(f->masters, 0));
        options.tls_ca_file = doubts[i].ca_file != NULL ? path_of(doubts[i].ca_file) : NULL;
        client = create_client(f, &options);
        if (doubts[i].reason == NULL) {
            wait_connected(f, client, 1);
            assert_int_equal(let_go(f, hold(f, client, KEY, LONG_TTL_MS)), REDLOCK_OK);
        } else {
            size_t logins = executed(f, 0, "auth");

            assert_doubted(f, client, doubts[i].reason);
            /* The test's own query sent the only password. */
            assert_int_equal(executed(f, 0, "auth"), logins + 1);
        }
        close_client(f, client);
    }
}

#define ASSERT_DOUBTS(f, ...)                                                                      \
    do {                                                                                           \
        static const struct doubt doubts[] = {__VA_ARGS__};                                        \
        assert_doubts(f, doubts, sizeof(doubts) / sizeof(doubts[0]));                              \
    } while (0)

static const char *const password[] = {"--requirepass", PASSWORD, NULL};

static int one_good_with_password(void **state) {
    return start_tls(state, 1, "good", password);
}

static void only_a_known_authority_counts(void **state) {
    ASSERT_DOUBTS(
        *state, {"127.0.0.1", "ca.pem", NULL}, {"localhost", "ca.pem", NULL},
        {"127.0.0.1", "stranger.pem", "certificate verify failed: self-signed certificate in"},
        {"localhost", NULL, "certificate verify failed"});
}

static int one_expired(void **state) {
    return start_tls(state, 1, "expired", password);
}

static void an_expired_certificate_is_refused(void **state) {
    ASSERT_DOUBTS(*state, {"127.0.0.1", "ca.pem", "certificate has expired"});
}

static int one_from_elsewhere(void **state) {
    return start_tls(state, 1, "elsewhere", password);
}

static void the_name_must_be_right(void **state) {
    ASSERT_DOUBTS(*state, {"localhost", "ca.pem", "hostname mismatch"},
                  {"127.0.0.1", "ca.pem", "IP address mismatch"});
}

static int one_by_number(void **state) {
    return start_tls(state, 1, "number", password);
}

static void a_number_is_no_name(void **state) {
    ASSERT_DOUBTS(*state, {"127.0.0.1", "ca.pem", NULL}, {"localhost", "ca.pem", "mismatch"});
}

static int one_by_name(void **state) {
    return start_tls(state, 1, "name", password);
}

static void a_name_is_no_number(void **state) {
    ASSERT_DOUBTS(*state, {"localhost", "ca.pem", NULL}, {"127.0.0.1", "ca.pem", "mismatch"});
}

static int one_by_its_common_name(void **state) {
    return start_tls(state, 1, "common", password);
}

/* Certificates name servers in subjectAltName; the common name is any text (RFC 9525). */
static void a_common_name_is_no_name(void **state) {
    ASSERT_DOUBTS(*state, {"localhost", "ca.pem", "hostname mismatch"},
                  {"127.0.0.1", "ca.pem", "IP address mismatch"});
}

static int one_by_number_beside_a_common_name(void **state) {
    return start_tls(state, 1, "beside", password);
}

static void nor_beside_a_number(void **state) {
    ASSERT_DOUBTS(*state, {"127.0.0.1", "ca.pem", NULL},
                  {"localhost", "ca.pem", "hostname mismatch"});
}

static void one_bad_server_is_borne(void **state) {
    struct fixture *f = *state;
    const char *arguments[ARGUMENTS_MAX];
    const struct masters_options strange = {.arguments = arguments, .tls = true};
    struct masters *stranger;
    const char *uris[5];
    redlock_options options;
    redlock_client *client;

    write_arguments(arguments, "strange", NULL);
    stranger = masters_start_with(1, &strange);
    assert_non_null(stranger);
    for (size_t i = 0; i < 5; i++) {
        uris[i] = i == 2 ? masters_uri(stranger, 0) : masters_uri(f->masters, i);
    }
    options = trusting_options(f, uris, 5);
    client = create_client(f, &options);
    wait_connected(f, client, 4);
    wait_disconnected(f, client, 2, 1);
    assert_int_equal(let_go(f, hold(f, client, KEY, LONG_TTL_MS)), REDLOCK_OK);
    ASSERT_REASON(client, 2, "unable to get local issuer");
    close_client(f, client);
    masters_finish(stranger);
}

/* The authorities' certificates may be in a folder. */
static void authorities_may_be_in_a_folder(void **state) {
    struct fixture *f = *state;
    redlock_options options = patient_options(f, masters_uris(f->masters), 5);
    redlock_client *client;

    options.tls_ca_path = path_of("ca");
    close_client(f, connect_with(f, &options));
    options.tls_ca_path = path_of("stranger");
    client = create_client(f, &options);
    wait_disconnected(f, client, 0, 1);
    ASSERT_REASON(client, 0, "certificate verify failed");
}

/* --------------------------------------------------------------- clients that the server trusts */

static int one_that_asks(void **state, const char *protocol) {
    const char *more[] = {"--tls-auth-clients", "yes", "--tls-protocols", protocol, NULL};

    return start_tls(state, 1, "good", more);
}

static int one_that_asks_12(void **state) {
    return one_that_asks(state, "TLSv1.2");
}

static int one_that_asks_13(void **state) {
    return one_that_asks(state, "TLSv1.3");
}

/* Asserts the server's reason to refuse the client, or a guess if a reset overtook the alert. */
static void assert_unwanted(struct fixture *f, const redlock_options *options, const char *reason) {
    redlock_client *client = create_client(f, options);

    wait_disconnected(f, client, 0, 1);
    ASSERT_REASON(client, 0, reason, "another tls_cert_file", "in the TLS handshake");
    close_client(f, client);
}

static void assert_certificate_needed(struct fixture *f, const char *reason) {
    redlock_options options = trusting_options(f, masters_uris(f->masters), 1);
    redlock_client *client;

    assert_unwanted(f, &options, reason);
    options.tls_cert_file = path_of("strange.pem");
    options.tls_key_file = path_of("strange.key");
    assert_unwanted(f, &options, "unknown ca");
    options.tls_cert_file = path_of("client.pem");
    options.tls_key_file = path_of("client.key");
    client = connect_with(f, &options);
    assert_int_equal(let_go(f, hold(f, client, KEY, LONG_TTL_MS)), REDLOCK_OK);
}

static void a_client_shows_its_certificate_in_1_2(void **state) {
    assert_certificate_needed(*state, "handshake failure");
}

static void a_client_shows_its_certificate_in_1_3(void **state) {
    assert_certificate_needed(*state, "certificate required");
}

/* ---------------------------------------------------------- servers that speak another protocol */

static int one_that_is_old(void **state) {
    static const char *const old[] = {"--tls-protocols", "TLSv1.1", "--tls-ciphers",
                                      "DEFAULT:@SECLEVEL=0", NULL};

    return start_tls(state, 1, "good", old);
}

static void old_protocols_are_refused(void **state) {
    struct fixture *f = *state;
    redlock_options options = trusting_options(f, masters_uris(f->masters), 1);
    redlock_client *client = create_client(f, &options);

    wait_disconnected(f, client, 0, 1);
    ASSERT_REASON(client, 0, "protocol");
}

static int one_plain(void **state) {
    return start_fixture(state, 1, NULL);
}

/* A plain server reads the handshake as a command, or as the start of one. */
static void a_plain_server_is_distinguished_from_one_with_tls(void **state) {
    struct fixture *f = *state;
    char text[64];
    const char *uris[] = {text};
    redlock_options options = trusting_options(f, uris, 1);
    redlock_client *client;

    snprintf(text, sizeof(text), "rediss://127.0.0.1:%d", masters_port(f->masters, 0));
    options.stall_timeout_ms = 500;
    client = create_client(f, &options);
    for (unsigned i = 1; i <= 20; i++) {
        wait_disconnected(f, client, 0, i);
        ASSERT_REASON(client, 0, "does the server speak TLS", "in the TLS handshake");
    }
}

static void a_server_with_tls_is_distinguished_from_a_plain_one(void **state) {
    struct fixture *f = *state;
    char text[64];
    const char *uris[] = {text};
    redlock_options options = trusting_options(f, uris, 1);
    redlock_client *client;

    snprintf(text, sizeof(text), "redis://127.0.0.1:%d", masters_port(f->masters, 0));
    client = create_client(f, &options);
    wait_disconnected(f, client, 0, 1);
    ASSERT_REASON(client, 0, "rediss://");
}

/* The bytes that a server sends at once before it hangs up. */
struct greeting {
    const char *bytes;
    size_t length;
};

static void greet(struct peer_link *link, void *arg) {
    const struct greeting *greeting = arg;

    peer_turn_away(link);
    peer_send(link, greeting->bytes, greeting->length);
    peer_hang_up(link);
}

#define ALERT "\x15\x03\x03\x00\x02\x02\x28" /* fatal: handshake_failure */

/* Makes a client of one server with this greeting. */
static redlock_client *meet(struct fixture *f, const char *scheme, struct greeting *greeting) {
    struct peer *peer = peer_create(f, peer_answer_nothing, greeting);
    char uri[64];
    const char *uris[] = {uri};
    redlock_options options = trusting_options(f, uris, 1);
    redlock_client *client;

    snprintf(uri, sizeof(uri), "%s%s", scheme, peer_uri(peer) + strlen("redis://"));
    peer_greet(peer, greet);
    client = create_client(f, &options);
    wait_disconnected(f, client, 0, 5);
    return client;
}

/* The server sends other bytes, or none, instead of its certificate. */
static void a_handshake_that_breaks_is_named(void **state) {
    static struct greeting greetings[] = {
        {"", 0}, {"HTTP/1.1 400 Bad Request\r\n", 26}, {"\x16\x03", 2}, {ALERT, 7}};
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof(greetings) / sizeof(greetings[0]); i++) {
        redlock_client *client = meet(f, "rediss://", &greetings[i]);

        ASSERT_REASON(client, 0, "TLS");
        close_client(f, client);
    }
}

static void an_alert_is_no_answer(void **state) {
    static struct greeting greeting = {ALERT, 7};
    struct fixture *f = *state;
    redlock_client *client = meet(f, "redis://", &greeting);

    ASSERT_REASON(client, 0, "speaks TLS");
}

/* --------------------------------------------------------------------------------------- files */

static void files_are_checked_at_once(void **state) {
    static const struct {
        const char *ca_file, *ca_path, *cert_file, *key_file, *named;
    } cases[] = {
        {"none.pem", NULL, NULL, NULL, "none.pem: No such file or directory"},
        {"empty.pem", NULL, NULL, NULL, "tls_ca_file: "},
        {"empty.pem", NULL, NULL, NULL, "empty.pem: is empty"},
        {"text.pem", NULL, NULL, NULL, "text.pem: holds no certificate"},
        {"ca", NULL, NULL, NULL, "ca: Is a directory"},
        {"good.key", NULL, NULL, NULL, "good.key: holds no certificate"},
        {NULL, "none", NULL, NULL, "none: No such file or directory"},
        {NULL, "none", NULL, NULL, "tls_ca_path: "},
        {NULL, "ca.pem", NULL, NULL, "ca.pem: Not a directory"},
        {NULL, NULL, "none.pem", NULL, "tls_cert_file: "},
        {NULL, NULL, "none.pem", NULL, "none.pem: No such file or directory"},
        {NULL, NULL, "text.pem", "client.key", "text.pem: holds no certificate"},
        {NULL, NULL, "client.pem", NULL, "client.pem: holds no private key"},
        {NULL, NULL, "client.pem", "none.key", "none.key: No such file or directory"},
        {NULL, NULL, "client.pem", "none.key", "tls_key_file: "},
        {NULL, NULL, "client.pem", "text.pem", "text.pem: holds no private key"},
        {NULL, NULL, "client.pem", "good.key", "good.key: is not the key of the certificate"},
        {NULL, NULL, "locked.pem", "locked.key", "locked.key: the key is encrypted"},
        {NULL, NULL, NULL, "client.key", "tls_key_file: tls_cert_file"},
    };
    struct fixture *f = *state;
    const char *uris[] = {"rediss://:" PASSWORD "@127.0.0.1:1"};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        redlock_options options = patient_options(f, uris, 1);

        options.tls_ca_file = cases[i].ca_file != NULL ? path_of(cases[i].ca_file) : NULL;
        options.tls_ca_path = cases[i].ca_path != NULL ? path_of(cases[i].ca_path) : NULL;
        options.tls_cert_file = cases[i].cert_file != NULL ? path_of(cases[i].cert_file) : NULL;
        options.tls_key_file = cases[i].key_file != NULL ? path_of(cases[i].key_file) : NULL;
        assert_options_refused(f, &options, cases[i].named);
    }
}

/* The key is in one file with its certificate. */
static void a_key_may_stand_beside_its_certificate(void **state) {
    struct fixture *f = *state;
    const char *uris[] = {"redis://127.0.0.1:1"};
    redlock_options options = patient_options(f, uris, 1);
    char command[FOLDER_SIZE + 64];

    snprintf(command, sizeof(command), "cd '%s' && cat client.pem client.key >both.pem", folder);
    assert_int_equal(system(command), 0);
    options.tls_cert_file = path_of("both.pem");
    close_client(f, create_client(f, &options));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        ON(five_good, a_lock_lives_over_tls),
        ON(five_good, requests_wait_for_the_handshake),
        ON(five_good, a_watchdog_renews_over_tls),
        ON(five_good, thousands_of_cycles),
        ON(five_good, thousands_at_once),
        ON(five_good, long_keys_fill_the_socket),
        ON(five_good, a_server_that_restarts_is_found_again),
        ON(one_good, no_sigpipe_reaches_the_host),
        ON(five_good, a_stalled_server_is_dropped),
        ON(one_good, everything_may_come_in_pieces),
        ON(one_good, a_jam_clears),
        ON(one_good_with_password, only_a_known_authority_counts),
        ON(one_expired, an_expired_certificate_is_refused),
        ON(one_from_elsewhere, the_name_must_be_right),
        ON(one_by_number, a_number_is_no_name),
        ON(one_by_name, a_name_is_no_number),
        ON(one_by_its_common_name, a_common_name_is_no_name),
        ON(one_by_number_beside_a_common_name, nor_beside_a_number),
        ON(five_good, one_bad_server_is_borne),
        ON(five_good, authorities_may_be_in_a_folder),
        ON(one_that_asks_12, a_client_shows_its_certificate_in_1_2),
        ON(one_that_asks_13, a_client_shows_its_certificate_in_1_3),
        ON(one_that_is_old, old_protocols_are_refused),
        ON(one_plain, a_plain_server_is_distinguished_from_one_with_tls),
        ON(one_good, a_server_with_tls_is_distinguished_from_a_plain_one),
        ON_NO_MASTERS(a_handshake_that_breaks_is_named),
        ON_NO_MASTERS(an_alert_is_no_answer),
        ON_NO_MASTERS(files_are_checked_at_once),
        ON_NO_MASTERS(a_key_may_stand_beside_its_certificate),
    };

    return cmocka_run_group_tests_name("tls", tests, make_certificates, remove_certificates);
}

#endif
