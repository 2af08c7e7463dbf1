/*
 * Servers that are broken, or hostile: the process survives any bytes, the other nodes go on, and
 * the bad node is dropped and retried, not too often.
 *
 * Four of five nodes are real masters; the fifth is a peer that plays a trick: on every new
 * connection at once, in answer to its first command, or in answer to locks and scripts only.
 */
#include "harness.h"
#include "harness_peer.h"
#include "master_data.h"

#include <signal.h>
#include <string.h>

#define KEY "orders:42"
#define FIVE 5
#define BAD 2

enum moment { ON_CONNECT, ON_FIRST_COMMAND, ON_SET, ON_SCRIPT, MOMENTS };

struct trick {
    const char *name;
    const char *bytes;
    size_t length;
    size_t repeat; /* number of repetitions of the bytes; 0: once */
    bool endless;  /* then sends "x" forever */
    bool hang_up;
};

#define REST(text) text, sizeof(text) - 1

static const struct trick tricks[] = {
    {"one reply too many", REST("+PONG\r\n+OK\r\n"), 0, false, false},
    {"a thousand replies too many", REST("+OK\r\n"), 1000, false, false},
    {"numbers too many", REST(":1\r\n:2\r\n"), 0, false, false},
    {"nils too many", REST("$-1\r\n$-1\r\n"), 0, false, false},
    {"errors too many", REST("-ERR one\r\n-ERR two\r\n"), 0, false, false},
    {"600 MB announced, and sent", REST("$629145600\r\n"), 0, true, false},
    {"a line without an end", REST("+"), 0, true, false},
    {"an error without an end", REST("-"), 0, true, false},
    {"a number without an end", REST(":1"), 0, true, false},
    {"a length without an end", REST("$1"), 0, true, false},
    {"nested arrays", REST("*1\r\n"), 100000, false, false},
    {"nested arrays of two", REST("*2\r\n:1\r\n"), 100000, false, false},
    {"an array too long", REST("*2147483647\r\n"), 0, true, false},
    {"an array longer than any number", REST("*99999999999999999999\r\n"), 0, false, false},
    {"an array of negative length", REST("*-5\r\n"), 0, false, false},
    {"a bulk of negative length", REST("$-7\r\n"), 0, false, false},
    {"a bulk longer than any number", REST("$99999999999999999999\r\n"), 0, true, false},
    {"a length that is no number", REST("$abc\r\nabc\r\n"), 0, false, false},
    {"a number that is none", REST(":abc\r\n"), 0, false, false},
    {"a message of a channel", REST("*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nx\r\n"), 3, false,
     false},
    {"an answer to subscribe", REST("*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n"), 3, false, false},
    {"a message of the wrong shape", REST("*1\r\n$7\r\nmessage\r\n"), 3, false, false},
    {"a message that is all numbers", REST("*3\r\n:1\r\n:2\r\n:3\r\n"), 3, false, false},
    {"an empty array", REST("*0\r\n"), 3, false, false},
    {"a push", REST(">3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nx\r\n"), 3, false, false},
    {"a push of the wrong shape", REST(">1\r\n>1\r\n>1\r\n:1\r\n"), 0, false, false},
    {"types of the newer protocol", REST("#t\r\n,1.5\r\n_\r\n(123\r\n~0\r\n%0\r\n|0\r\n"), 0, false,
     false},
    {"a web page", REST("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"), 0, false, false},
    {"zeros", REST("\0\0\0\0\0\0\0\0\r\n"), 100, false, false},
    {"noise", REST("\x8f\x13\xfe\x00\x7f\r\x00\n\xc3\x28*\r\n$\r\n"), 100, false, false},
    {"empty lines", REST("\r\n"), 1000, false, false},
    {"half a reply, and the end", REST("$40\r\n0123"), 0, false, true},
    {"the end", REST(""), 0, false, true},
    {"a reply, and the end", REST("+OK\r\n"), 0, false, true},
    {"an error, and the end", REST("-ERR max number of clients reached\r\n"), 0, false, true},
    {"wrong numbers of arguments", REST("-ERR wrong number of arguments for 'set' command\r\n"), 3,
     false, false},
    {"another that makes no sense", REST("+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n"), 0, false, false},
};
#define TRICKS (sizeof(tricks) / sizeof(tricks[0]))

static struct {
    const struct trick *trick;
    enum moment moment;
    bool played; /* the trick was played at least once */
} now;

static char endless[65536];

static void play(struct peer_link *link) {
    const struct trick *trick = now.trick;
    size_t repeat = trick->repeat == 0 ? 1 : trick->repeat;

    now.played = true;
    for (size_t i = 0; i < repeat; i++) {
        peer_send(link, trick->bytes, trick->length);
    }
    if (trick->endless) {
        peer_pour(link, endless, sizeof(endless));
    }
    if (trick->hang_up) {
        peer_hang_up(link);
    }
}

static void greet(struct peer_link *link, void *arg) {
    (void)arg;
    if (now.moment == ON_CONNECT) {
        play(link);
    }
}

static void answer(struct peer_link *link, const struct command *command, void *arg) {
    bool due = now.moment == ON_FIRST_COMMAND ||
               (now.moment == ON_SET && command_is(command, "SET", NULL)) ||
               (now.moment == ON_SCRIPT && command_is_script(command));

    if (due) {
        play(link);
    } else {
        peer_answer_well(link, command, arg);
    }
}

static redlock_client *join_bad_node(struct fixture *f, struct peer *peer) {
    const char *uris[FIVE];
    redlock_options options;

    memcpy(uris, masters_uris(f->masters), sizeof(uris));
    uris[BAD] = peer_uri(peer);
    options = patient_options(f, uris, FIVE);
    return create_client(f, &options);
}

static void use_the_other_nodes(struct fixture *f, redlock_client *client) {
    redlock_lock *lock = hold(f, client, KEY, LONG_TTL_MS);

    assert_int_equal(extend(f, lock, 0), REDLOCK_OK);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
}

static void survive(struct fixture *f, const struct trick *trick, enum moment moment) {
    struct peer *peer = peer_create(f, answer, NULL);
    redlock_client *client;

    now.trick = trick;
    now.moment = moment;
    now.played = false;
    peer_greet(peer, greet);
    client = join_bad_node(f, peer);
    for (size_t i = 0; i < 5 || !now.played; i++) {
        use_the_other_nodes(f, client);
        run_turns(f, 2);
        if (i > 100000) {
            fail_msg("the peer was never asked");
        }
    }
    for (size_t i = 0; i < FIVE; i++) {
        assert_true(i == BAD || node_info(client, i).disconnected == 0);
    }
    if (peer_poured(peer) > (32 << 20)) {
        fail_msg("%s: %zu bytes were taken", trick->name, peer_poured(peer));
    }
    if (trick->endless) {
        wait_disconnected(f, client, BAD, 1);
    }
    close_client(f, client);
    peer_drop_links(peer);
}

static void survive_all(struct fixture *f, enum moment moment) {
    memset(endless, moment % 2 == 0 ? 'x' : '1', sizeof(endless));
    for (size_t i = 0; i < TRICKS; i++) {
        survive(f, &tricks[i], moment);
    }
    wait_released(f, KEY);
}

static void a_bad_first_word_is_survived(void **state) {
    survive_all(*state, ON_CONNECT);
}

static void a_bad_answer_to_the_handshake_is_survived(void **state) {
    survive_all(*state, ON_FIRST_COMMAND);
}

static void a_bad_answer_to_a_lock_is_survived(void **state) {
    survive_all(*state, ON_SET);
}

static void a_bad_answer_to_a_script_is_survived(void **state) {
    survive_all(*state, ON_SCRIPT);
}

/* Unexpected, unbounded and nested replies end the connection, which is then established anew. */
static void a_bad_node_is_dropped_and_tried_again(void **state) {
    struct fixture *f = *state;
    const size_t dropped[] = {0, 1, 5, 6, 10, 11};

    for (size_t i = 0; i < sizeof(dropped) / sizeof(dropped[0]); i++) {
        struct peer *peer = peer_create(f, answer, NULL);
        redlock_client *client;

        now.trick = &tricks[dropped[i]];
        now.moment = ON_CONNECT;
        peer_greet(peer, greet);
        client = join_bad_node(f, peer);
        wait_disconnected(f, client, BAD, 3);
        wait_peer_links(f, peer, 4);
        use_the_other_nodes(f, client);
        close_client(f, client);
    }
}

/* ----------------------------------------------------------------------- unexpected, while idle */

static void keep_link(struct peer_link *link, void *arg) {
    struct peer_link **kept = arg;

    *kept = link;
}

static bool is_linked(void *arg) {
    return *(struct peer_link **)arg != NULL;
}

static void an_unasked_word_to_an_idle_client_is_survived(void **state) {
    struct fixture *f = *state;
    struct peer_link *link = NULL;
    struct peer *peer = peer_create(f, peer_answer_well, &link);
    redlock_client *client;

    peer_greet(peer, keep_link);
    client = join_bad_node(f, peer);
    for (size_t i = 0; i < TRICKS; i++) {
        run_until(f, is_linked, &link, "the peer is connected to");
        wait_connected(f, client, FIVE);
        now.trick = &tricks[i];
        play(link);
        run_turns(f, 3);
        use_the_other_nodes(f, client);
        peer_drop_links(peer);
        link = NULL;
    }
}

static bool was_dropped(void *arg) {
    return node_info(arg, BAD).disconnected > 0;
}

static void an_unasked_error_without_words_is_a_reason_all_the_same(void **state) {
    struct fixture *f = *state;
    struct peer_link *link = NULL;
    struct peer *peer = peer_create(f, peer_answer_well, &link);
    redlock_client *client;

    peer_greet(peer, keep_link);
    client = join_bad_node(f, peer);
    run_until(f, is_linked, &link, "the peer is connected to");
    wait_connected(f, client, FIVE);
    peer_say(link, "-\r\n");
    run_until(f, was_dropped, client, "the peer is dropped");
    assert_false(node_info(client, BAD).connected);
    assert_string_not_equal(node_info(client, BAD).reason, "");
}

/* -------------------------------------------------------------------------- well-formed answers */

static const char *forged;

static void forge_set(struct peer_link *link, const struct command *command, void *arg) {
    if (command_is(command, "SET", NULL)) {
        peer_say(link, forged);
    } else {
        peer_answer_well(link, command, arg);
    }
}

static void forge_script(struct peer_link *link, const struct command *command, void *arg) {
    if (command_is_script(command)) {
        peer_say(link, forged);
    } else {
        peer_answer_well(link, command, arg);
    }
}

static redlock_client *join_three_peers(struct fixture *f, peer_answer *reply, size_t chunk) {
    const char *uris[3];
    redlock_options options;
    redlock_client *client;

    for (size_t i = 0; i < 3; i++) {
        struct peer *peer = peer_create(f, reply, NULL);

        peer_set_chunk(peer, chunk);
        uris[i] = peer_uri(peer);
    }
    options = patient_options(f, uris, 3);
    client = create_client(f, &options);
    wait_connected(f, client, 3);
    return client;
}

static void what_is_no_grant_is_none(void **state) {
    struct fixture *f = *state;
    const char *forgeries[] = {"$-1\r\n", ":1\r\n",  "+QUEUED\r\n", "+OKAY\r\n",
                               "+\r\n",   "*-1\r\n", "$0\r\n\r\n",  ":0\r\n",
                               "+O\r\n",  "-OK\r\n", "*0\r\n"};

    for (size_t i = 0; i < sizeof(forgeries) / sizeof(forgeries[0]); i++) {
        redlock_client *client;

        forged = forgeries[i];
        client = join_three_peers(f, forge_set, SIZE_MAX);
        assert_int_not_equal(try_lock(f, client, KEY, LONG_TTL_MS), REDLOCK_OK);
        close_client(f, client);
    }
}

static void what_is_no_release_is_none(void **state) {
    struct fixture *f = *state;
    const char *forgeries[] = {
        "$0\r\n\r\n",    "$2\r\nyy\r\n",
        "$1\r\nq\r\n",   "$1\r\nY\r\n",
        "$1\r\nh\r\n",   "$21\r\nh99999999999999999999\r\n",
        "$3\r\nh-1\r\n", "$3\r\nh1y\r\n",
        "$2\r\nym\r\n",  "$-1\r\n",
        ":1\r\n",        "*1\r\n$1\r\ny\r\n",
        "+OK\r\n",       "-NOSCRIPT No matching script. Please use EVAL.\r\n",
    };

    for (size_t i = 0; i < sizeof(forgeries) / sizeof(forgeries[0]); i++) {
        redlock_client *client;
        redlock_lock *lock;

        forged = forgeries[i];
        client = join_three_peers(f, forge_script, SIZE_MAX);
        lock = hold(f, client, KEY, LONG_TTL_MS);
        assert_int_not_equal(extend(f, lock, 0), REDLOCK_OK);
        assert_int_not_equal(let_go(f, lock), REDLOCK_OK);
        close_client(f, client);
    }
}

static void replies_may_come_byte_by_byte(void **state) {
    struct fixture *f = *state;
    redlock_client *client = join_three_peers(f, peer_answer_well, 1);

    for (size_t i = 0; i < 5; i++) {
        use_the_other_nodes(f, client);
    }
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(node_info(client, i).disconnected, 0);
    }
}

/* -------------------------------------------------------------------------------- connections */

static bool is_crowded_out(void *arg) {
    return strstr(node_info(arg, BAD).reason, "max number of clients") != NULL;
}

static void an_error_before_any_command_is_the_reason(void **state) {
    struct fixture *f = *state;
    static const struct trick crowded = {"crowded", REST("-ERR max number of clients reached\r\n"),
                                         0, false, true};
    struct peer *peer = peer_create(f, peer_answer_nothing, NULL);
    redlock_client *client;

    now.trick = &crowded;
    now.moment = ON_CONNECT;
    peer_greet(peer, greet);
    client = join_bad_node(f, peer);
    run_until(f, is_crowded_out, client, "the server's own words are the reason");
    use_the_other_nodes(f, client);
}

/*
 * Reconnecting backs off, with delays that grow to hours here, instead of happening in every turn.
 */
static void a_node_that_hangs_up_at_once_is_not_connected_to_at_once(void **state) {
    struct fixture *f = *state;
    static const struct trick the_end = {"the end", REST(""), 0, false, true};
    struct peer *peer = peer_create(f, peer_answer_well, NULL);
    redlock_options options;
    redlock_client *client;
    const char *uris[FIVE];

    now.trick = &the_end;
    now.moment = ON_CONNECT;
    peer_greet(peer, greet);
    memcpy(uris, masters_uris(f->masters), sizeof(uris));
    uris[BAD] = peer_uri(peer);
    options = patient_options(f, uris, FIVE);
    options.reconnect_delay_ms = 1000;
    options.reconnect_delay_max_ms = 10000000;
    client = create_client(f, &options);
    for (size_t i = cycles_here(1500); i > 0; i--) {
        use_the_other_nodes(f, client);
    }
    assert_int_in_range(peer_links(peer), 1, 100);
}

/* The first write to a closed Unix socket fails: the host may not receive SIGPIPE. */
static void a_write_to_a_closed_connection_raises_no_signal(void **state) {
    struct fixture *f = *state;
    struct peer *peer = peer_create_unix(f, peer_answer_well, NULL);
    const char *uris[] = {peer_uri(peer)};
    redlock_options options = patient_options(f, uris, 1);
    redlock_client *client = create_client(f, &options);
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    struct sigaction disposition;
    sigset_t before;
    sigset_t after;

    signal(SIGPIPE, SIG_DFL);
    sigprocmask(SIG_BLOCK, NULL, &before);
    for (size_t i = 0; i < 20; i++) {
        struct call *call;

        wait_connected(f, client, 1);
        peer_drop_links(peer);
        call = begin_acquire(f, client, &request);
        await(f, call);
        assert_ended(call, REDLOCK_ENOQUORUM);
    }
    sigpending(&after);
    assert_false(sigismember(&after, SIGPIPE));
    sigprocmask(SIG_BLOCK, NULL, &after);
    assert_int_equal(sigismember(&after, SIGPIPE), sigismember(&before, SIGPIPE));
    sigaction(SIGPIPE, NULL, &disposition);
    assert_ptr_equal(disposition.sa_handler, SIG_DFL);
    signal(SIGPIPE, SIG_IGN);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        ON_FIVE_MASTERS(a_bad_first_word_is_survived),
        ON_FIVE_MASTERS(a_bad_answer_to_the_handshake_is_survived),
        ON_FIVE_MASTERS(a_bad_answer_to_a_lock_is_survived),
        ON_FIVE_MASTERS(a_bad_answer_to_a_script_is_survived),
        ON_FIVE_MASTERS(a_bad_node_is_dropped_and_tried_again),
        ON_FIVE_MASTERS(an_unasked_word_to_an_idle_client_is_survived),
        ON_FIVE_MASTERS(an_unasked_error_without_words_is_a_reason_all_the_same),
        ON_NO_MASTERS(what_is_no_grant_is_none),
        ON_NO_MASTERS(what_is_no_release_is_none),
        ON_NO_MASTERS(replies_may_come_byte_by_byte),
        ON_FIVE_MASTERS(an_error_before_any_command_is_the_reason),
        ON_FIVE_MASTERS(a_node_that_hangs_up_at_once_is_not_connected_to_at_once),
        ON_NO_MASTERS(a_write_to_a_closed_connection_raises_no_signal),
    };

    return cmocka_run_group_tests_name("hostile", tests, NULL, NULL);
}
