/* The commands that inspect locks and nodes: inspect, watch, list, nodes new, dev. */
#include "rig.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define HOLD "exec 9>\"$ALIVE\"; echo alive >&9; exec sleep 1000"

/* Starts a holder; returns its pid. */
static pid_t hold(struct rig *rig, const char *owner, const char *key) {
    pid_t pid;

    rig_start(rig, "run", "--owner", owner, key, "--", "sh", "-c", HOLD, NULL);
    rig_wait_for_life(rig);
    pid = rig->pid;
    rig->pid = 0;
    return pid;
}

static void end(struct rig *rig, pid_t pid) {
    rig->pid = pid;
    kill(pid, SIGTERM);
    assert_int_equal(rig_wait(rig), 128 + SIGTERM);
}

static void a_holder_is_reported(void **state) {
    struct rig *rig = *state;
    pid_t holder = hold(rig, "anna", "orders:1");

    assert_int_equal(RIG_RUN(rig, "inspect", "orders:1", "orders:2"), 0);
    assert_true(rig_has_said(rig, "orders:1: held by anna"));
    assert_true(rig_has_said(rig, "orders:2: free"));
    assert_int_equal(RIG_RUN(rig, "inspect", "--json", "orders:1"), 0);
    assert_true(rig_has_said(rig, "{\"key\":\"orders:1\",\"known\":true,\"held\":true,"
                                  "\"owner\":\"anna\""));
    assert_int_equal(RIG_RUN(rig, "inspect"), 64);
    end(rig, holder);
}

static void too_few_nodes_report_nothing(void **state) {
    struct rig *rig = *state;

    for (size_t i = 0; i < 3; i++) {
        masters_kill(rig->masters, i);
    }
    assert_int_equal(RIG_RUN(rig, "inspect", "orders:1"), 69);
    assert_true(rig_has_said(rig, "orders:1: unknown"));
    assert_int_equal(RIG_RUN(rig, "list", "--json"), 69);
    for (size_t i = 0; i < 3; i++) {
        char text[128];

        snprintf(text, sizeof(text), "{\"node\":\"%s\",\"why\":\"Connection refused\"}%s",
                 masters_address(rig->masters, i), i < 2 ? "," : "],");
        assert_true(rig_has_said(rig, text));
    }
}

static void changes_are_reported(void **state) {
    struct rig *rig = *state;
    pid_t watcher;
    pid_t holder;

    rig_start(rig, "watch", "--interval", "10ms", "orders:1", NULL);
    watcher = rig->pid;
    rig_wait_for_text(rig, "orders:1: free");
    holder = hold(rig, "anna", "orders:1");
    rig_wait_for_text(rig, "orders:1: held by anna");
    rig_start(rig, "run", "--owner", "bert", "orders:1", "--", "true", NULL);
    rig_wait_for_text(rig, "1 waiting: bert");
    kill(holder, SIGTERM);
    assert_int_equal(rig_wait(rig), 0);
    rig->pid = holder;
    assert_int_equal(rig_wait(rig), 128 + SIGTERM);
    end(rig, watcher);
}

static void locks_are_listed(void **state) {
    struct rig *rig = *state;
    pid_t holders[2] = {hold(rig, "anna", "orders:1"), hold(rig, "bert", "parcels:1")};

    for (size_t i = 0; i < RIG_MASTERS; i++) {
        free(masters_query(rig->masters, i, "SET orders:note text"));
        free(masters_query(rig->masters, i, "RPUSH orders:list text"));
    }
    assert_int_equal(RIG_RUN(rig, "list", "orders:"), 0);
    assert_true(rig_has_said(rig, "orders:1: held by anna"));
    assert_false(rig_has_said(rig, "parcels"));
    assert_false(rig_has_said(rig, "note"));
    assert_false(rig_has_said(rig, "list:"));
    assert_true(rig_has_said(rig, "A snapshot"));
    assert_int_equal(RIG_RUN(rig, "list", "--json"), 0);
    assert_true(rig_has_said(rig, "\"key\":\"parcels:1\""));
    for (size_t i = 0; i < 2; i++) {
        end(rig, holders[i]);
    }
}

/* Foreign locks are distinguished from caches by the same value at a quorum, with an expiry. */
static void locks_of_other_makes_are_listed(void **state) {
    struct rig *rig = *state;

    for (size_t i = 0; i < RIG_MASTERS; i++) {
        const char *of_most = i < 3 ? "9f1c6a52-7f6e-4b0c-9d0a-5b1f0e3c2d4b" : "other";
        int of_few = i < 2 ? 0 : (int)i;

        free(masters_query(rig->masters, i, "SET uuid %s PX 600000", of_most));
        free(masters_query(rig->masters, i, "SET base64 %s PX 600000", "q83v/+A="));
        free(masters_query(rig->masters, i, "SET bytes %b PX 600000", "\0\1\377", (size_t)3));
        free(masters_query(rig->masters, i, "SET cached %d PX 600000", of_few));
        free(masters_query(rig->masters, i, "SET page number%d PX 600000", (int)i));
        free(masters_query(rig->masters, i, "SET setting same"));
        free(masters_query(rig->masters, i, "HSET hash field value"));
    }
    free(masters_query(rig->masters, 4, "DEL base64"));
    assert_int_equal(RIG_RUN(rig, "list"), 0);
    assert_true(rig_has_said(rig, "uuid: held by"));
    assert_true(rig_has_said(rig, "base64: held by"));
    assert_true(rig_has_said(rig, "bytes: held by"));
    assert_false(rig_has_said(rig, "cached"));
    assert_false(rig_has_said(rig, "page"));
    assert_false(rig_has_said(rig, "setting"));
    assert_false(rig_has_said(rig, "hash"));
}

/* Names the nodes without "?durable=yes". */
static void name_plain_nodes(struct rig *rig) {
    char list[RIG_MASTERS * 96] = "";

    for (size_t i = 0; i < RIG_MASTERS; i++) {
        strcat(list, i == 0 ? "" : ",");
        strcat(list, masters_uri(rig->masters, i));
    }
    setenv("REDLOCK_NODES", list, 1);
}

/* With a max_ttl of 1 s, the servers have soon been up long enough. */
static void new_masters_are_marked(void **state) {
    struct rig *rig = *state;
    char text[64];
    char *marker;

    name_plain_nodes(rig);
    assert_int_equal(RIG_RUN(rig, "nodes", "new", "--yes", "--max-ttl", "30s"), 0);
    assert_true(rig_has_said(rig, ": marked; it counts in"));
    marker = masters_query(rig->masters, 0, "GET redlock:marker");
    assert_non_null(marker);
    assert_memory_equal(marker, "1:", 2);
    free(marker);
    assert_int_equal(
        RIG_RUN(rig, "run", "--ttl", "1s", "--max-ttl", "1s", "--wait", "30s", "key", "--", "true"),
        0);
    /* The library has kept the marker, which says that the memory has always been intact. */
    marker = masters_query(rig->masters, 0, "GET redlock:marker");
    assert_memory_equal(marker, "1:", 2);
    free(marker);
    assert_int_equal(RIG_RUN(rig, "nodes", "new", "--yes"), 1);
    /* The marker, and the keys of wait queues if "run" had to wait until the masters counted. */
    snprintf(text, sizeof(text), ": not marked: its number of keys is %lld,",
             masters_query_integer(rig->masters, 0, "DBSIZE"));
    assert_true(rig_has_said(rig, text));
}

static void nobody_is_marked_unasked(void **state) {
    struct rig *rig = *state;

    free(masters_query(rig->masters, 0, "SET key value"));
    free(masters_query(rig->masters, 1, "REPLICAOF 127.0.0.1 1"));
    assert_int_equal(RIG_RUN(rig, "nodes", "new"), 64);
    assert_int_equal(RIG_RUN(rig, "nodes", "old"), 64);
    assert_int_equal(RIG_RUN(rig, "nodes", "new", "--yes"), 1);
    assert_true(rig_has_said(rig, ": not marked: its number of keys is 1"));
    assert_true(rig_has_said(rig, ": not marked: it is a replica"));
    assert_int_equal(RIG_RUN(rig, "nodes", "new", "--yes", "--json", "-n", "redis://127.0.0.1:1"),
                     1);
    assert_true(rig_has_said(rig, "{\"node\":\"127.0.0.1:1\",\"marked\":false,"
                                  "\"why\":\"Connection refused\"}\n")); /* when is not known */
    assert_null(masters_query(rig->masters, 0, "GET redlock:marker"));
}

/* Results without a reader are a failure, and masters without a reader end. */
static void output_is_written_or_failed(void **state) {
    struct rig *rig = *state;

    assert_int_equal(RIG_RUN(rig, "run", "key", "--", "sh", "-c", "\"$REDLOCK\" dev 1 >/dev/full"),
                     71);
    assert_int_equal(RIG_RUN(rig, "run", "key", "--", "sh", "-c", "\"$REDLOCK\" list >/dev/full"),
                     71);
    assert_true(rig_has_said(rig, "redlock: cannot write: No space left on device"));
    assert_int_equal(RIG_RUN(rig, "run", "key", "--", "sh", "-c", "\"$REDLOCK\" dev 1 | head -c 3"),
                     0);
    assert_true(rig_has_said(rig, "exp"));
    assert_false(rig_has_said(rig, "expo"));
}

#define TOKEN "0123456789012345678901234567890123456789"

/* Names that the library reserves are no locks, and end nothing. */
static void names_of_no_locks_are_skipped(void **state) {
    static const char *const names[] = {"a::queue",   "b::fence",  "c::readers",
                                        "d::permits", "e::writer", "::queue"};
    struct rig *rig = *state;
    pid_t holder = hold(rig, "anna", "orders:1");

    for (size_t i = 0; i < RIG_MASTERS; i++) {
        for (size_t j = 0; j < sizeof(names) / sizeof(names[0]); j++) {
            free(masters_query(rig->masters, i, "SET %s " TOKEN, names[j]));
        }
    }
    assert_int_equal(RIG_RUN(rig, "list", "--json"), 0);
    assert_true(rig_has_said(rig, "\"key\":\"orders:1\""));
    assert_true(rig_has_said(rig, "]}\n"));
    assert_false(rig_has_said(rig, "::"));
    assert_int_equal(RIG_RUN(rig, "inspect", "a::queue"), 64);
    end(rig, holder);
}

/* Makes keys that look like locks: "lock:00001" and so on. */
static void make_locks(struct rig *rig, size_t master, int count) {
    free(masters_query(rig->masters, master, "EVAL %s 0 %d",
                       "for i = 1, ARGV[1] do redis.call('SET', string.format('lock:%05d', i), "
                       "'" TOKEN "', 'PX', 600000) end",
                       count));
}

/* A lock is one name, however many nodes report it. */
static void each_lock_counts_once(void **state) {
    struct rig *rig = *state;

    for (size_t i = 0; i < RIG_MASTERS; i++) {
        make_locks(rig, i, 4100);
    }
    assert_int_equal(RIG_RUN(rig, "list", "--json"), 0);
    assert_true(rig_has_said(rig, "\"cut\":false"));
    assert_true(rig_has_said(rig, "\"nodes_answered\":5,\"failures\":[],"));
    assert_true(rig_has_said(rig, "\"key\":\"lock:00001\""));
    assert_true(rig_has_said(rig, "\"key\":\"lock:04100\""));
}

static void too_many_locks_are_cut(void **state) {
    struct rig *rig = *state;

    make_locks(rig, 0, 10001);
    for (size_t i = 3; i < RIG_MASTERS; i++) {
        make_locks(rig, i, 10001);
    }
    assert_int_equal(RIG_RUN(rig, "list"), 0);
    assert_true(rig_has_said(rig, "There are more than 10000"));
    assert_true(rig_has_said(rig, "lock:10000: held"));
    assert_false(rig_has_said(rig, "lock:10001"));
}

/* If the user forgot an escape, no part of a password is shown, or mistaken for a host. */
static void passwords_stay_secret(void **state) {
    static const char *const lists[] = {
        "redis://user:hun@ter2@127.0.0.1:1",  "redis://user:hun,ter2@127.0.0.1:1",
        "redis://user:7hun?ter2@127.0.0.1:1", "redis://user:hun ter2@127.0.0.1:1",
        "redis://user:hun/ter2@127.0.0.1:1",  "redis://:hun,@127.0.0.1:1,redis://127.0.0.1:2"};
    static const int codes[] = {64, 69, 69, 64, 64, 69};
    struct rig *rig = *state;

    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        assert_int_equal(RIG_RUN(rig, "list", "-n", lists[i]), codes[i]);
        assert_int_equal(RIG_RUN(rig, "nodes", "new", "--yes", "-n", lists[i]),
                         codes[i] == 64 ? 64 : 1);
        assert_int_equal(RIG_RUN(rig, "inspect", "-n", lists[i], "key"), codes[i]);
    }
    assert_false(rig_has_said(rig, "hun"));
    assert_false(rig_has_said(rig, "ter2"));
    assert_false(rig_has_said(rig, ":7"));
    assert_true(rig_has_said(rig, "node 1: an '@' or '/' in a user, password or path"));
    assert_true(rig_has_said(rig, "127.0.0.1:1: Connection refused"));
}

/* A list may be written on several lines, and with an extra comma. */
static void nodes_stand_on_lines(void **state) {
    struct rig *rig = *state;
    char list[RIG_MASTERS * 96] = ", ";

    for (size_t i = 0; i < RIG_MASTERS; i++) {
        strcat(list, masters_uri(rig->masters, i));
        strcat(list, "?durable=yes,\n\t");
    }
    assert_int_equal(RIG_RUN(rig, "inspect", "-n", list, "key"), 0);
    assert_true(rig_has_said(rig, "key: free"));
    assert_int_equal(RIG_RUN(rig, "inspect", "-n", ", ", "key"),
                     64); /* does not fall back on REDLOCK_NODES */
}

static void keys_elsewhere_are_seen(void **state) {
    struct rig *rig = *state;
    char uri[128];

    free(masters_query(rig->masters, 0, "SET key value"));
    free(masters_query(rig->masters, 0, "MOVE key 7"));
    strcpy(uri, masters_uri(rig->masters, 0));
    assert_int_equal(RIG_RUN(rig, "nodes", "new", "--yes", "-n", uri), 1);
    assert_true(rig_has_said(rig, ": not marked: its number of keys is 1"));
    assert_int_equal(masters_query_integer(rig->masters, 0, "EXISTS redlock:marker"), 0);
    strcat(uri, "/3");
    assert_int_equal(RIG_RUN(rig, "nodes", "new", "--yes", "-n", uri), 1);
}

/* Two databases of a server, and sockets, have separate names. */
static void nodes_are_distinguished(void **state) {
    struct rig *rig = *state;
    char list[512];
    char text[256];

    snprintf(list, sizeof(list), "%s/1,%s/2,unix:///no/socket?db=3", masters_uri(rig->masters, 0),
             masters_uri(rig->masters, 0));
    assert_int_equal(RIG_RUN(rig, "nodes", "new", "--yes", "-n", list), 1);
    for (int db = 1; db <= 2; db++) {
        snprintf(text, sizeof(text), "%s/%d: ", masters_address(rig->masters, 0), db);
        assert_true(rig_has_said(rig, text));
    }
    assert_true(rig_has_said(rig, "/no/socket?db=3: not marked: "));
    assert_int_equal(RIG_RUN(rig, "list", "-n", list), 0);
    assert_true(rig_has_said(rig, "redlock: list: /no/socket?db=3: "));
}

/* Masters of `dev` count at once, and end with it. */
static void masters_for_a_moment(void **state) {
    struct rig *rig = *state;
    pid_t dev;
    char *output;
    char *end_of_list;

    rig_start(rig, "dev", "3", NULL);
    dev = rig->pid;
    rig_wait_for_text(rig, "durable=yes'\n");
    output = rig_output(rig);
    end_of_list = strrchr(output, '\'');
    *end_of_list = '\0';
    setenv("REDLOCK_NODES", strchr(output, '\'') + 1, 1);
    assert_int_equal(RIG_RUN(rig, "run", "--no-wait", "key", "--", "true"), 0);
    rig->pid = dev;
    kill(dev, SIGINT);
    assert_int_equal(rig_wait(rig), 0);
    assert_int_equal(RIG_RUN(rig, "run", "--no-wait", "key", "--", "true"), 69);
    free(output);
    assert_int_equal(RIG_RUN(rig, "dev", "none"), 64);
}

/* The advice is about what prevents the masters from starting. */
static void masters_that_do_not_start(void **state) {
    static const char *const limits[] = {"20", "36", "37", "38", "39", "40", "41", "42"};
    struct rig *rig = *state;

    assert_int_equal(RIG_RUN(rig, "run", "key", "--", "sh", "-c",
                             "REDLOCK_SERVER=./no-such-server \"$REDLOCK\" dev 1"),
                     71);
    assert_true(rig_has_said(rig, "apt-get install redis-server"));
    assert_int_equal(truncate(rig->output_path, 0), 0);
    setenv("LSAN_OPTIONS", "detect_leaks=0", 1); /* LeakSanitizer, if built in, reads /proc */
    assert_int_equal(RIG_RUN(rig, "run", "key", "--", "sh", "-c",
                             "TMPDIR=/no/folder \"$REDLOCK\" dev 1; test $? -eq 71"),
                     0);
    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        assert_int_equal(RIG_RUN(rig, "run", "key", "--", "sh", "-c",
                                 "ulimit -n $0; \"$REDLOCK\" dev 32; test $? -eq 71", limits[i]),
                         0);
    }
    unsetenv("LSAN_OPTIONS");
    assert_true(rig_has_said(rig, "dev: no masters; set TMPDIR"));
    assert_true(rig_has_said(rig, "dev: no masters; allow more descriptors, by ulimit -n 256"));
    assert_false(rig_has_said(rig, "apt-get"));
    assert_false(rig_has_said(rig, "cannot remove"));
}

/* Reads the two children of `dev`. */
static void read_masters(pid_t dev, int pids[2]) {
    char path[64];
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%ld/task/%ld/children", (long)dev, (long)dev);
    file = fopen(path, "re");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%d %d", &pids[0], &pids[1]), 2);
    fclose(file);
}

static void the_end_of_a_master_is_reported(void **state) {
    struct rig *rig = *state;
    int pids[2];

    rig_start(rig, "dev", "2", NULL);
    rig_wait_for_text(rig, "durable=yes'\n");
    read_masters(rig->pid, pids);
    kill(pids[1], SIGTERM);
    rig_wait_for_text(rig, " has ended, with code 0; 1 of 2 run\n");
    assert_true(rig_has_said(rig, "redlock: dev: the master at 127.0.0.1:"));
    kill(pids[0], SIGKILL);
    assert_int_equal(rig_wait(rig), 1);
    assert_true(rig_has_said(rig, " has ended, by signal 9; 0 of 2 run\n"));
}

/* A password may be long, as in clouds, and is used in full. */
static void passwords_may_be_long(void **state) {
    struct rig *rig = *state;
    char password[601];
    char uri[700];

    memset(password, 'p', sizeof(password) - 1);
    password[sizeof(password) - 1] = '\0';
    free(masters_query(rig->masters, 0, "CONFIG SET requirepass %s", password));
    snprintf(uri, sizeof(uri), "redis://:%s@%s", password, masters_address(rig->masters, 0));
    assert_int_equal(RIG_RUN(rig, "list", "-n", uri), 0);
    uri[strlen("redis://:") + sizeof(password) - 2] = 'q';
    assert_int_not_equal(RIG_RUN(rig, "list", "-n", uri), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_set_up, rig_tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_holder_is_reported),
        TEST(too_few_nodes_report_nothing),
        TEST(changes_are_reported),
        TEST(locks_are_listed),
        TEST(locks_of_other_makes_are_listed),
        TEST(new_masters_are_marked),
        TEST(nobody_is_marked_unasked),
        TEST(masters_for_a_moment),
        TEST(masters_that_do_not_start),
        TEST(the_end_of_a_master_is_reported),
        TEST(output_is_written_or_failed),
        TEST(names_of_no_locks_are_skipped),
        TEST(each_lock_counts_once),
        TEST(too_many_locks_are_cut),
        TEST(passwords_stay_secret),
        TEST(passwords_may_be_long),
        TEST(nodes_stand_on_lines),
        TEST(keys_elsewhere_are_seen),
        TEST(nodes_are_distinguished),
    };

    return cmocka_run_group_tests_name("looks", tests, NULL, NULL);
}
