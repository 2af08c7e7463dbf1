/* Nodes that answer with an error: it costs only their own vote, and is named in the report. */
#include "clocks.h"
#include "harness.h"
#include "harness_peer.h"
#include "master_data.h"
#include "wait_queue.h"
#include "watchdog.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY "orders:42"
#define FIVE 5

/* ----------------------------------------------------------------------------- errors of a node */

/* Asserts that the report blames this node, and no other, with this text. */
static void assert_blamed(const struct call *call, size_t node, const char *text) {
    for (size_t i = 0; i < call->opinion_count; i++) {
        const struct opinion *opinion = &call->opinions[i];
        bool failed = opinion->vote == REDLOCK_VOTE_ERROR ||
                      opinion->vote == REDLOCK_VOTE_UNREACHABLE ||
                      opinion->vote == REDLOCK_VOTE_REFUSED || opinion->vote == REDLOCK_VOTE_BROKEN;

        if (i == node && opinion->vote != REDLOCK_VOTE_NONE) {
            if (!failed || strstr(opinion->detail, text) == NULL) {
                fail_msg("node %zu is not blamed for %s: %s", i, text, call->why);
            }
        } else {
            assert_false(failed);
        }
    }
}

/* Acquires, extends and releases. `node` fails with `text`, which must cost only its own vote. */
static void assert_one_bad_node_is_borne(struct fixture *f, redlock_client *client, size_t node,
                                         const char *text) {
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    struct call *call = acquire(f, client, &request);

    assert_ended(call, REDLOCK_OK);
    assert_blamed(call, node, text);
    assert_true(votes(call, REDLOCK_VOTE_GRANTED) >= 3);
    assert_int_equal(extend(f, call->lock, LONG_TTL_MS), REDLOCK_OK);
    assert_int_equal(let_go(f, call->lock), REDLOCK_OK);
    wait_released(f, KEY);
}

static void an_error_of_each_node_in_turn_is_borne(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);

    for (size_t i = 0; i < FIVE; i++) {
        send_to(f, i, i + 1, "CONFIG SET min-replicas-to-write 1");
        assert_one_bad_node_is_borne(f, client, i, "NOREPLICAS");
        send_to(f, i, i + 1, "CONFIG SET min-replicas-to-write 0");
    }
    assert_int_equal(try_lock(f, client, KEY, LONG_TTL_MS), REDLOCK_OK);
}

static void a_full_node_is_borne_and_named(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    struct call *call;

    send_to(f, 1, 2, "CONFIG SET maxmemory 1");
    assert_one_bad_node_is_borne(f, client, 1, "OOM");
    send_to(f, 2, 4, "CONFIG SET maxmemory 1");
    call = acquire(f, client, &request);
    assert_ended(call, REDLOCK_ENOQUORUM);
    assert_int_equal(votes(call, REDLOCK_VOTE_ERROR), 3);
    assert_explained(call, "OOM");
    wait_released(f, KEY);
}

/* A lock can be released on a node that became full after the acquisition. */
static void full_nodes_still_release(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_lock *lock = hold(f, client, KEY, LONG_TTL_MS);

    wait_holders(f, KEY, 5);
    send_to(f, 0, 5, "CONFIG SET maxmemory 1");
    assert_int_equal(extend(f, lock, LONG_TTL_MS), REDLOCK_OK);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    wait_released(f, KEY);
}

static void a_replica_is_borne_and_named(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);

    /* The new master does not exist, so that only the role changes and nothing is copied. */
    send_to(f, 0, 1, "REPLICAOF 127.0.0.1 1");
    assert_one_bad_node_is_borne(f, client, 0, "READONLY");
    wait_logged(f, "READONLY");
    assert_true(f->capture.levels[REDLOCK_LOG_ERROR] > 0);
}

#define PASSWORD "S3cr3t-p4ssw0rd"

static int masters_with_password(void **state) {
    static const char *const arguments[] = {"--requirepass", PASSWORD, NULL};
    int result = start_fixture(state, FIVE, arguments);

    if (result == 0) {
        ((struct fixture *)*state)->capture.secret = PASSWORD;
    }
    return result;
}

/* URIs of masters with a password; the first `bad` ones have `wrong` before the address. */
struct logins {
    char texts[FIVE][80];
    const char *uris[FIVE];
};

static void write_logins(struct fixture *f, struct logins *logins, size_t bad, const char *wrong) {
    for (size_t i = 0; i < FIVE; i++) {
        snprintf(logins->texts[i], sizeof(logins->texts[i]), "redis://%s127.0.0.1:%d",
                 i < bad ? wrong : ":" PASSWORD "@", masters_port(f->masters, i));
        logins->uris[i] = logins->texts[i];
    }
}

static redlock_client *log_in(struct fixture *f, size_t bad, const char *wrong) {
    struct logins logins;
    redlock_options options;

    write_logins(f, &logins, bad, wrong);
    options = patient_options(f, logins.uris, FIVE);
    return create_client(f, &options);
}

static void the_right_password_is_taken(void **state) {
    struct fixture *f = *state;
    redlock_client *client = log_in(f, 2, "default:" PASSWORD "@");

    wait_connected(f, client, FIVE);
    assert_int_equal(let_go(f, hold(f, client, KEY, LONG_TTL_MS)), REDLOCK_OK);
}

/* Asserts that a quorum refuses a new client from the first try on. */
static void assert_no_access(struct fixture *f, redlock_client *client, const char *text) {
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    struct call *call;
    char why[80];

    snprintf(why, sizeof(why), " refused: %s", text);
    call = acquire(f, client, &request);
    assert_ended(call, REDLOCK_EACCESS);
    assert_explained(call, why);
    assert_explained(call, "not acquired: no access to the nodes after 1 try");
    request.wait_ms = REDLOCK_FOREVER; /* ended at once nevertheless */
    call = acquire(f, client, &request);
    assert_ended(call, REDLOCK_EACCESS);
    assert_explained(call, why);
    request.wait_ms = 0;
    request.retries = 1000;
    call = acquire(f, client, &request);
    assert_ended(call, REDLOCK_EACCESS);
    assert_explained(call, why);
}

static void assert_login_fails(struct fixture *f, const char *wrong, const char *text) {
    redlock_client *client = log_in(f, 1, wrong);

    wait_logged(f, text);
    assert_one_bad_node_is_borne(f, client, 0, text);
    close_client(f, client);
    assert_no_access(f, log_in(f, 3, wrong), text);
    assert_true(f->capture.levels[REDLOCK_LOG_ERROR] > 0);
}

static void a_wrong_password_is_borne_and_named(void **state) {
    assert_login_fails(*state, ":wr0ng@", "WRONGPASS");
}

/* Nodes that are known to refuse the login are not asked, which is a vote of its own. */
static void a_node_that_refused_the_login_is_not_asked(void **state) {
    struct fixture *f = *state;
    redlock_client *client = log_in(f, 3, ":wr0ng@");
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    struct call *call;

    for (size_t i = 0; i < 3; i++) {
        wait_disconnected(f, client, i, 1);
    }
    call = acquire(f, client, &request);
    assert_ended(call, REDLOCK_EACCESS);
    assert_int_equal(votes(call, REDLOCK_VOTE_REFUSED), 3);
    assert_explained(call, "; 3 refused: WRONGPASS");
    assert_int_equal(node_info(client, 0).pending_releases, 0);
    assert_false(redlock_is_retryable(REDLOCK_EACCESS));
}

/* Two of five that refuse are no quorum: the others decide, and report that the key is held. */
static void a_minority_that_refuses_decides_nothing(void **state) {
    struct fixture *f = *state;
    redlock_client *client = log_in(f, 2, ":wr0ng@");
    redlock_client *other = log_in(f, 0, "");

    hold(f, other, KEY, LONG_TTL_MS);
    assert_int_equal(try_lock(f, client, KEY, LONG_TTL_MS), REDLOCK_EHELD);
}

static void a_missing_password_is_borne_and_named(void **state) {
    assert_login_fails(*state, "", "NOAUTH");
}

static void a_password_where_none_is_set_is_named(void **state) {
    struct fixture *f = *state;

    assert_no_access(f, log_in(f, 3, ":" PASSWORD "@"), "ERR AUTH");
}

/* Makes a client whose first `bad` nodes have a missing database in their URI. */
static redlock_client *without_database(struct fixture *f, size_t bad) {
    const char *uris[FIVE];
    char texts[FIVE][64];
    redlock_options options;

    for (size_t i = 0; i < FIVE; i++) {
        snprintf(texts[i], sizeof(texts[i]), "%s%s", masters_uri(f->masters, i),
                 i < bad ? "/99" : "");
        uris[i] = texts[i];
    }
    options = patient_options(f, uris, FIVE);
    return create_client(f, &options);
}

static void a_database_that_is_not_there_is_borne_and_named(void **state) {
    struct fixture *f = *state;
    redlock_client *client = without_database(f, 1);

    wait_connected(f, client, 4);
    wait_disconnected(f, client, 0, 2);
    assert_one_bad_node_is_borne(f, client, 0, "DB index");
    close_client(f, client);
    assert_no_access(f, without_database(f, 3), "ERR DB index");
}

/* --------------------------------------------------------------- errors that only peers produce */

/* The peers' current refusal. */
static struct refusal {
    const char *text;
    bool everything; /* the handshake is refused, too, not only locks */
} refusal;

static void refuse(struct peer_link *link, const struct command *command, void *arg) {
    bool of_locks = command_is(command, "SET", NULL) || command_is_script(command);

    (void)arg;
    if (refusal.everything || of_locks) {
        peer_say(link, "-");
        peer_say(link, refusal.text);
        peer_say(link, "\r\n");
    } else {
        peer_answer_well(link, command, NULL);
    }
}

static const char *const refusals[] = {
    "LOADING Redis is loading the dataset in memory",
    "MISCONF Redis is configured to save RDB snapshots",
    "BUSY Redis is busy running a script.",
    "MASTERDOWN Link with MASTER is down",
    "CLUSTERDOWN The cluster is down",
    "CROSSSLOT Keys in request don't hash to the same slot",
    "MOVED 866 127.0.0.1:6380",
    "ASK 866 127.0.0.1:6380",
    "NOPERM this user has no permissions to run the 'set' command",
    "TRYAGAIN Multiple keys request during rehashing of slot",
    "ERR max number of clients reached",
    "ERR something nobody has heard of yet",
    "X",
    "",
};

/* Makes a client of five nodes, the first `bad` of which are peers that refuse. */
static redlock_client *with_refusers(struct fixture *f, size_t bad, struct peer **peers) {
    const char *uris[FIVE];
    redlock_options options;

    for (size_t i = 0; i < FIVE; i++) {
        uris[i] = masters_uri(f->masters, i);
        if (i < bad) {
            peers[i] = peer_create(f, refuse, NULL);
            uris[i] = peer_uri(peers[i]);
        }
    }
    options = patient_options(f, uris, FIVE);
    return create_client(f, &options);
}

static void assert_refusal_is_borne(struct fixture *f, size_t bad) {
    struct peer *peers[FIVE];
    redlock_client *client = with_refusers(f, bad, peers);
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    struct call *call;

    for (size_t i = 0; i < bad; i++) {
        wait_peer_links(f, peers[i], 1);
        wait_peer_commands(f, peers[i], 1);
    }
    if (!refusal.everything) {
        wait_connected(f, client, FIVE);
    }
    call = acquire(f, client, &request);
    if (bad <= 2) {
        assert_ended(call, REDLOCK_OK);
        assert_int_equal(extend(f, call->lock, LONG_TTL_MS), REDLOCK_OK);
        assert_int_equal(let_go(f, call->lock), REDLOCK_OK);
    } else {
        assert_ended(call,
                     strncmp(refusal.text, "NOPERM", 6) == 0 ? REDLOCK_EACCESS : REDLOCK_ENOQUORUM);
        if (!refusal.everything) {
            assert_explained(call, refusal.text);
            assert_int_equal(votes(call, REDLOCK_VOTE_ERROR), bad);
        }
    }
    wait_released(f, KEY);
    close_client(f, client);
}

static void each_error_is_the_vote_of_one_node(void **state) {
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
        refusal = (struct refusal){refusals[i], false};
        assert_refusal_is_borne(f, 2);
        assert_refusal_is_borne(f, 3);
    }
}

static void an_error_to_the_first_command_is_the_vote_of_one_node(void **state) {
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
        refusal = (struct refusal){refusals[i], true};
        assert_refusal_is_borne(f, 2);
        assert_refusal_is_borne(f, 3);
    }
}

/* Answers like a server that lacks every script, even a loaded one. */
static void forget_scripts(struct peer_link *link, const struct command *command, void *arg) {
    if (command_is(command, "EVALSHA", NULL)) {
        peer_say(link, "-NOSCRIPT No matching script. Please use EVAL.\r\n");
    } else {
        peer_answer_well(link, command, arg);
    }
}

static void a_node_that_keeps_no_script_still_votes(void **state) {
    struct fixture *f = *state;
    const char *uris[3];
    redlock_options options;
    redlock_client *client;
    redlock_lock *lock;

    for (size_t i = 0; i < 3; i++) {
        uris[i] = peer_uri(peer_create(f, forget_scripts, NULL));
    }
    options = patient_options(f, uris, 3);
    client = create_client(f, &options);
    wait_connected(f, client, 3);
    lock = hold(f, client, KEY, LONG_TTL_MS);
    assert_int_equal(extend(f, lock, LONG_TTL_MS), REDLOCK_OK);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
}

/* Each renewal meets an error, which is no reason to give up while the validity lasts. */
static void errors_of_renewals_are_borne_while_validity_lasts(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    struct loss *loss;
    redlock_lock *lock = hold_renewed(f, client, KEY, 60000, &loss);
    size_t before;

    before = executed(f, 0, "evalsha");
    send_to(f, 0, 3, "CONFIG SET min-replicas-to-write 1");
    while (executed(f, 0, "evalsha") < before + 3) {
        wait_all_answered(f, client);
        pass_time(1000);
        run_turns(f, 3);
        assert_int_equal(loss->count, 0);
    }
    assert_int_equal(loss->count, 0);
    send_to(f, 0, 3, "CONFIG SET min-replicas-to-write 0");
    assert_int_equal(extend(f, lock, 0), REDLOCK_OK);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    wait_released(f, KEY);
}

/* ------------------------------------------------------------------------- echoed arguments */

static int masters_without_scripts(void **state) {
    static const char *const arguments[] = {
        "--rename-command",    "EVALSHA", "NEVER-CALLED", "--rename-command", "EVAL",
        "NEVER-CALLED-EITHER", NULL};
    return start_fixture(state, FIVE, arguments);
}

/* A server echoes the arguments of an unknown command, which include our token. */
static void an_unknown_command_is_named_but_not_its_arguments(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_lock *lock = hold(f, client, KEY, LONG_TTL_MS);
    struct call *call = begin_extend(f, lock, 0);

    assert_int_equal(await(f, call), REDLOCK_ENOQUORUM);
    assert_explained(call, "unknown command");
    assert_false(holds_token(call->why));
    wait_logged(f, "unknown command"); /* the log capture itself checks for tokens */
}

static struct call *release_of_the_other;

/* Connects to all masters as a user with only these rights. */
static redlock_client *connect_as(struct fixture *f, const char *rights) {
    char text[5][128];
    const char *uris[5];
    char command[256];

    snprintf(command, sizeof(command), "ACL SETUSER app on >pw %s", rights);
    for (size_t i = 0; i < 5; i++) {
        free(masters_query(f->masters, i, command));
        snprintf(text[i], sizeof(text[i]), "redis://app:pw@127.0.0.1:%d",
                 masters_port(f->masters, i));
        uris[i] = text[i];
    }
    redlock_options options = patient_options(f, uris, 5);
    return connect_with(f, &options);
}

/* If the ACL forbids all that the client can do without, nothing fails. */
static void a_user_with_few_rights_hears_of_no_error(void **state) {
    struct fixture *f = *state;
    redlock_client *client =
        connect_as(f, "~* +set +get +del +pttl +pexpire +eval +evalsha +info +time");
    redlock_lock *lock = hold(f, client, "quiet:1", LONG_TTL_MS);
    assert_int_equal(await(f, begin_release(f, lock)), REDLOCK_OK);
    wait_released(f, "quiet:1");
    assert_int_equal(f->capture.levels[REDLOCK_LOG_ERROR], 0);
    assert_int_equal(f->capture.levels[REDLOCK_LOG_WARN], 0);
}

/*
 * A reader without the right to the list of readers gets no lock, and leaves no key that others
 * see.
 */
static void a_reader_without_a_right_leaves_no_key(void **state) {
    static const char *const lists[] = {"-zadd", "-zscore", "-zrange", "-zremrangebyscore",
                                        "-pexpireat"};
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++) {
        for (int waits = 0; waits < 2; waits++) {
            char rights[64];
            snprintf(rights, sizeof(rights), "reset on >pw ~* &* +@all %s", lists[i]);
            redlock_client *client = connect_as(f, rights);
            redlock_request request = request_for(KEY, LONG_TTL_MS);
            request.mode = REDLOCK_READER;
            request.wait_ms = waits ? LONG_TTL_MS : 0;
            assert_int_equal(await(f, begin_acquire(f, client, &request)), REDLOCK_EACCESS);
            wait_released(f, KEY);
            for (size_t m = 0; m < FIVE; m++) { /* no list either that would stay for ever */
                assert_int_not_equal(masters_query_integer(f->masters, m, "PTTL " KEY "::readers"),
                                     -1);
            }
        }
    }
}

/* Without the right to read the time a release passes nothing on: it deletes the key. */
static void a_release_without_the_time_deletes_the_key(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_as(f, "reset on >pw ~* &* +@all -time");
    redlock_request request = waiting_request(KEY);
    redlock_lock *lock = hold_for(f, client, &request);
    assert_int_equal(await(f, begin_release(f, lock)), REDLOCK_OK); /* it may have waited */
    wait_released(f, KEY);
    lock = hold(f, client, KEY, LONG_TTL_MS);
    struct call *next = begin_acquire(f, connect_client(f), &request);
    wait_in_queue(f, KEY, 1);
    assert_int_equal(await(f, begin_release(f, lock)), REDLOCK_OK);
    assert_int_equal(await(f, next), REDLOCK_OK);
    assert_int_equal(await(f, begin_release(f, next->lock)), REDLOCK_OK);
}

/* ------------------------------------------------------------------------ releases of one turn */

#define RELEASES 20

/* Returns how often the first master ran a command since its statistics were reset. */
static unsigned calls_of(struct fixture *f, const char *command) {
    char field[32];
    snprintf(field, sizeof(field), "cmdstat_%s:calls=", command);
    char *stats = masters_query(f->masters, 0, "INFO commandstats");
    const char *found = strstr(stats, field);
    unsigned calls = found != NULL ? (unsigned)strtoul(found + strlen(field), NULL, 10) : 0;
    free(stats);
    return calls;
}

/* Holds locks, releases all of them in one turn, and counts the deletions at the first master. */
static unsigned deletions(struct fixture *f, redlock_client *client) {
    redlock_lock *locks[RELEASES];
    struct call *calls[RELEASES];
    char key[RELEASES][16];
    for (size_t i = 0; i < RELEASES; i++) {
        snprintf(key[i], sizeof(key[i]), "joined:%zu", i);
        locks[i] = hold(f, client, key[i], LONG_TTL_MS);
        wait_holders(f, key[i], 5);
    }
    free(masters_query(f->masters, 0, "CONFIG RESETSTAT"));
    for (size_t i = 0; i < RELEASES; i++) {
        calls[i] = begin_release(f, locks[i]);
    }
    for (size_t i = 0; i < RELEASES; i++) {
        assert_int_equal(await(f, calls[i]), REDLOCK_OK);
    }
    for (size_t i = 0; i < RELEASES; i++) {
        wait_released(f, key[i]);
    }
    return calls_of(f, "del");
}

#define RIGHTS "+set +get +del +pttl +pexpire +eval +evalsha +info +time"

static void the_keys_of_a_turn_are_deleted_at_once(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_as(f, "~* +mget " RIGHTS);
    assert_int_equal(deletions(f, client), 1);
}

/*
 * Without the right to MGET, or to look for waiters, each key is deleted separately, without an
 * error.
 */
static void a_user_who_may_not_read_keys_at_once_releases_them(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_as(f, "~* " RIGHTS);
    assert_int_equal(deletions(f, client), RELEASES);
    client = connect_as(f, "resetkeys ~joined:* ~redlock:marker +mget " RIGHTS);
    assert_int_equal(deletions(f, client), RELEASES);
    assert_int_equal(f->capture.levels[REDLOCK_LOG_ERROR], 0);
    assert_int_equal(f->capture.levels[REDLOCK_LOG_WARN], 0);
}

static void let_the_other_go(struct call *call, void *arg) {
    assert_int_not_equal(call->status, REDLOCK_OK);
    release_of_the_other = begin_release(call->fixture, arg);
}

/* The undo of the forbidden key and the release of the other one share a call. */
static void a_forbidden_key_does_not_hinder_the_release_of_another(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_as(f, "~ok:* +set +get +del +pttl +pexpire +eval +evalsha");
    redlock_lock *lock = hold(f, client, "ok:1", LONG_TTL_MS);
    wait_holders(f, "ok:1", 5);
    redlock_request forbidden = request_for("bad", LONG_TTL_MS);
    struct call *call = begin_acquire(f, client, &forbidden);
    call->then = let_the_other_go;
    call->then_arg = lock;
    await(f, call);
    assert_int_equal(await(f, release_of_the_other), REDLOCK_OK);
    wait_released(f, "ok:1");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        ON_FIVE_MASTERS(an_error_of_each_node_in_turn_is_borne),
        ON_FIVE_MASTERS(a_full_node_is_borne_and_named),
        ON_FIVE_MASTERS(full_nodes_still_release),
        ON_FIVE_MASTERS(a_replica_is_borne_and_named),
        cmocka_unit_test_setup_teardown(the_right_password_is_taken, masters_with_password, finish),
        cmocka_unit_test_setup_teardown(a_wrong_password_is_borne_and_named, masters_with_password,
                                        finish),
        cmocka_unit_test_setup_teardown(a_node_that_refused_the_login_is_not_asked,
                                        masters_with_password, finish),
        cmocka_unit_test_setup_teardown(a_minority_that_refuses_decides_nothing,
                                        masters_with_password, finish),
        ON_FIVE_MASTERS(a_password_where_none_is_set_is_named),
        cmocka_unit_test_setup_teardown(a_missing_password_is_borne_and_named,
                                        masters_with_password, finish),
        ON_FIVE_MASTERS(a_database_that_is_not_there_is_borne_and_named),
        ON_FIVE_MASTERS(each_error_is_the_vote_of_one_node),
        ON_FIVE_MASTERS(an_error_to_the_first_command_is_the_vote_of_one_node),
        ON_NO_MASTERS(a_node_that_keeps_no_script_still_votes),
        ON_FIVE_MASTERS(errors_of_renewals_are_borne_while_validity_lasts),
        cmocka_unit_test_setup_teardown(an_unknown_command_is_named_but_not_its_arguments,
                                        masters_without_scripts, finish),
        ON_FIVE_MASTERS(a_user_with_few_rights_hears_of_no_error),
        ON_FIVE_MASTERS(a_reader_without_a_right_leaves_no_key),
        ON_FIVE_MASTERS(a_release_without_the_time_deletes_the_key),
        ON_FIVE_MASTERS(a_forbidden_key_does_not_hinder_the_release_of_another),
        ON_FIVE_MASTERS(the_keys_of_a_turn_are_deleted_at_once),
        ON_FIVE_MASTERS(a_user_who_may_not_read_keys_at_once_releases_them),
    };

    return cmocka_run_group_tests_name("errors", tests, NULL, NULL);
}
