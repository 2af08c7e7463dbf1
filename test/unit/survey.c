/*
 * Tests the nodes' answers about a key: its holder, the rest of its TTL, and whether a fence is the
 * newest.
 */
#include "core/survey.h"
#include "unit.h"

#include <stdio.h>
#include <string.h>

#define A "0123456789012345678901234567890123456789/alice"
#define LONG_OWNER "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define LONGER_OWNER "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abc..."
#define B "abcdefabcdefabcdefabcdefabcdefabcdefabcd"

/*
 * Returns a survey with a letter for each node: a and b held with A and B, f free, x no lock; a
 * space: silent. The rest of the TTL is 10 times the node's number, starting at 1.
 */
static struct survey survey_of(const char *letters) {
    struct survey survey = {.lists = {(uint32_t)((UINT64_C(1) << strlen(letters)) - 1), 0}};
    for (size_t i = 0; letters[i] != '\0'; i++) {
        struct survey_answer *answer = &survey.answers[i];
        answer->state = letters[i] == 'f'   ? SURVEY_FREE
                        : letters[i] == 'x' ? SURVEY_NO_LOCK
                        : letters[i] == ' ' ? SURVEY_SILENT
                                            : SURVEY_HELD;
        if (answer->state == SURVEY_HELD) {
            const char *value = letters[i] == 'a' ? A : B;
            survey_record_value(answer, value, strlen(value));
            answer->ttl_ms = 10 * (i + 1);
        }
    }
    return survey;
}

static void test_who_holds_it(void **state) {
    (void)state;
    static const struct {
        const char *letters;
        bool is_certain, is_held;
        uint32_t node;
        uint64_t ttl_ms;
    } rows[] = {
        {"aaaaa", true, true, 0, 30},  {"aaabb", true, true, 0, 10},  {"bbaaa", true, true, 2, 30},
        {"aabbf", true, false, 0, 0},  {"fffff", true, false, 0, 0},  {"xxxxx", true, false, 0, 0},
        {"     ", false, false, 0, 0}, {"aa   ", false, false, 0, 0}, {"aaff ", false, false, 0, 0},
        {"aafff", true, false, 0, 0},  {"a fff", true, false, 0, 0},  {"aaa  ", true, true, 0, 10},
        {"fff  ", true, false, 0, 0},  {"aabb ", false, false, 0, 0}, {"a", true, true, 0, 10},
        {"ab", true, false, 0, 0},     {"a ", false, false, 0, 0},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct survey survey = survey_of(rows[i].letters);
        struct survey_verdict verdict = survey_decide(&survey);
        assert_int_equal(verdict.is_certain, rows[i].is_certain);
        assert_int_equal(verdict.is_held, rows[i].is_held);
        if (verdict.is_held) {
            assert_int_equal(verdict.node, rows[i].node);
        }
        assert_int_equal(verdict.ttl_ms, rows[i].ttl_ms);
    }
}

/* The current list decides; the next list is still receiving the keys. */
static void test_the_list_says_who_holds_it(void **state) {
    (void)state;
    struct survey survey = survey_of("aaabbb");
    survey.lists = (struct quorum_lists){0x07, 0x38};
    assert_true(survey_decide(&survey).is_held);
    assert_int_equal(survey_decide(&survey).node, 0);
    survey.lists = (struct quorum_lists){0x38, 0};
    assert_int_equal(survey_decide(&survey).node, 3);
}

static void test_the_fence_that_a_quorum_has_reached(void **state) {
    (void)state;
    struct survey survey = survey_of("aaaff");
    static const uint64_t fences[] = {700, 700, 764, 0, 700};
    for (size_t i = 0; i < 5; i++) {
        survey.answers[i].fence = fences[i];
    }
    assert_int_equal(survey_decide(&survey).fence, 637); /* the 764 is a failed try's */
    survey.answers[0].fence = survey.answers[1].fence = 764;
    assert_int_equal(survey_decide(&survey).fence, 701);
}

static void test_how_many_readers_a_quorum_has(void **state) {
    (void)state;
    struct survey survey = survey_of("aaab ");
    static const uint32_t readers[] = {2, 1, 3, 9, 9};
    for (size_t i = 0; i < 5; i++) {
        survey.answers[i].readers = readers[i];
    }
    assert_int_equal(survey_decide(&survey).readers, 1);
    survey.answers[1].readers = 2;
    assert_int_equal(survey_decide(&survey).readers, 2);
    survey = survey_of("fffff");
    assert_int_equal(survey_decide(&survey).readers, 0);
}

/* ---- waiters ---- */

#define QUEUES 5

/*
 * Gives each node its entries: for each digit a waiter with the digit as its ticket and its owner.
 */
static struct survey queued_up(const char *const entries[QUEUES]) {
    static struct survey_entries room[QUEUES];
    struct survey survey = survey_of("aaaaa");
    memset(room, 0, sizeof(room));
    survey.entries = room;
    for (size_t i = 0; i < QUEUES; i++) {
        for (const char *p = entries[i]; *p != '\0'; p++) {
            char value[48];
            int length = snprintf(value, sizeof(value), "%.40s/%c", B, *p);
            survey_record_waiter(&room[i], (uint64_t)(*p - '0'), value, (size_t)length);
            survey.answers[i].queue_length++;
        }
    }
    return survey;
}

static void test_who_stands_in_queue(void **state) {
    (void)state;
    static const struct {
        const char *entries[QUEUES];
        uint32_t length;
        const char *owners;
    } rows[] = {
        {{"", "", "", "", ""}, 0, ""},
        {{"123", "123", "123", "123", "123"}, 3, "123"},
        {{"13", "123", "23", "123", "12"}, 3, "123"}, /* no quorum has three entries */
        {{"1", "1", "2", "2", "3"}, 1, ""},           /* no waiter has an entry at a quorum */
        {{"9", "12", "12", "12", ""}, 2, "12"},
        {{"12", "12", "12", "", ""}, 2, "12"},
        {{"12", "12", "", "", ""}, 0, ""},
        {{"11", "11", "1", "", ""}, 1, "1"}, /* on two channels, one of which is gone */
        {{"21", "12", "21", "12", "12"}, 2, "12"},
        {{"12345678", "12345678", "12345678", "", ""}, 8, "12345678"},
        {{"02345678", "12345678", "12345678", "01234567", "01234567"}, 8, "01234567"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct survey survey = queued_up(rows[i].entries);
        struct survey_queue queue;
        survey_waiters(&survey, &queue);
        assert_int_equal(queue.owner_count, strlen(rows[i].owners));
        for (size_t k = 0; k < queue.owner_count; k++) {
            assert_int_equal(queue.owners[k][0], rows[i].owners[k]);
            assert_int_equal(queue.owners[k][1], '\0');
        }
        assert_int_equal(queue.length, rows[i].length);
    }
}

/* Nodes count all entries, and name the first ones. */
static void test_a_queue_is_longer_than_its_owners(void **state) {
    (void)state;
    static const char *const entries[QUEUES] = {"12", "12", "12", "12", "12"};
    static const uint32_t lengths[QUEUES] = {30, 20, 50, 40, 10};
    struct survey survey = queued_up(entries);
    struct survey_queue queue;
    for (size_t i = 0; i < QUEUES; i++) {
        survey.answers[i].queue_length = lengths[i];
    }
    survey_waiters(&survey, &queue);
    assert_int_equal(queue.length, 30);
    assert_int_equal(queue.owner_count, 2);
}

/*
 * Entries with the same ticket are ordered by their values, as at the nodes; the owner is cleaned
 * up.
 */
static void test_entries_of_one_ticket(void **state) {
    (void)state;
    static const char *const values[] = {A "\x1b", B, B "/bob"};
    struct survey_entries room[3] = {{0}};
    struct survey survey = survey_of("fff");
    struct survey_queue queue;
    survey.entries = room;
    for (size_t node = 0; node < 3; node++) {
        for (size_t i = 0; i < 3; i++) {
            const char *value = values[(node + i) % 3];
            survey_record_waiter(&room[node], 7, value, strlen(value));
        }
    }
    survey_waiters(&survey, &queue);
    assert_int_equal(queue.owner_count, 3);
    assert_int_equal(queue.length, 3);
    assert_string_equal(queue.owners[0], "alice?");
    assert_string_equal(queue.owners[1], "");
    assert_string_equal(queue.owners[2], "bob");
}

/* ---- fences ---- */

static void test_whether_a_fence_is_the_newest(void **state) {
    (void)state;
    static const struct {
        const char *letters;
        uint64_t fences[5];
        redlock_status status;
    } rows[] = {
        {"aaaaa", {800, 800, 800, 800, 800}, REDLOCK_OK},
        {"aaaaa", {800, 800, 800, 864, 864}, REDLOCK_OK}, /* a failed try */
        {"bbbff", {864, 864, 864, 800, 800}, REDLOCK_ELOST},
        {"bbb  ", {864, 864, 864, 0, 0}, REDLOCK_ELOST},
        {"aaa  ", {800, 800, 800, 0, 0}, REDLOCK_OK},
        {"aa   ", {800, 800, 0, 0, 0}, REDLOCK_ENOQUORUM},
        {"aab  ", {800, 800, 864, 0, 0}, REDLOCK_ENOQUORUM},
        {"     ", {0, 0, 0, 0, 0}, REDLOCK_ENOQUORUM},
        {"fffff", {0, 0, 0, 0, 0}, REDLOCK_OK},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct survey survey = survey_of(rows[i].letters);
        for (size_t k = 0; k < 5; k++) {
            survey.answers[k].fence = rows[i].fences[k];
        }
        /* Those whom the client hands the lock on to have fences of the same range. */
        assert_int_equal(survey_check_fence(&survey, 737), rows[i].status);
        assert_int_equal(survey_check_fence(&survey, 800), rows[i].status);
    }
}

static void test_a_fence_before_the_newest_range_is_lost(void **state) {
    (void)state;
    struct survey survey = survey_of("aaaaa");
    for (size_t i = 0; i < 5; i++) {
        survey.answers[i].fence = 800;
    }
    assert_int_equal(survey_check_fence(&survey, 736), REDLOCK_ELOST);
    assert_int_equal(survey_check_fence(&survey, UINT64_MAX), REDLOCK_OK);
}

/* A client one step ahead may have acquired the key by either list. */
static void test_a_fence_is_looked_for_in_both_lists(void **state) {
    (void)state;
    struct survey survey = survey_of("aaaaaa");
    survey.lists = (struct quorum_lists){0x07, 0x38};
    assert_int_equal(survey_check_fence(&survey, 800), REDLOCK_OK);
    survey.answers[3].fence = survey.answers[4].fence = 864;
    assert_int_equal(survey_check_fence(&survey, 800), REDLOCK_ELOST);
    survey.answers[3].fence = 0;
    survey.answers[5].state = SURVEY_SILENT;
    assert_int_equal(survey_check_fence(&survey, 800), REDLOCK_ENOQUORUM);
    survey.answers[0].fence = survey.answers[1].fence = 864;
    assert_int_equal(survey_check_fence(&survey, 800), REDLOCK_ELOST);
}

static void test_owners(void **state) {
    (void)state;
    static const struct {
        const char *value;
        size_t length;
        const char *owner;
    } rows[] = {
        {A, sizeof(A) - 1, "alice"},
        {B, sizeof(B) - 1, ""},
        {B "x", sizeof(B), ""},
        {B "/", sizeof(B), ""},
        {B "/~ \x1b[2J\x7f\x80\xff\n", sizeof(B) + 10, "~ ?[2J????"},
        {B "/a\0b", sizeof(B) + 3, "a"},
        {"alice", 5, ""},
        {"", 0, ""},
        {B "/" LONG_OWNER, sizeof(B) + 64, LONG_OWNER},
        {B "/" LONG_OWNER "x", sizeof(B) + 65, LONGER_OWNER},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct survey_answer answer;
        survey_record_value(&answer, rows[i].value, rows[i].length);
        assert_string_equal(answer.owner, rows[i].owner);
    }
}

/* Different values are different holders, even with one owner label. */
static void test_values_are_compared_byte_by_byte(void **state) {
    (void)state;
    static const struct {
        const char *values[2];
        size_t lengths[2];
        bool is_same;
    } rows[] = {
        {{B "/a", B "/a"}, {42, 42}, true},
        {{B "/\x01", B "/\x02"}, {42, 42}, false},
        {{B "/a\0b", B "/a\0b"}, {44, 44}, true},
        {{B "/a\0b", B "/a\0c"}, {44, 44}, false},
        {{B "/a\0b", B "/a"}, {44, 42}, false},
        {{B "/" LONG_OWNER, B "/" LONG_OWNER "x"}, {105, 106}, false},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct survey survey = survey_of("aa");
        survey_record_value(&survey.answers[0], rows[i].values[0], rows[i].lengths[0]);
        survey_record_value(&survey.answers[1], rows[i].values[1], rows[i].lengths[1]);
        assert_int_equal(survey_decide(&survey).is_held, rows[i].is_same);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_holds_it),
        cmocka_unit_test(test_the_list_says_who_holds_it),
        cmocka_unit_test(test_the_fence_that_a_quorum_has_reached),
        cmocka_unit_test(test_how_many_readers_a_quorum_has),
        cmocka_unit_test(test_who_stands_in_queue),
        cmocka_unit_test(test_a_queue_is_longer_than_its_owners),
        cmocka_unit_test(test_entries_of_one_ticket),
        cmocka_unit_test(test_whether_a_fence_is_the_newest),
        cmocka_unit_test(test_a_fence_before_the_newest_range_is_lost),
        cmocka_unit_test(test_a_fence_is_looked_for_in_both_lists),
        cmocka_unit_test(test_owners),
        cmocka_unit_test(test_values_are_compared_byte_by_byte),
    };
    return cmocka_run_group_tests_name("survey", tests, NULL, NULL);
}
