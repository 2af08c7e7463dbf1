/* Tests the sentence of redlock_explain, word for word. */
#include "core/explain.h"
#include "unit.h"

#include <stdio.h>
#include <string.h>

#define A "10.0.0.1:6379"
#define B "10.0.0.2:6379"
#define C "10.0.0.3:6379"
#define D "[::1]:6379"
#define E "/run/redis.sock"

static const struct explain_subject not_acquired = {
    .what = "not acquired", .tries = 3, .took_ms = 412, .node_timeout_ms = 50};

struct row {
    struct explain_subject subject;
    uint32_t count;
    redlock_node_report reports[5];
    const char *sentence;
};

static void check(const struct row *row) {
    char memory[1024];
    struct text text;
    text_init(&text, memory, sizeof(memory));
    struct explain_subject subject = row->subject;
    subject.nodes = subject.nodes != 0 ? subject.nodes : row->count;
    explain_write(&text, &subject, row->reports, row->count);
    assert_string_equal(memory, row->sentence);
}

static void test_nodes_that_say_the_same_are_reported_together(void **state) {
    (void)state;
    const struct row row = {not_acquired,
                            5,
                            {{A, REDLOCK_VOTE_DENIED, 120, ""},
                             {B, REDLOCK_VOTE_GRANTED, 0, ""},
                             {C, REDLOCK_VOTE_DENIED, 7310, ""},
                             {D, REDLOCK_VOTE_UNREACHABLE, 0, "Connection refused"},
                             {E, REDLOCK_VOTE_UNREACHABLE, 0, "Connection refused"}},
                            "not acquired after 3 tries in 412 ms, 3 of 5 nodes are needed"
                            "; 2 held by another, for 7310 ms more at most (" A ", " C ")"
                            "; 1 granted (" B ")"
                            "; 2 unreachable: Connection refused (" D ", " E ")"};
    check(&row);
}

static void test_nodes_that_differ_in_detail_are_distinguished(void **state) {
    (void)state;
    const struct row row = {not_acquired,
                            3,
                            {{A, REDLOCK_VOTE_ERROR, 0, "LOADING Redis is loading"},
                             {B, REDLOCK_VOTE_ERROR, 0, "OOM command not allowed"},
                             {C, REDLOCK_VOTE_UNREACHABLE, 0, "OOM command not allowed"}},
                            "not acquired after 3 tries in 412 ms, 2 of 3 nodes are needed"
                            "; 1 refused: LOADING Redis is loading (" A ")"
                            "; 1 refused: OOM command not allowed (" B ")"
                            "; 1 unreachable: OOM command not allowed (" C ")"};
    check(&row);
}

static void test_what_each_vote_is_called(void **state) {
    (void)state;
    static const struct {
        redlock_vote vote;
        uint64_t ttl_ms;
        const char *detail, *words;
    } rows[] = {
        {REDLOCK_VOTE_NONE, 0, "", "not waited for"},
        {REDLOCK_VOTE_GRANTED, 0, "", "granted"},
        {REDLOCK_VOTE_DENIED, 0, "", "held by another"},
        {REDLOCK_VOTE_DENIED, 1, "", "held by another, for 1 ms more at most"},
        {REDLOCK_VOTE_WRONG_TYPE, 0, "", "the key exists but is no lock: wrong type"},
        {REDLOCK_VOTE_NO_EXPIRY, 0, "", "the key exists but is no lock: no expiry"},
        {REDLOCK_VOTE_MISSING, 0, "", "the key is gone"},
        {REDLOCK_VOTE_ERROR, 0, "READONLY", "refused: READONLY"},
        {REDLOCK_VOTE_TIMEOUT, 0, "", "timeout after 50 ms"},
        {REDLOCK_VOTE_UNREACHABLE, 0, "no route", "unreachable: no route"},
        {REDLOCK_VOTE_REFUSED, 0, "WRONGPASS", "refused: WRONGPASS"},
        {REDLOCK_VOTE_BROKEN, 0, "reset", "connection broke, outcome unknown: reset"},
        {REDLOCK_VOTE_UNTRUSTED, 7, "it was restarted",
         "not trusted for 7 ms more: it was restarted"},
        {REDLOCK_VOTE_UNTRUSTED, 0, "it is a replica", "not trusted: it is a replica"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char sentence[256];
        snprintf(sentence, sizeof(sentence), "not renewed, 1 of 1 nodes are needed; 1 %s (" A ")",
                 rows[i].words);
        const struct row row = {{.what = "not renewed", .node_timeout_ms = 50},
                                1,
                                {{A, rows[i].vote, rows[i].ttl_ms, rows[i].detail}},
                                sentence};
        check(&row);
    }
    const uint64_t answer_us[] = {420, 1250, 300};
    const struct row slow = {
        {.what = "not acquired", .node_timeout_ms = 50, .answer_us = answer_us},
        3,
        {{A, REDLOCK_VOTE_TIMEOUT, 0, ""}, {B, REDLOCK_VOTE_TIMEOUT, 0, ""}, {C, 0, 0, ""}},
        "not acquired, 2 of 3 nodes are needed; 2 timeout after 50 ms, usually it takes up to 1.2 "
        "ms (" A ", " B "); 1 not waited for (" C ")"};
    check(&slow);
    const struct row open = {{.what = "being renewed", .is_open = true},
                             1,
                             {{A, REDLOCK_VOTE_NONE, 0, ""}},
                             "being renewed, 1 of 1 nodes are needed; 1 not answered yet (" A ")"};
    check(&open);
}

static void test_late_grants_and_ruined_counters_are_reported(void **state) {
    (void)state;
    struct row row = {not_acquired,
                      3,
                      {{A, REDLOCK_VOTE_LATE, 0, ""},
                       {B, REDLOCK_VOTE_WRONG_TYPE, 0, "its counter is out of range"},
                       {C, REDLOCK_VOTE_LATE, 0, ""}},
                      "not acquired after 3 tries in 412 ms, 2 of 3 nodes are needed"
                      "; 2 granted too late, after 50 ms or more (" A ", " C ")"
                      "; 1 the key exists but is no lock: its counter is out of range (" B ")"};
    row.subject.node_timeout_ms = 50;
    check(&row);
}

static void test_how_often_it_was_tried(void **state) {
    (void)state;
    const struct row once = {{.what = "acquired", .tries = 1, .took_ms = 0},
                             1,
                             {{A, REDLOCK_VOTE_GRANTED, 0, ""}},
                             "acquired after 1 try in 0 ms, 1 of 1 nodes are needed; 1 granted (" A
                             ")"};
    const struct row unreported = {{.what = "released", .took_ms = 9},
                                   1,
                                   {{A, REDLOCK_VOTE_GRANTED, 0, ""}},
                                   "released, 1 of 1 nodes are needed; 1 granted (" A ")"};
    check(&once);
    check(&unreported);
}

static void test_two_lists_are_reported(void **state) {
    (void)state;
    const struct row row = {
        {.what = "not renewed", .nodes = 1, .next_nodes = 2},
        2,
        {{A, REDLOCK_VOTE_GRANTED, 0, ""}, {B, REDLOCK_VOTE_MISSING, 0, ""}},
        "not renewed, 1 of 1 nodes and 2 of the next 2 are needed; 1 granted (" A
        "); 1 the key is gone (" B ")"};
    check(&row);
}

static void test_a_sentence_that_does_not_fit_is_cut(void **state) {
    (void)state;
    redlock_node_report reports[REDLOCK_MAX_NODES];
    for (uint32_t i = 0; i < REDLOCK_MAX_NODES; i++) {
        reports[i] = (redlock_node_report){A, REDLOCK_VOTE_TIMEOUT, 0, ""};
    }
    char memory[129];
    struct text text;
    memset(memory, '#', sizeof(memory));
    text_init(&text, memory, 128);
    struct explain_subject subject = not_acquired;
    subject.nodes = REDLOCK_MAX_NODES;
    explain_write(&text, &subject, reports, REDLOCK_MAX_NODES);
    assert_int_equal(strlen(memory), 127);
    assert_string_equal(memory + 124, "...");
    assert_int_equal(memory[128], '#');
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nodes_that_say_the_same_are_reported_together),
        cmocka_unit_test(test_nodes_that_differ_in_detail_are_distinguished),
        cmocka_unit_test(test_what_each_vote_is_called),
        cmocka_unit_test(test_late_grants_and_ruined_counters_are_reported),
        cmocka_unit_test(test_how_often_it_was_tried),
        cmocka_unit_test(test_two_lists_are_reported),
        cmocka_unit_test(test_a_sentence_that_does_not_fit_is_cut),
    };
    return cmocka_run_group_tests_name("explain", tests, NULL, NULL);
}
