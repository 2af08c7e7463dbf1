/*
 * The doctor names each of many faults. All but a few are planted at the first of five masters, and
 * the other four are a quorum.
 */
#include "fake_clock.h"
#include "oddity.h"
#include "rig.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define NO_QUORUM 69
#define LIST_SIZE (RIG_MASTERS * 128)

struct ill {
    const char *title;
    const char *named; /* part of the doctor's answer */
    int code;
    const char *commands[3];        /* for the first master */
    void (*plant)(struct rig *rig); /* in addition */
    const char *uri;                /* of the first node, if not the usual one; %s is its address */
    size_t count;                   /* number of nodes, if not all */
};

static void kill_it(struct rig *rig) {
    masters_kill(rig->masters, 0);
}

static void stop_it(struct rig *rig) {
    masters_stop(rig->masters, 0);
}

static void make_it_a_replica(struct rig *rig) {
    free(masters_query(rig->masters, 0, "REPLICAOF 127.0.0.1 %d", masters_port(rig->masters, 1)));
}

/* Leaves almost no memory beyond what is in use. */
static void fill_it(struct rig *rig) {
    char *info = masters_query(rig->masters, 0, "INFO memory");
    const char *used = strstr(info, "used_memory:");

    assert_non_null(used);
    free(masters_query(rig->masters, 0, "CONFIG SET maxmemory %" PRIu64,
                       strtoull(used + strlen("used_memory:"), NULL, 10) * 105 / 100));
    free(info);
}

static void kill_three(struct rig *rig) {
    for (size_t i = 0; i < 3; i++) {
        masters_kill(rig->masters, i);
    }
}

static bool is_busy(const struct rig *rig) {
    char *answer = masters_query(rig->masters, 0, "PING");
    bool is_so = strncmp(answer, "-BUSY", 5) == 0;

    free(answer);
    return is_so;
}

/* Keeps the first master busy with an endless script, from a separate process. */
static void keep_it_busy(struct rig *rig) {
    pid_t pid;

    free(masters_query(rig->masters, 0, "CONFIG SET lua-time-limit 1"));
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        free(masters_query(rig->masters, 0, "EVAL %s 0", "while true do end"));
        _exit(EXIT_FAILURE);
    }
    RIG_WAIT_UNTIL(is_busy(rig));
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

/* Restarts the masters, the first of them an hour ahead. */
static int set_clock_ahead(size_t index, void *arg) {
    return index != 0 || (setenv("LD_PRELOAD", FAKE_CLOCK_MODULE, 1) == 0 &&
                          setenv(FAKE_CLOCK_FILE, arg, 1) == 0)
               ? 0
               : -1;
}

static void set_it_ahead(struct rig *rig) {
    char path[RIG_PATH];
    const struct masters_options options = {.prepare = set_clock_ahead, .prepare_arg = path};
    const struct fake_clock hour = {.ahead_ns = INT64_C(3600000000000)};
    FILE *file;

    snprintf(path, sizeof(path), "%s/clock", rig->folder);
    file = fopen(path, "we");
    assert_non_null(file);
    assert_int_equal(fwrite(&hour, sizeof(hour), 1, file), 1);
    fclose(file);
    masters_finish(rig->masters);
    rig->masters = masters_start_with(RIG_MASTERS, &options);
    assert_non_null(rig->masters);
}

/* Restarts the masters, with arguments for all. */
static void start_again(struct rig *rig, const char *const *arguments) {
    masters_finish(rig->masters);
    rig->masters = masters_start(RIG_MASTERS, arguments);
    assert_non_null(rig->masters);
}

static void rename_a_command(struct rig *rig) {
    start_again(rig, (const char *const[]){"--rename-command", "EVALSHA", "", NULL});
}

/* Takes the only connection of the first master, until the test's process ends. */
static void fill_its_connections(struct rig *rig) {
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                  .sin_port = htons((uint16_t)masters_port(rig->masters, 0))};
    int connection = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    static const char command[] = "CONFIG SET maxclients 1\r\n";
    char answer[4];

    assert_true(connection >= 0);
    assert_int_equal(connect(connection, (const struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(write(connection, command, strlen(command)), strlen(command));
    assert_int_equal(recv(connection, answer, 3, MSG_WAITALL), 3);
    assert_memory_equal(answer, "+OK", 3);
}

static const struct ill ills[] = {
    {.title = "it is down", .named = "\"unreachable\"", .plant = kill_it},
    {.title = "it hangs",
     .named = "it takes connections and does not answer: no answer in time",
     .plant = stop_it},
    {.title = "its name is unknown", .named = "\"unreachable\"", .uri = "redis://host.invalid"},
    {.title = "it is a replica", .named = "\"replica\"", .plant = make_it_a_replica},
    {.title = "it wants a login",
     .named = "\"login\"",
     .commands = {"CONFIG SET requirepass secret"}},
    {.title = "the password is wrong",
     .named = "\"login\"",
     .commands = {"CONFIG SET requirepass secret"},
     .uri = "redis://:wrong@%s"},
    {.title = "the user is unknown", .named = "\"login\"", .uri = "redis://nobody:wrong@%s"},
    {.title = "it has no such database",
     .named = "\"database\"",
     .uri = "redis://%s/99?durable=yes"},
    {.title = "it takes no more connections",
     .named = "raise maxclients, or end clients",
     .plant = fill_its_connections},
    {.title = "it does not know a command",
     .named = "it does not know the command EVALSHA, which locks need",
     .code = NO_QUORUM,
     .plant = rename_a_command},
    {.title = "its marker is none",
     .named = "\"marker\"",
     .commands = {"SET redlock:marker rubbish"}},
    {.title = "its marker is a list",
     .named = "\"marker\"",
     .commands = {"RPUSH redlock:marker rubbish"}},
    {.title = "a user is called as keys are",
     .named = "lacks the right +set:",
     .commands = {"ACL SETUSER monkey on >secret ~* &* +@all -set"},
     .uri = "redis://monkey:secret@%s"},
    {.title = "no right to SET", .named = "right +set", .commands = {"ACL SETUSER default -set"}},
    {.title = "no right to scripts",
     .named = "right +eval:",
     .commands = {"ACL SETUSER default -eval"}},
    {.title = "no right to TIME",
     .named = "right +time",
     .commands = {"ACL SETUSER default -time"}},
    {.title = "no right to the marker",
     .named = "right ~redlock:marker",
     .commands =
         {"ACL SETUSER default resetkeys ~redlock:doctor* ~redlock:waiting ~redlock:queues"}},
    {.title = "no right to the locks",
     .named = "right to the keys",
     .commands =
         {"ACL SETUSER default resetkeys ~redlock:marker ~redlock:waiting ~redlock:queues"}},
    {.title = "no right to the channel",
     .named = "&redlock:*",
     .commands = {"ACL SETUSER default resetchannels"}},
    {.title = "no right to the queue",
     .named = "for wait queues",
     .commands = {"ACL SETUSER default -exists"}},
    {.title = "no right to readers",
     .named = "for readers and writers",
     .commands = {"ACL SETUSER default -zcount"}},
    {.title = "it evicts keys",
     .named = "\"eviction\"",
     .commands = {"CONFIG SET maxmemory-policy allkeys-lru"}},
    {.title = "its memory is full",
     .named = "\"memory full\"",
     .commands = {"CONFIG SET maxmemory 1"}},
    {.title = "its memory is nearly full", .named = "\"memory nearly full\"", .plant = fill_it},
    {.title = "its replicas are gone",
     .named = "\"no replicas\"",
     .commands = {"CONFIG SET min-replicas-to-write 1"}},
    {.title = "it has too few connections",
     .named = "\"clients nearly full\"",
     .commands = {"CONFIG SET maxclients 2"}},
    {.title = "a script has no end", .named = "\"busy script\"", .plant = keep_it_busy},
    {.title = "it was started lately", .named = "\"young\"", .uri = "redis://%s"},
    {.title = "its memory is new", .named = "\"not trusted\"", .uri = "redis://%s"},
    {.title = "it is not durable", .named = "\"not durable\""},
    {.title = "its clock is off", .named = "\"clock off\"", .plant = set_it_ahead},
    {.title = "a host is shared", .named = "\"shared host\""},
    {.title = "the number is even", .named = "\"even\"", .count = 4},
    {.title = "there are few nodes", .named = "\"few\"", .count = 2},
    {.title = "three are down", .named = "\"no quorum\"", .code = NO_QUORUM, .plant = kill_three},
};

#define ILL_COUNT (sizeof(ills) / sizeof(ills[0]))
#define OTHERS 12

/* Writes the list of nodes. */
static void list_nodes(const struct rig *rig, const struct ill *ill, char list[LIST_SIZE]) {
    size_t count = ill->count != 0 ? ill->count : RIG_MASTERS;
    size_t length = 0;

    for (size_t i = 0; i < count; i++) {
        const char *address = masters_address(rig->masters, i);
        char uri[128];

        snprintf(uri, sizeof(uri), "redis://%s?durable=yes", address);
        if (i == 0 && ill->uri != NULL) {
            const char *at = strstr(ill->uri, "%s");
            int before = at != NULL ? (int)(at - ill->uri) : (int)strlen(ill->uri);

            snprintf(uri, sizeof(uri), "%.*s%s%s", before, ill->uri, at != NULL ? address : "",
                     at != NULL ? at + strlen("%s") : "");
        }
        length +=
            (size_t)snprintf(list + length, LIST_SIZE - length, "%s%s", i == 0 ? "" : ",", uri);
    }
}

static void plant(struct rig *rig, const struct ill *ill) {
    for (size_t i = 0; i < 3 && ill->commands[i] != NULL; i++) {
        free(masters_query(rig->masters, 0, ill->commands[i]));
    }
    if (ill->plant != NULL) {
        ill->plant(rig);
    }
}

/* The fault of the running test. */
static const struct ill *planted;

static int set_up_ill(void **state) {
    planted = *state;
    return rig_set_up(state);
}

static void an_ill_is_named(void **state) {
    struct rig *rig = *state;
    char list[LIST_SIZE];

    plant(rig, planted);
    list_nodes(rig, planted, list);
    assert_int_equal(RIG_RUN(rig, "doctor", "--json", "--node-timeout", "2s", "-n", list),
                     planted->code);
    if (!rig_has_said(rig, planted->named)) {
        char *output = rig_output(rig);

        print_error("%s: %s is not in %s\n", planted->title, planted->named, output);
        free(output);
        fail();
    }
}

/* One server behind two addresses, either of which may answer first, and count. */
static void a_duplicate_is_named(void **state) {
    struct rig *rig = *state;
    char list[LIST_SIZE];

    snprintf(list, sizeof(list), "%s?durable=yes,%s?durable=yes,%s?durable=yes",
             masters_uri(rig->masters, 0), masters_unix_uri(rig->masters, 0),
             masters_uri(rig->masters, 1));
    for (int i = 0; i < 40; i++) {
        assert_int_equal(RIG_RUN(rig, "doctor", "--json", "-n", list), 0);
    }
    assert_true(rig_has_said(rig, "\"duplicate\""));
}

static void health_is_reported(void **state) {
    struct rig *rig = *state;

    assert_int_equal(RIG_RUN(rig, "doctor"), 0);
    assert_true(rig_has_said(rig, "5 of 5 nodes are fit, 3 are needed: 2 more may fail"));
    assert_false(rig_has_said(rig, "FAULT"));
    assert_false(rig_has_said(rig, "\033"));
}

/* Returns how often the output contains a text. */
static size_t count(const struct rig *rig, const char *text) {
    char *output = rig_output(rig);
    size_t count = 0;

    for (const char *found = output; (found = strstr(found, text)) != NULL; found++) {
        count++;
    }
    free(output);
    return count;
}

/* One missing right, which many commands need, is reported once for each feature. */
static void a_right_is_reported_once(void **state) {
    struct rig *rig = *state;

    free(masters_query(rig->masters, 0,
                       "ACL SETUSER default resetkeys ~redlock:waiting ~redlock:queues"));
    assert_int_equal(RIG_RUN(rig, "doctor"), 0);
    assert_int_equal(count(rig, "for locks its user lacks the right to the keys"), 1);
    assert_int_equal(count(rig, "for readers and writers its user lacks"), 1);
    assert_int_equal(count(rig, "for wait queues its user lacks"), 1);
}

/* All nodes of a host are named, whichever of its names they use. */
static void a_host_is_reported_once(void **state) {
    struct rig *rig = *state;
    char list[LIST_SIZE];
    char text[LIST_SIZE];

    snprintf(list, sizeof(list), "%s,redis://localhost:%d,%s", masters_uri(rig->masters, 0),
             masters_port(rig->masters, 1), masters_unix_uri(rig->masters, 2));
    snprintf(text, sizeof(text), "%s, localhost:%d, %s are on one host",
             masters_address(rig->masters, 0), masters_port(rig->masters, 1),
             masters_unix_uri(rig->masters, 2) + strlen("unix://"));
    RIG_RUN(rig, "doctor", "-n", list);
    assert_int_equal(count(rig, " on one host"), 1);
    assert_true(rig_has_said(rig, text));
}

/* Queries another kind of server in each way. */
static void ask_all(struct rig *rig, const char *answer) {
    struct oddity oddity = oddity_start(answer);
    char uri[64];

    snprintf(uri, sizeof(uri), "redis://127.0.0.1:%d", oddity.port);
    assert_int_equal(RIG_RUN(rig, "doctor", "-n", uri), NO_QUORUM);
    assert_int_equal(RIG_RUN(rig, "list", "-n", uri), NO_QUORUM);
    assert_int_equal(RIG_RUN(rig, "nodes", "new", "--yes", "-n", uri), 1);
    strcat(uri, "/1");
    assert_int_equal(RIG_RUN(rig, "doctor", "-n", uri), NO_QUORUM);
    oddity_end(&oddity);
}

static void odd_answers_are_no_harm(void **state) {
    static const char *const answers[] = {":1\r\n",
                                          "$-1\r\n",
                                          "+PONG\r\n",
                                          "+OK\r\n",
                                          "*0\r\n",
                                          "*2\r\n:1\r\n:2\r\n",
                                          "*2\r\n$1\r\n1\r\n*1\r\n:1\r\n"};
    struct rig *rig = *state;

    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        ask_all(rig, answers[i]);
    }
    assert_true(rig_has_said(rig, "it does not speak as Redis does"));
}

/* A server whose cursor never moves is not asked forever. */
static void a_scan_without_end_is_left(void **state) {
    struct rig *rig = *state;
    struct oddity oddity = oddity_start("*2\r\n$1\r\n1\r\n*0\r\n");
    char uri[64];
    char text[96];

    snprintf(uri, sizeof(uri), "redis://127.0.0.1:%d", oddity.port);
    snprintf(text, sizeof(text), "list: 127.0.0.1:%d: its keys have no end", oddity.port);
    assert_int_equal(RIG_RUN(rig, "list", "-n", uri), NO_QUORUM);
    assert_true(rig_has_said(rig, text));
    oddity_end(&oddity);
}

/* A page without a cursor does not end the list, and programs learn which node failed. */
static void a_scan_without_cursor_fails(void **state) {
    struct rig *rig = *state;
    struct oddity oddity = oddity_start("*2\r\n$-1\r\n*0\r\n");
    char uri[64];
    char text[LIST_SIZE];

    snprintf(uri, sizeof(uri), "redis://127.0.0.1:%d", oddity.port);
    snprintf(text, sizeof(text),
             "\"nodes_answered\":0,\"failures\":[{\"node\":\"127.0.0.1:%d\","
             "\"why\":\"its answer makes no sense\"}],",
             oddity.port);
    assert_int_equal(RIG_RUN(rig, "list", "--json", "-n", uri), NO_QUORUM);
    assert_true(rig_has_said(rig, text));
    oddity_end(&oddity);
}

/* Queries a server directly, with the shortest timeout, without success. */
static void ask_in_vain(struct rig *rig, const struct oddity *oddity, const char *why) {
    char uri[64];

    snprintf(uri, sizeof(uri), "redis://127.0.0.1:%d", oddity->port);
    assert_int_equal(RIG_RUN(rig, "doctor", "--node-timeout", "100ms", "-n", uri), NO_QUORUM);
    assert_true(rig_has_said(rig, why));
    assert_int_equal(RIG_RUN(rig, "list", "--node-timeout", "100ms", "-n", uri), NO_QUORUM);
    assert_true(rig_has_said(rig, why));
    assert_int_equal(RIG_RUN(rig, "nodes", "new", "--yes", "--node-timeout", "100ms", "-n", uri),
                     1);
}

/* The answer of a server that sends it byte by byte is not read forever. */
static void an_answer_has_its_time(void **state) {
    struct rig *rig = *state;
    struct oddity oddity = oddity_start_slow();

    ask_in_vain(rig, &oddity, "no answer in time");
    oddity_end(&oddity);
}

/* No memory is allocated for an array that is announced, and never comes. */
static void an_array_has_a_bound(void **state) {
    struct rig *rig = *state;
    struct oddity oddity = oddity_start("*2147483647\r\n");

    ask_in_vain(rig, &oddity, "its answer makes no sense");
    oddity_end(&oddity);
}

/* Escape sequences of a server have no effect on a terminal. */
static void errors_are_fit_for_terminals(void **state) {
    struct rig *rig = *state;
    char *output;

    ask_all(rig, "-ERR \033]0;pwned\007\377\r\n");
    assert_true(rig_has_said(rig, "ERR \\x1b]0;pwned\\x07\\xff"));
    output = rig_output(rig);
    for (const char *at = output; *at != '\0'; at++) {
        assert_true(*at == '\n' || (*at >= ' ' && *at <= '~'));
    }
    free(output);
}

/* Makes the doctor examine another kind of server. */
static void look_at(struct rig *rig, const struct oddity_answer *answers) {
    struct oddity oddity = oddity_start_with(answers);
    char uri[64];

    snprintf(uri, sizeof(uri), "redis://127.0.0.1:%d", oddity.port);
    assert_int_equal(RIG_RUN(rig, "doctor", "-n", uri), NO_QUORUM);
    assert_int_equal(RIG_RUN(rig, "doctor", "--json", "-n", uri), NO_QUORUM);
    oddity_end(&oddity);
}

/* Valkey also reports a version of Redis, for programs that know nothing else. */
static void valkey_is_called_by_its_version(void **state) {
    static const struct oddity_answer answers[] = {
        {"INFO", "$71\r\n# Server\r\nredis_version:7.2.4\r\nserver_name:valkey\r\n"
                 "valkey_version:9.1.0\r\n"},
        {NULL, "+PONG\r\n"}};
    struct rig *rig = *state;

    look_at(rig, answers);
    assert_true(rig_has_said(rig, "version 9.1.0 of Valkey"));
    assert_true(rig_has_said(rig, "\"version\":\"9.1.0\""));
    assert_false(rig_has_said(rig, "7.2.4"));
}

static void a_server_without_lua_is_reported(void **state) {
    static const char *const refusals[][2] = {
        {"-ERR Could not find scripting engine 'lua'\r\n", "load its Lua module"},
        {"-ERR This instance has Lua scripting support disabled\r\n", "start it with Lua"}};
    struct rig *rig = *state;

    for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
        const struct oddity_answer answers[] = {
            {"EVAL", refusals[i][0]}, {"EVALSHA", refusals[i][0]}, {NULL, "+PONG\r\n"}};

        look_at(rig, answers);
        assert_true(rig_has_said(rig, "\"no Lua\""));
        assert_true(rig_has_said(rig, refusals[i][1]));
        assert_false(rig_has_said(rig, "\"refusal\""));
    }
}

int main(void) {
    struct CMUnitTest tests[ILL_COUNT + OTHERS] = {
        cmocka_unit_test_setup_teardown(a_duplicate_is_named, rig_set_up, rig_tear_down),
        cmocka_unit_test_setup_teardown(health_is_reported, rig_set_up, rig_tear_down),
        cmocka_unit_test_setup_teardown(a_right_is_reported_once, rig_set_up, rig_tear_down),
        cmocka_unit_test_setup_teardown(a_host_is_reported_once, rig_set_up, rig_tear_down),
        cmocka_unit_test_setup_teardown(odd_answers_are_no_harm, rig_set_up, rig_tear_down),
        cmocka_unit_test_setup_teardown(a_scan_without_end_is_left, rig_set_up, rig_tear_down),
        cmocka_unit_test_setup_teardown(a_scan_without_cursor_fails, rig_set_up, rig_tear_down),
        cmocka_unit_test_setup_teardown(an_answer_has_its_time, rig_set_up, rig_tear_down),
        cmocka_unit_test_setup_teardown(an_array_has_a_bound, rig_set_up, rig_tear_down),
        cmocka_unit_test_setup_teardown(errors_are_fit_for_terminals, rig_set_up, rig_tear_down),
        cmocka_unit_test_setup_teardown(valkey_is_called_by_its_version, rig_set_up, rig_tear_down),
        cmocka_unit_test_setup_teardown(a_server_without_lua_is_reported, rig_set_up,
                                        rig_tear_down),
    };

    for (size_t i = 0; i < ILL_COUNT; i++) {
        tests[i + OTHERS] = (struct CMUnitTest){.name = ills[i].title,
                                                .test_func = an_ill_is_named,
                                                .setup_func = set_up_ill,
                                                .teardown_func = rig_tear_down,
                                                .initial_state = (void *)(uintptr_t)&ills[i]};
    }
    return cmocka_run_group_tests_name("doctor", tests, NULL, NULL);
}
