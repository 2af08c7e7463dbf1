/* Tests the commands to servers, byte for byte, and the interpretation of their answers. */
#include "heap.h"
#include "unit.h"
#include "wire/command.h"
#include "wire/fence.h"
#include "wire/key.h"
#include "wire/push.h"
#include "wire/reply.h"
#include "wire/script.h"
#include "wire/token.h"

#include <stdio.h>
#include <string.h>

#define TOKEN "0123456789abcdef0123456789abcdef01234567"
#define OTHER_TOKEN "fedcba9876543210fedcba9876543210fedcba98"
#define BULK_OF_TOKEN "$40\r\n" TOKEN "\r\n"
#define BULK_OF_MINE "$43\r\n" TOKEN "/me\r\n"
#define BULK_OF_OTHER_TOKEN "$40\r\n" OTHER_TOKEN "\r\n"

/* A string literal that may contain NULs, and its length. */
#define LITERAL(text) (text), sizeof(text) - 1

struct fixture {
    struct heap heap, heap_of_keys;
    struct keys keys;
    struct key *created[8];
    unsigned created_count;
    struct bytes out;
    struct script_call call;
};

static int setup(void **state) {
    static struct fixture fixture;
    heap_init(&fixture.heap);
    heap_init(&fixture.heap_of_keys);
    keys_init(&fixture.keys, &fixture.heap_of_keys.allocator);
    fixture.created_count = 0;
    bytes_init(&fixture.out, &fixture.heap.allocator);
    script_call_init(&fixture.call, &fixture.heap.allocator);
    *state = &fixture;
    return 0;
}

static int teardown(void **state) {
    struct fixture *fixture = *state;
    bytes_finish(&fixture->out);
    script_call_finish(&fixture->call);
    for (unsigned i = 0; i < fixture->created_count; i++) {
        key_drop(fixture->created[i]);
    }
    keys_finish(&fixture->keys);
    return fixture->heap.out == 0 && fixture->heap_of_keys.out == 0 ? 0 : -1;
}

/* Returns a key that lives until the end of the test. */
static struct key *new_key(struct fixture *f, const char *bytes, size_t length) {
    assert_true(f->created_count < COUNT_OF(f->created));
    struct key *key = key_create(&f->keys, bytes, length);
    f->created[f->created_count++] = key;
    return key;
}

static void append_set(struct fixture *f, struct key *key, const char *owner, uint64_t ttl_ms) {
    command_set(&f->out, &(struct lock_arguments){
                             .key = key, .value = TOKEN, .owner = owner, .ttl_ms = ttl_ms});
}

static void assert_bytes(const struct bytes *bytes, const char *expected, size_t length) {
    assert_false(bytes->failed);
    assert_int_equal(bytes->length, length);
    assert_memory_equal(bytes->data, expected, length);
}

/* ---- commands ---- */

static void test_words(void **state) {
    struct fixture *f = *state;
    command_words(&f->out, 3, (const char *const[]){"AUTH", "user", "pass\r\nword"});
    command_words(&f->out, 2, (const char *const[]){"SELECT", "15"});
    command_words(&f->out, 3, (const char *const[]){"CLIENT", "SETNAME", ""});
    assert_bytes(&f->out, LITERAL("*3\r\n$4\r\nAUTH\r\n$4\r\nuser\r\n$10\r\npass\r\nword\r\n"
                                  "*2\r\n$6\r\nSELECT\r\n$2\r\n15\r\n"
                                  "*3\r\n$6\r\nCLIENT\r\n$7\r\nSETNAME\r\n$0\r\n\r\n"));
}

/* SET carries NX and the expiry in one command. */
static void test_set(void **state) {
    struct fixture *f = *state;
    append_set(f, new_key(f, LITERAL("orders:42")), "", 10000);
    assert_bytes(&f->out, LITERAL("*6\r\n$3\r\nSET\r\n$9\r\norders:42\r\n" BULK_OF_TOKEN
                                  "$2\r\nNX\r\n$2\r\nPX\r\n$5\r\n10000\r\n"));
}

static void test_set_of_a_binary_key(void **state) {
    struct fixture *f = *state;
    append_set(f, new_key(f, LITERAL("a\0b\r\n$5\r\n")), "", 1);
    assert_bytes(&f->out, LITERAL("*6\r\n$3\r\nSET\r\n$9\r\na\0b\r\n$5\r\n\r\n" BULK_OF_TOKEN
                                  "$2\r\nNX\r\n$2\r\nPX\r\n$1\r\n1\r\n"));
}

static void test_numbers_are_written_in_full(void **state) {
    struct fixture *f = *state;
    static const struct {
        uint64_t ttl_ms;
        const char *bulk;
    } rows[] = {
        {0, "$1\r\n0\r\n"},
        {9, "$1\r\n9\r\n"},
        {10, "$2\r\n10\r\n"},
        {30000, "$5\r\n30000\r\n"},
        {UINT64_MAX, "$20\r\n18446744073709551615\r\n"},
    };
    struct key *key = new_key(f, "k", 1);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        bytes_clear(&f->out);
        append_set(f, key, "", rows[i].ttl_ms);
        size_t length = strlen(rows[i].bulk);
        assert_true(f->out.length > length);
        assert_memory_equal(f->out.data + f->out.length - length, rows[i].bulk, length);
    }
}

static void add_lock(struct fixture *f, enum script script, struct key *key, const char *token,
                     uint64_t ttl_ms) {
    struct lock_arguments lock = {.key = key, .owner = "", .ttl_ms = ttl_ms};
    memcpy(lock.value, token, TOKEN_LENGTH);
    script_call_add(&f->call, script, &lock);
}

static void test_release_of_one_key(void **state) {
    struct fixture *f = *state;
    add_lock(f, SCRIPT_RELEASE, new_key(f, "key", 3), TOKEN, 999);
    command_script(&f->out, SCRIPT_RELEASE, false, &f->call);
    char expected[512];
    snprintf(expected, sizeof(expected),
             "*5\r\n$7\r\nEVALSHA\r\n$40\r\n%.40s\r\n$1\r\n1\r\n$3\r\nkey\r\n" BULK_OF_TOKEN,
             script_sha(SCRIPT_RELEASE));
    assert_bytes(&f->out, expected, strlen(expected));
}

/* Keys first, then a token and a TTL for each, as a script finds them in KEYS and ARGV. */
#define THREE_KEYS                                                                                 \
    "$1\r\n3\r\n"                                                                                  \
    "$3\r\n\0\r\n\r\n$0\r\n\r\n$2\r\nk3\r\n" BULK_OF_TOKEN "$5\r\n10000\r\n" BULK_OF_OTHER_TOKEN   \
    "$1\r\n7\r\n" BULK_OF_TOKEN "$5\r\n30000\r\n"

static void add_three_keys(struct fixture *f) {
    add_lock(f, SCRIPT_RENEW, new_key(f, "\0\r\n", 3), TOKEN, 10000);
    add_lock(f, SCRIPT_RENEW, new_key(f, "", 0), OTHER_TOKEN, 7);
    add_lock(f, SCRIPT_RENEW, new_key(f, "k3", 2), TOKEN, 30000);
}

static void test_renewal_of_three_keys(void **state) {
    struct fixture *f = *state;
    add_three_keys(f);
    command_script(&f->out, SCRIPT_RENEW, false, &f->call);
    struct bytes expected;
    bytes_init(&expected, &f->heap.allocator);
    bytes_append(&expected, LITERAL("*12\r\n$7\r\nEVALSHA\r\n$40\r\n"));
    bytes_append(&expected, script_sha(SCRIPT_RENEW), 40);
    bytes_append(&expected, LITERAL("\r\n" THREE_KEYS));
    assert_bytes(&f->out, expected.data, expected.length);
    bytes_finish(&expected);
}

static void test_a_script_the_server_lacks_is_sent_as_text(void **state) {
    struct fixture *f = *state;
    add_three_keys(f);
    command_script(&f->out, SCRIPT_RENEW, true, &f->call);
    struct bytes expected;
    bytes_init(&expected, &f->heap.allocator);
    char header[64];
    snprintf(header, sizeof(header), "*12\r\n$4\r\nEVAL\r\n$%zu\r\n",
             strlen(script_text(SCRIPT_RENEW)));
    bytes_append(&expected, header, strlen(header));
    bytes_append(&expected, script_text(SCRIPT_RENEW), strlen(script_text(SCRIPT_RENEW)));
    bytes_append(&expected, LITERAL("\r\n" THREE_KEYS));
    assert_bytes(&f->out, expected.data, expected.length);
    bytes_finish(&expected);
}

static void test_wait(void **state) {
    struct fixture *f = *state;
    command_wait(&f->out, 2, 26);
    assert_bytes(&f->out, LITERAL("*3\r\n$4\r\nWAIT\r\n$1\r\n2\r\n$2\r\n26\r\n"));
}

static void test_a_look_at_a_key(void **state) {
    struct fixture *f = *state;
    command_look(&f->out, "a\0b", 3);
    assert_bytes(&f->out, LITERAL("*4\r\n$8\r\nGETRANGE\r\n$3\r\na\0b\r\n$1\r\n0\r\n"
                                  "$2\r\n39\r\n"));
}

static void test_the_owner_stands_after_the_token(void **state) {
    struct fixture *f = *state;
    append_set(f, new_key(f, "k", 1), "me", 1);
    assert_bytes(&f->out, LITERAL("*6\r\n$3\r\nSET\r\n$1\r\nk\r\n" BULK_OF_MINE
                                  "$2\r\nNX\r\n$2\r\nPX\r\n$1\r\n1\r\n"));
}

/* Each key is followed by its counter. */
static void test_fenced_locks(void **state) {
    struct fixture *f = *state;
    struct lock_arguments lock = {.key = new_key(f, "a\0b", 3),
                                  .key_count = 1,
                                  .is_fenced = true,
                                  .value = TOKEN,
                                  .owner = "me",
                                  .ttl_ms = 10000,
                                  .fence = 123,
                                  .step = 1,
                                  .counter_ttl_ms = 7};
    char expected[512];
    script_call_add(&f->call, SCRIPT_TAKE, &lock);
    command_script(&f->out, SCRIPT_TAKE, false, &f->call);
    int length = snprintf(expected, sizeof(expected),
                          "*12\r\n$7\r\nEVALSHA\r\n$40\r\n%.40s\r\n$1\r\n2\r\n$3\r\na%cb\r\n"
                          "$10\r\na%cb::fence\r\n" BULK_OF_MINE
                          "$5\r\n10000\r\n$1\r\n1\r\n$1\r\n1\r\n$3\r\n123\r\n$1\r\n1\r\n"
                          "$1\r\n7\r\n",
                          script_sha(SCRIPT_TAKE), 0, 0);
    assert_bytes(&f->out, expected, (size_t)length);
    bytes_clear(&f->out);
    script_call_clear(&f->call);
    script_call_add(&f->call, SCRIPT_RENEW_FENCED, &lock);
    command_script(&f->out, SCRIPT_RENEW_FENCED, false, &f->call);
    length =
        snprintf(expected, sizeof(expected),
                 "*9\r\n$7\r\nEVALSHA\r\n$40\r\n%.40s\r\n$1\r\n2\r\n$3\r\na%cb\r\n"
                 "$10\r\na%cb::fence\r\n" BULK_OF_MINE "$5\r\n10000\r\n$3\r\n123\r\n$1\r\n7\r\n",
                 script_sha(SCRIPT_RENEW_FENCED), 0, 0);
    assert_bytes(&f->out, expected, (size_t)length);
}

/* All keys, then all counters if there are any, and one set of arguments. */
static void test_several_keys(void **state) {
    struct fixture *f = *state;
    struct key *key = new_key(f, "a", 1);
    assert_true(key_append(key, "bb", 2));
    struct lock_arguments lock = {.key = key,
                                  .key_count = 2,
                                  .value = TOKEN,
                                  .owner = "",
                                  .ttl_ms = 5,
                                  .fence = 4,
                                  .counter_ttl_ms = 3};
    char expected[512];
    script_call_add(&f->call, SCRIPT_TAKE, &lock);
    lock.is_fenced = true;
    script_call_add(&f->call, SCRIPT_TAKE, &lock);
    command_script(&f->out, SCRIPT_TAKE, false, &f->call);
    int length =
        snprintf(expected, sizeof(expected),
                 "*23\r\n$7\r\nEVALSHA\r\n$40\r\n%.40s\r\n$1\r\n6\r\n$1\r\na\r\n$2\r\nbb\r\n"
                 "$1\r\na\r\n$2\r\nbb\r\n$8\r\na::fence\r\n$9\r\nbb::fence\r\n" BULK_OF_TOKEN
                 "$1\r\n5\r\n$1\r\n2\r\n$1\r\n0\r\n$1\r\n4\r\n$1\r\n0\r\n$1\r\n3\r\n" BULK_OF_TOKEN
                 "$1\r\n5\r\n$1\r\n2\r\n$1\r\n1\r\n$1\r\n4\r\n$1\r\n0\r\n$1\r\n3\r\n",
                 script_sha(SCRIPT_TAKE));
    assert_bytes(&f->out, expected, (size_t)length);
    assert_int_equal(script_items(SCRIPT_TAKE, 1, 2), 1);
    bytes_clear(&f->out);
    script_call_clear(&f->call);
    script_call_add(&f->call, SCRIPT_RELEASE, &lock);
    command_script(&f->out, SCRIPT_RELEASE, false, &f->call);
    length = snprintf(expected, sizeof(expected),
                      "*7\r\n$7\r\nEVALSHA\r\n$40\r\n%.40s\r\n$1\r\n2\r\n$1\r\na\r\n"
                      "$2\r\nbb\r\n" BULK_OF_TOKEN BULK_OF_TOKEN,
                      script_sha(SCRIPT_RELEASE));
    assert_bytes(&f->out, expected, (size_t)length);
    assert_int_equal(script_items(SCRIPT_RELEASE, 1, 2), 2);
}

static void test_keys_that_stay(void **state) {
    struct fixture *f = *state;
    char expected[512];
    add_lock(f, SCRIPT_STAY, new_key(f, "key", 3), TOKEN, 999);
    command_script(&f->out, SCRIPT_STAY, false, &f->call);
    snprintf(expected, sizeof(expected),
             "*6\r\n$7\r\nEVALSHA\r\n$40\r\n%.40s\r\n$1\r\n1\r\n$3\r\nkey\r\n" BULK_OF_TOKEN
             "$3\r\n999\r\n",
             script_sha(SCRIPT_STAY));
    assert_bytes(&f->out, expected, strlen(expected));
}

/* The key of a permit gives the names of its counter and of the other permits. */
static void test_permits(void **state) {
    struct fixture *f = *state;
    struct lock_arguments lock = {.key = new_key(f, "a:3", 3),
                                  .value = TOKEN,
                                  .owner = "me",
                                  .ttl_ms = 10000,
                                  .fence = 123,
                                  .counter_ttl_ms = 7,
                                  .permits = 256};
    char expected[512];
    script_call_add(&f->call, SCRIPT_PERMIT, &lock);
    command_script(&f->out, SCRIPT_PERMIT, false, &f->call);
    int length =
        snprintf(expected, sizeof(expected),
                 "*9\r\n$7\r\nEVALSHA\r\n$40\r\n%.40s\r\n$1\r\n1\r\n$3\r\na:3\r\n" BULK_OF_MINE
                 "$5\r\n10000\r\n$3\r\n123\r\n$1\r\n7\r\n$3\r\n256\r\n",
                 script_sha(SCRIPT_PERMIT));
    assert_bytes(&f->out, expected, (size_t)length);
}

/* A shared key is followed by the list of its readers and the intent of a waiting writer. */
static void test_shared_locks(void **state) {
    struct fixture *f = *state;
    const struct lock_arguments lock = {.key = new_key(f, "k", 1),
                                        .key_count = 1,
                                        .value = TOKEN,
                                        .owner = "me",
                                        .ttl_ms = 10000,
                                        .step = 1,
                                        .intent_ms = 456,
                                        .fence = 123,
                                        .counter_ttl_ms = 7,
                                        .is_fenced = true,
                                        .reservation_ms = 1000,
                                        .form = 'n',
                                        .ticket = 99,
                                        .waiters_named = 8};
#define KEY_AND_READERS "$1\r\nk\r\n$10\r\nk::readers\r\n"
#define WRITER "$9\r\nk::writer\r\n"
#define VALUE_AND_TTL BULK_OF_MINE "$5\r\n10000\r\n"
    static const struct {
        enum script script;
        unsigned words, keys;
        const char *rest;
    } rows[] = {
        {SCRIPT_SHARE, 9, 3, KEY_AND_READERS WRITER VALUE_AND_TTL "$1\r\n1\r\n"},
        {SCRIPT_SHARE_RENEW, 7, 2, KEY_AND_READERS VALUE_AND_TTL},
        {SCRIPT_SHARE_RELEASE, 6, 2, KEY_AND_READERS BULK_OF_MINE},
        {SCRIPT_WRITE, 9, 3, KEY_AND_READERS WRITER VALUE_AND_TTL "$3\r\n456\r\n"},
        {SCRIPT_WRITE_FENCED, 12, 4,
         KEY_AND_READERS WRITER "$8\r\nk::fence\r\n" VALUE_AND_TTL
                                "$3\r\n456\r\n$3\r\n123\r\n$1\r\n7\r\n"},
        {SCRIPT_INSPECT, 7, 3, KEY_AND_READERS "$8\r\nk::fence\r\n$1\r\n8\r\n"},
        {SCRIPT_QUEUE, 11, 1,
         "$1\r\nk\r\n$2\r\nch\r\n" VALUE_AND_TTL
         "$4\r\n1000\r\n$1\r\nn\r\n$1\r\n7\r\n$2\r\n99\r\n"},
        {SCRIPT_QUEUE_SET, 13, 2,
         "$1\r\nk\r\n$8\r\nk::fence\r\n$2\r\nch\r\n" VALUE_AND_TTL
         "$1\r\n1\r\n$4\r\n1000\r\n$1\r\nn\r\n$1\r\n7\r\n$2\r\n99\r\n"},
        {SCRIPT_LEAVE, 6, 1, "$1\r\nk\r\n" BULK_OF_MINE "$2\r\n99\r\n"},
        {SCRIPT_SHARE_QUEUE, 13, 3,
         KEY_AND_READERS WRITER "$2\r\nch\r\n" VALUE_AND_TTL
                                "$4\r\n1000\r\n$1\r\nn\r\n$1\r\n7\r\n$2\r\n99\r\n"},
        {SCRIPT_SHARE_LEAVE, 7, 2, KEY_AND_READERS BULK_OF_MINE "$2\r\n99\r\n"},
        {SCRIPT_QUEUE_PERMIT, 12, 1,
         "$1\r\nk\r\n$2\r\nch\r\n" VALUE_AND_TTL
         "$4\r\n1000\r\n$1\r\n1\r\n$1\r\n7\r\n$2\r\n99\r\n$1\r\n0\r\n"},
        {SCRIPT_PERMIT_RELEASE, 6, 1, "$1\r\nk\r\n" BULK_OF_MINE "$2\r\n99\r\n"},
        {SCRIPT_PASS, 5, 1, "$1\r\nk\r\n$1\r\nn\r\n"},
    };
    f->call.channel = "ch";
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char expected[512];
        script_call_clear(&f->call);
        bytes_clear(&f->out);
        script_call_add(&f->call, rows[i].script, &lock);
        command_script(&f->out, rows[i].script, false, &f->call);
        int length = snprintf(
            expected, sizeof(expected), "*%u\r\n$7\r\nEVALSHA\r\n$40\r\n%.40s\r\n$1\r\n%u\r\n%s",
            rows[i].words, script_sha(rows[i].script), rows[i].keys, rows[i].rest);
        assert_bytes(&f->out, expected, (size_t)length);
    }
}

static void test_what_scripts_do(void **state) {
    (void)state;
    static const bool takes[SCRIPT_COUNT] = {
        [SCRIPT_TAKE] = true,        [SCRIPT_PERMIT] = true,       [SCRIPT_SHARE] = true,
        [SCRIPT_WRITE] = true,       [SCRIPT_WRITE_FENCED] = true, [SCRIPT_QUEUE] = true,
        [SCRIPT_SHARE_QUEUE] = true, [SCRIPT_QUEUE_SET] = true,    [SCRIPT_QUEUE_PERMIT] = true};
    static const bool counts[SCRIPT_COUNT] = {
        [SCRIPT_TAKE] = true,         [SCRIPT_PERMIT] = true, [SCRIPT_RENEW_FENCED] = true,
        [SCRIPT_WRITE_FENCED] = true, [SCRIPT_QUEUE] = true,  [SCRIPT_QUEUE_SET] = true,
        [SCRIPT_QUEUE_PERMIT] = true};
    static const enum script_delivery deliveries[SCRIPT_COUNT] = {[SCRIPT_RELEASE] = SCRIPT_ASKED,
                                                                  [SCRIPT_QUEUE] = SCRIPT_ASKED,
                                                                  [SCRIPT_LEAVE] = SCRIPT_ASKED,
                                                                  [SCRIPT_BEAT] = SCRIPT_TRIED,
                                                                  [SCRIPT_PROBE] = SCRIPT_TRIED};
    for (unsigned i = 0; i < SCRIPT_COUNT; i++) {
        bool is_by_lock = i == SCRIPT_TAKE || i == SCRIPT_QUEUE_SET;
        assert_int_equal(script_takes((enum script)i), takes[i]);
        assert_int_equal(script_counts((enum script)i), counts[i]);
        assert_int_equal(script_infos[i].delivery, deliveries[i]);
        assert_int_equal(script_items((enum script)i, 2, 5), is_by_lock ? 2 : 5);
        assert_int_equal(script_sources[i].has_channel,
                         i == SCRIPT_QUEUE || i == SCRIPT_QUEUE_SET || i == SCRIPT_SHARE_QUEUE ||
                             i == SCRIPT_QUEUE_PERMIT);
        assert_int_equal(script_infos[i].reports_free,
                         i == SCRIPT_PERMIT || i == SCRIPT_QUEUE_PERMIT);
        assert_int_equal(script_infos[i].stays, i == SCRIPT_STAY);
    }
}

/* Guards against a script without a row, and against letters that C would mistake for others. */
static void test_each_script_has_a_row(void **state) {
    (void)state;
    for (unsigned i = 0; i < SCRIPT_COUNT; i++) {
        const struct script_info *info = &script_infos[i];
        assert_non_null(info->keys);
        assert_int_equal(strspn(info->keys, "crw"), strlen(info->keys));
        assert_int_equal(script_sources[i].arguments[SCRIPT_ARGUMENTS_MAX], 0);
    }
}

/* ---- without memory ---- */

static void encode_all(struct fixture *f) {
    struct key *key = f->created[0];
    bytes_clear(&f->out);
    script_call_clear(&f->call);
    command_words(&f->out, 1, (const char *const[]){"PING"});
    append_set(f, key, "someone", 1);
    add_lock(f, SCRIPT_RENEW, key, TOKEN, 1);
    command_script(&f->out, SCRIPT_RENEW, true, &f->call);
}

/*
 * Encodes all commands with new buffers, while allocations fail from the n-th on, or only the n-th.
 */
static void fail_at(struct fixture *f, size_t n, bool once) {
    bytes_finish(&f->out);
    script_call_finish(&f->call);
    f->heap.calls = 0;
    f->heap.fail_from = n;
    f->heap.fail_once = once;
    encode_all(f);
    f->heap.fail_from = 0;
}

/*
 * Each allocation fails in turn: the command must report it, and half a command must not count as a
 * whole one.
 */
static void test_a_command_without_memory_has_failed(void **state) {
    struct fixture *f = *state;
    static const char long_name[400] = {'k'};
    new_key(f, long_name, sizeof(long_name));
    encode_all(f);
    size_t allocations = f->heap.calls;
    size_t length = f->out.length;
    assert_int_in_range(allocations, 3, 20);
    for (size_t n = 1; n <= 2 * allocations; n++) {
        fail_at(f, (n + 1) / 2, n % 2 == 0);
        assert_true(f->out.failed);
        encode_all(f);
        assert_false(f->out.failed);
        assert_int_equal(f->out.length, length);
    }
}

/* ---- scripts ---- */

static uint32_t rotated(uint32_t value, unsigned by) {
    return value << by | value >> (32 - by);
}

/* SHA-1 of one block of 64 bytes (FIPS 180-4, section 6.1.2). */
static void sha1_block(uint32_t hash[5], const unsigned char *block) {
    static const uint32_t constants[] = {0x5a827999, 0x6ed9eba1, 0x8f1bbcdc, 0xca62c1d6};
    uint32_t w[80];
    for (unsigned t = 0; t < 16; t++) {
        const unsigned char *p = block + 4 * (size_t)t;
        w[t] = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
    }
    for (unsigned t = 16; t < 80; t++) {
        w[t] = rotated(w[t - 3] ^ w[t - 8] ^ w[t - 14] ^ w[t - 16], 1);
    }
    uint32_t a = hash[0], b = hash[1], c = hash[2], d = hash[3], e = hash[4];
    for (unsigned t = 0; t < 80; t++) {
        uint32_t choice = (b & c) | (~b & d), parity = b ^ c ^ d;
        uint32_t majority = (b & c) | (b & d) | (c & d);
        uint32_t f = t < 20 ? choice : t >= 40 && t < 60 ? majority : parity;
        uint32_t sum = rotated(a, 5) + f + e + w[t] + constants[t / 20];
        e = d;
        d = c;
        c = rotated(b, 30);
        b = a;
        a = sum;
    }
    const uint32_t sums[] = {a, b, c, d, e};
    for (unsigned i = 0; i < 5; i++) {
        hash[i] += sums[i];
    }
}

/* Writes the SHA-1 of `text` in hexadecimal. */
static void sha1(const char *text, char digits[41]) {
    uint32_t hash[5] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
    static unsigned char padded[32768];
    size_t length = strlen(text);
    size_t blocks = (length + 8) / 64 + 1;
    assert_true(blocks * 64 <= sizeof(padded));
    memset(padded, 0, sizeof(padded));
    memcpy(padded, text, length);
    padded[length] = 0x80;
    for (unsigned i = 0; i < 8; i++) {
        padded[blocks * 64 - 1 - i] = (unsigned char)((uint64_t)length * 8 >> 8 * i);
    }
    for (size_t i = 0; i < blocks; i++) {
        sha1_block(hash, padded + 64 * i);
    }
    for (unsigned i = 0; i < 5; i++) {
        snprintf(digits + 8 * (size_t)i, 9, "%08x", hash[i]);
    }
}

static void test_the_written_sha_is_that_of_the_text(void **state) {
    (void)state;
    char digits[41];
    sha1("abc", digits);
    assert_string_equal(digits, "a9993e364706816aba3e25717850c26c9cd0d89d");
    sha1("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", digits);
    assert_string_equal(digits, "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
    for (int script = 0; script < SCRIPT_COUNT; script++) {
        sha1(script_text((enum script)script), digits);
        assert_memory_equal(script_sha((enum script)script), digits, SCRIPT_SHA_LENGTH);
    }
}

/* ---- answers ---- */

static struct reply reply_of(enum reply_type type, const char *text) {
    return (struct reply){.type = type, .text = text, .length = text != NULL ? strlen(text) : 0};
}

static void test_an_entry_in_queue_is_read(void **state) {
    (void)state;
    static const struct {
        const char *text;
        bool is_read, has_entry, lacks_right;
        uint32_t ahead;
        bool is_foreign;
    } rows[] = {
        {"h5", true, false, false, 0, false},
        {"h5q0", true, true, false, 0, false},
        {"h5q12", true, true, false, 12, false},
        {"h5q99999999999", true, true, false, UINT32_MAX, false},
        {"h5q", true, true, false, 0, false},
        {"h5x", true, false, true, 0, false},
        {"hq0", false, false, false, 0, false},
        {"yq0", false, false, false, 0, false},
        {"pq0", false, false, false, 0, false},
        {"h5xq0", false, false, false, 0, false},
        {"h5q0w", true, true, false, 0, true},
        {"h5w", false, false, false, 0, false},
        {"h5q0ww", false, false, false, 0, false},
        {"h5xw", false, false, false, 0, false},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct reply_outcome outcome;
        struct reply reply = reply_of(REPLY_STRING, rows[i].text);
        assert_int_equal(reply_to_script(&reply, SCRIPT_QUEUE, &outcome, 1), rows[i].is_read);
        if (rows[i].is_read) {
            assert_int_equal(outcome.has_entry, rows[i].has_entry);
            assert_int_equal(outcome.lacks_right, rows[i].lacks_right);
            assert_int_equal(outcome.ahead, rows[i].ahead);
            assert_int_equal(outcome.is_foreign, rows[i].is_foreign);
        }
    }
}

static void test_an_unfinished_item_is_read(void **state) {
    (void)state;
    static const struct {
        const char *text;
        enum script script;
        bool is_read;
        bool is_unfinished[2];
    } rows[] = {
        {"yy+", SCRIPT_RELEASE, true, {false, true}},
        {"m+y", SCRIPT_LEAVE, true, {true, false}},
        {"h5+y+", SCRIPT_SHARE_RELEASE, true, {true, true}},
        {"h5q7+h5q0w+", SCRIPT_QUEUE, true, {true, true}},
        {"y7+h5x+", SCRIPT_QUEUE, true, {true, true}},
        {"h5f3q7+y7", SCRIPT_QUEUE_PERMIT, true, {true, false}},
        {"y++y", SCRIPT_RELEASE, false, {false, false}},
        {"+yy", SCRIPT_RELEASE, false, {false, false}},
        {"h+y", SCRIPT_RELEASE, false, {false, false}},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct reply_outcome outcomes[2];
        struct reply reply = reply_of(REPLY_STRING, rows[i].text);
        assert_int_equal(reply_to_script(&reply, rows[i].script, outcomes, 2), rows[i].is_read);
        for (unsigned k = 0; k < 2 && rows[i].is_read; k++) {
            assert_int_equal(outcomes[k].is_unfinished, rows[i].is_unfinished[k]);
        }
    }
}

static void test_tokens_are_packed(void **state) {
    static const char *const tokens[] = {TOKEN, OTHER_TOKEN};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(tokens); i++) {
        char entry_id[TOKEN_LENGTH + 1] = TOKEN;
        unsigned char packed[TOKEN_BYTES], other[TOKEN_BYTES];
        char digits[TOKEN_LENGTH + 1];
        token_pack(packed, tokens[i]);
        token_unpack(digits, packed);
        assert_string_equal(digits, tokens[i]);
        memset(entry_id, '0', sizeof(entry_id) - 1);
        memcpy(entry_id, tokens[i], ENTRY_ID_LENGTH);
        token_pack(other, entry_id);
        assert_memory_equal(packed, other,
                            ENTRY_ID_BYTES); /* the first digits are the first bytes */
        assert_memory_not_equal(packed, other, TOKEN_BYTES);
    }
}

static void test_pushes_are_read(void **state) {
    static const char share[] = "1795330030783 1795330029783471 1 " TOKEN " k";
    static const char open[] = "0 1795330029783471 1 " TOKEN " k";
    (void)state;
    struct push push;
    static const char good[] = "1795330030783 1795330029783471 7 " TOKEN " a b";
    assert_true(push_read(good, sizeof(good) - 1, &push));
    assert_int_equal(push.expires_ms, 1795330030783);
    assert_int_equal(push.time_us, 1795330029783471);
    assert_int_equal(push.fence, 7);
    assert_memory_equal(push.token, TOKEN, TOKEN_LENGTH);
    assert_int_equal(push.key_length, 3);
    assert_memory_equal(push.key, "a b", 3);
    assert_false(push.is_share);
    assert_true(push_read(share, sizeof(share) - 1, &push));
    assert_true(push.is_share);
    assert_int_equal(push.fence, 0);
    assert_true(push_read(open, sizeof(open) - 1, &push));
    assert_false(push.is_share);
    assert_int_equal(push.open_ms, 1);
    static const char *const bad[] = {
        "",
        "1",
        "1 ",
        "1 2 3",
        "1 2 3 ",
        "1 2 3 " TOKEN,
        "1 2 3 " TOKEN " ",
        "1 2 " TOKEN " k",
        "-1 2 3 " TOKEN " k",
        "1 2 9007199254740992 " TOKEN " k",
        "1 2 99999999999999999 " TOKEN " k",
        "1  2 3 " TOKEN " k",
        "1 2 3 z" TOKEN " k",
        "1 2 3 ABCDEF0123456789012345678901234567890123 k",
        "probe 17",
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        assert_false(push_read(bad[i], strlen(bad[i]), &push));
    }
    for (size_t length = 0; length < sizeof(good) - 3; length++) {
        assert_false(push_read(good, length, &push));
    }
}

static void test_pushes_of_several_keys_are_read(void **state) {
    (void)state;
    struct push push;
    static const char good[] = "1 2 0 " TOKEN "+1:a3:b:c4:1:\0 ";
    assert_true(push_read(good, sizeof(good) - 1, &push));
    assert_int_equal(push.key_length, 1);
    assert_memory_equal(push.key, "a", 1);
    assert_true(push_next_key(&push));
    assert_int_equal(push.key_length, 3);
    assert_memory_equal(push.key, "b:c", 3);
    assert_true(push_next_key(&push));
    assert_int_equal(push.key_length, 4);
    assert_memory_equal(push.key, "1:\0 ", 4);
    assert_false(push_next_key(&push));
    static const char *const bad[] = {
        "+",     "+1",    "+1:",   "+:a",    "+a",
        "+0:",   "+1:ab", "+2:a",  "1:a",    "+1:a ",
        "+ 1:a", "+-1:a", "+1:a1", "+1:a1:", "+99999999999999999999:a"};
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        char text[128];
        int length = snprintf(text, sizeof(text), "1 2 0 " TOKEN "%s", bad[i]);
        assert_false(push_read(text, (size_t)length, &push));
    }
    char text[512] = "1 2 0 " TOKEN "+";
    for (unsigned i = 0; i < REDLOCK_MAX_KEYS; i++) {
        strcat(text, "1:k");
    }
    assert_true(push_read(text, strlen(text), &push));
    strcat(text, "1:k");
    assert_false(push_read(text, strlen(text), &push));
}

static void test_answers_to_set(void **state) {
    (void)state;
    static const struct {
        enum reply_type type;
        const char *text;
        redlock_vote vote;
    } rows[] = {
        {REPLY_STATUS, "OK", REDLOCK_VOTE_GRANTED},
        {REPLY_NIL, NULL, REDLOCK_VOTE_DENIED},
        {REPLY_STATUS, "QUEUED", REDLOCK_VOTE_ERROR},
        {REPLY_STATUS, "OKAY", REDLOCK_VOTE_ERROR},
        {REPLY_STATUS, "O", REDLOCK_VOTE_ERROR},
        {REPLY_STATUS, "ok", REDLOCK_VOTE_ERROR},
        {REPLY_STATUS, "", REDLOCK_VOTE_ERROR},
        {REPLY_STRING, "OK", REDLOCK_VOTE_ERROR},
        {REPLY_ERROR, "OK", REDLOCK_VOTE_ERROR},
        {REPLY_ERROR, "OOM command not allowed", REDLOCK_VOTE_ERROR},
        {REPLY_INTEGER, NULL, REDLOCK_VOTE_ERROR},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct reply reply = reply_of(rows[i].type, rows[i].text);
        struct reply_outcome outcome = reply_to_set(&reply);
        assert_int_equal(outcome.vote, rows[i].vote);
        assert_int_equal(outcome.other_ttl_ms, 0);
    }
}

static void test_answers_of_scripts(void **state) {
    (void)state;
    static const struct {
        const char *text;
        unsigned count;
        struct {
            redlock_vote vote;
            uint32_t other_ttl_ms;
            uint64_t fence;
        } outcomes[4];
    } rows[] = {
        {"", 0, {{0}}},
        {"y", 1, {{REDLOCK_VOTE_GRANTED, 0, 0}}},
        {"m", 1, {{REDLOCK_VOTE_MISSING, 0, 0}}},
        {"p", 1, {{REDLOCK_VOTE_NO_EXPIRY, 0, 0}}},
        {"t", 1, {{REDLOCK_VOTE_WRONG_TYPE, 0, 0}}},
        {"c", 1, {{REDLOCK_VOTE_ERROR, 0, 0}}},
        {"h0", 1, {{REDLOCK_VOTE_DENIED, 0, 0}}},
        {"h9876", 1, {{REDLOCK_VOTE_DENIED, 9876, 0}}},
        {"h4294967295", 1, {{REDLOCK_VOTE_DENIED, UINT32_MAX, 0}}},
        {"h4294967296", 1, {{REDLOCK_VOTE_DENIED, UINT32_MAX, 0}}},
        {"h99999999999999999999999999999999999999999", 1, {{REDLOCK_VOTE_DENIED, UINT32_MAX, 0}}},
        {"h00000000000000000000000000000000000000012", 1, {{REDLOCK_VOTE_DENIED, 12, 0}}},
        {"h10yh20m",
         4,
         {{REDLOCK_VOTE_DENIED, 10, 0},
          {REDLOCK_VOTE_GRANTED, 0, 0},
          {REDLOCK_VOTE_DENIED, 20, 0},
          {REDLOCK_VOTE_MISSING, 0, 0}}},
        {"ptyh7",
         4,
         {{REDLOCK_VOTE_NO_EXPIRY, 0, 0},
          {REDLOCK_VOTE_WRONG_TYPE, 0, 0},
          {REDLOCK_VOTE_GRANTED, 0, 0},
          {REDLOCK_VOTE_DENIED, 7, 0}}},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct reply reply = reply_of(REPLY_STRING, rows[i].text);
        struct reply_outcome outcomes[5] = {[4] = {.other_ttl_ms = 99}};
        outcomes[rows[i].count] = (struct reply_outcome){.other_ttl_ms = 99};
        assert_true(reply_to_script(&reply, SCRIPT_RENEW, outcomes, rows[i].count));
        for (unsigned k = 0; k < rows[i].count; k++) {
            assert_int_equal(outcomes[k].vote, rows[i].outcomes[k].vote);
            assert_int_equal(outcomes[k].other_ttl_ms, rows[i].outcomes[k].other_ttl_ms);
        }
        assert_int_equal(outcomes[rows[i].count].other_ttl_ms, 99); /* no outcome after the last */
    }
}

static void test_malformed_answers_of_scripts(void **state) {
    (void)state;
    static const struct {
        enum reply_type type;
        const char *text;
        unsigned count;
    } rows[] = {
        {REPLY_STRING, "", 1},     {REPLY_STRING, "y", 2},    {REPLY_STRING, "yy", 1},
        {REPLY_STRING, "yyy", 2},  {REPLY_STRING, "x", 1},    {REPLY_STRING, "Y", 1},
        {REPLY_STRING, "yx", 2},   {REPLY_STRING, "y ", 1},   {REPLY_STRING, " y", 1},
        {REPLY_STRING, "h-5", 1},  {REPLY_STRING, "h5.0", 1}, {REPLY_STRING, "h1e3", 1},
        {REPLY_STRING, "h0x9", 1}, {REPLY_STRING, "5", 1},    {REPLY_STRING, "h5y", 1},
        {REPLY_STRING, "y5", 1},   {REPLY_STRING, "m0", 1},   {REPLY_STRING, "p7y", 2},
        {REPLY_STRING, "h", 1},    {REPLY_STRING, "hy", 2},   {REPLY_STATUS, "y", 1},
        {REPLY_ERROR, "y", 1},     {REPLY_INTEGER, NULL, 1},  {REPLY_NIL, NULL, 1},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct reply reply = reply_of(rows[i].type, rows[i].text);
        struct reply_outcome outcomes[2] = {{0}};
        assert_false(reply_to_script(&reply, SCRIPT_RENEW, outcomes, rows[i].count));
    }
}

static void test_answers_with_fences(void **state) {
    (void)state;
    static const struct {
        const char *text;
        bool is_good;
        uint64_t fence;
    } rows[] = {
        {"y1", true, 1},    {"y9007199254740991", true, (UINT64_C(1) << 53) - 1},
        {"y", true, 0}, /* without a fence */
        {"y1.0", false, 0}, {"y-1", false, 0},
        {"m", true, 0},     {"m1", false, 0},
        {"h12", true, 0},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct reply reply = reply_of(REPLY_STRING, rows[i].text);
        struct reply_outcome outcome;
        assert_int_equal(
            reply_to_script(&reply, i % 2 == 0 ? SCRIPT_TAKE : SCRIPT_RENEW_FENCED, &outcome, 1),
            rows[i].is_good);
        if (rows[i].is_good) {
            assert_int_equal(outcome.fence, rows[i].fence);
        }
    }
    struct reply_outcome outcomes[3];
    struct reply reply = reply_of(REPLY_STRING, "y12h5y9");
    assert_true(reply_to_script(&reply, SCRIPT_TAKE, outcomes, 3));
    assert_int_equal(outcomes[0].fence, 12);
    assert_int_equal(outcomes[1].other_ttl_ms, 5);
    assert_int_equal(outcomes[1].fence, 0);
    assert_int_equal(outcomes[2].fence, 9);
}

/* A counter out of range is an error of its own lock only. */
static void test_counters_out_of_range(void **state) {
    (void)state;
    static const char *const counters[] = {"0", "00", "9007199254740992",
                                           "99999999999999999999999999999"};
    for (size_t i = 0; i < COUNT_OF(counters); i++) {
        struct reply_outcome outcomes[3];
        char text[64];
        snprintf(text, sizeof(text), "y7y%sh5", counters[i]);
        struct reply reply = reply_of(REPLY_STRING, text);
        for (unsigned k = 0; k < 3; k++) {
            static const enum script scripts[] = {SCRIPT_TAKE, SCRIPT_RENEW_FENCED, SCRIPT_PERMIT};
            assert_true(reply_to_script(&reply, scripts[k], outcomes, 3));
            assert_int_equal(outcomes[0].vote, REDLOCK_VOTE_GRANTED);
            assert_int_equal(outcomes[0].fence, 7);
            assert_int_equal(outcomes[1].vote, REDLOCK_VOTE_ERROR);
            assert_int_equal(outcomes[1].fence, 0);
            assert_int_equal(outcomes[2].vote, REDLOCK_VOTE_DENIED);
        }
        assert_ptr_equal(reply_combine(outcomes, 3), &outcomes[1]);
        assert_false(
            reply_to_script(&reply, SCRIPT_RENEW, outcomes, 3)); /* this script has no counters */
    }
}

/* However wrong a wall clock is, there is room for later fences. */
/* The library's headers and the scripts, which get texts, have a constant each. */
static void test_scripts_take_as_long_a_range_of_fences(void **state) {
    char text[24];

    (void)state;
    snprintf(text, sizeof(text), "%d", FENCES_IN_RANGE);
    assert_string_equal(text, FENCE_RANGE);
}

static void test_fences_from_the_clock(void **state) {
    (void)state;
    static const uint64_t most = (UINT64_C(1) << 53) - (UINT64_C(1) << 40);
    assert_int_equal(fence_from_clock(0), 1); /* 0 stands for no fence */
    assert_int_equal(fence_from_clock(1), 1);
    assert_int_equal(fence_from_clock(UINT64_C(1700000000000000)), UINT64_C(1700000000000000));
    assert_int_equal(fence_from_clock(most - 1), most - 1);
    assert_int_equal(fence_from_clock(most), most);
    assert_int_equal(fence_from_clock(most + 1), most);
    assert_int_equal(fence_from_clock(UINT64_C(10413792000000000)), most); /* in the year 2300 */
    assert_int_equal(fence_from_clock(UINT64_MAX), most);
}

/* A node has several keys only if it has each; a report names the cause of a denial. */
static void test_answers_for_several_keys(void **state) {
    (void)state;
    static const struct {
        const char *text;
        unsigned count;
        struct reply_outcome combined;
    } rows[] = {
        {"y", 1, {.vote = REDLOCK_VOTE_GRANTED}},
        {"yyy", 3, {.vote = REDLOCK_VOTE_GRANTED}},
        {"ymy", 3, {.vote = REDLOCK_VOTE_MISSING}},
        {"mh5", 2, {.vote = REDLOCK_VOTE_DENIED, .other_ttl_ms = 5}},
        {"h5m", 2, {.vote = REDLOCK_VOTE_DENIED, .other_ttl_ms = 5}},
        {"h5h9h7", 3, {.vote = REDLOCK_VOTE_DENIED, .other_ttl_ms = 9}},
        {"h5pyh9", 4, {.vote = REDLOCK_VOTE_NO_EXPIRY}},
        {"pt", 2, {.vote = REDLOCK_VOTE_WRONG_TYPE}},
    };
    struct reply fences = reply_of(REPLY_STRING, "y7y9y8");
    struct reply_outcome counted[3];
    assert_true(reply_to_script(&fences, SCRIPT_RENEW_FENCED, counted, 3));
    /* The fence of several keys is their largest. */
    assert_int_equal(reply_combine(counted, 3)->fence, 9);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct reply reply = reply_of(REPLY_STRING, rows[i].text);
        struct reply_outcome outcomes[4];
        assert_true(reply_to_script(&reply, SCRIPT_RELEASE, outcomes, rows[i].count));
        const struct reply_outcome *combined = reply_combine(outcomes, rows[i].count);
        assert_int_equal(combined->vote, rows[i].combined.vote);
        assert_int_equal(combined->other_ttl_ms, rows[i].combined.other_ttl_ms);
    }
}

static void test_answers_about_permits(void **state) {
    (void)state;
    static const struct {
        const char *text;
        bool is_good;
        redlock_vote vote;
        uint64_t number; /* the fence, or the rest of the other one's TTL */
        uint32_t free;   /* a mask */
    } rows[] = {
        {"y", true, REDLOCK_VOTE_GRANTED, 0, 0},
        {"y7", true, REDLOCK_VOTE_GRANTED, 7, 0},
        {"y0", true, REDLOCK_VOTE_ERROR, 0, 0},
        {"y9007199254740992", true, REDLOCK_VOTE_ERROR, 0, 0},
        {"yf1", false, 0, 0, 0},
        {"h12f0", true, REDLOCK_VOTE_DENIED, 12, 0},
        {"h12f1", true, REDLOCK_VOTE_DENIED, 12, 0x1},
        {"h12f8", true, REDLOCK_VOTE_DENIED, 12, 0x8},
        {"h0fa9", true, REDLOCK_VOTE_DENIED, 0, 0x9a},
        {"h12ff0f", true, REDLOCK_VOTE_DENIED, 12, 0xf0f},
        {"h12fffffffff", true, REDLOCK_VOTE_DENIED, 12, UINT32_MAX},
        {"pf6", true, REDLOCK_VOTE_NO_EXPIRY, 0, 0x6},
        {"tfb", true, REDLOCK_VOTE_WRONG_TYPE, 0, 0xb},
        {"cfb", true, REDLOCK_VOTE_ERROR, 0, 0xb},
        {"h12", true, REDLOCK_VOTE_DENIED, 12, 0}, /* none reported as free */
        {"p", true, REDLOCK_VOTE_NO_EXPIRY, 0, 0},
        {"h12f", true, REDLOCK_VOTE_DENIED, 12, 0},
        {"h12f1F", false, 0, 0, 0},
        {"h12f1g", false, 0, 0, 0},
        {"h12f/", false, 0, 0, 0},
        {"h12f:", false, 0, 0, 0},
        {"h12f`", false, 0, 0, 0},
        {"hf1", false, 0, 0, 0},
        {"f1", false, 0, 0, 0},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct reply reply = reply_of(REPLY_STRING, rows[i].text);
        struct reply_outcome outcome;
        assert_int_equal(reply_to_script(&reply, SCRIPT_PERMIT, &outcome, 1), rows[i].is_good);
        for (uint32_t permit = 0; permit < 32 && rows[i].is_good; permit++) {
            assert_int_equal(outcome.vote, rows[i].vote);
            assert_int_equal(outcome.fence + outcome.other_ttl_ms, rows[i].number);
            assert_int_equal(reply_says_free(&outcome, permit), rows[i].free >> permit & 1);
        }
        if (rows[i].is_good) {
            assert_false(reply_says_free(&outcome, 255));
        }
    }
    struct reply_outcome outcomes[4];
    struct reply reply = reply_of(REPLY_STRING, "h5f1yh7fcy9");
    assert_true(reply_to_script(&reply, SCRIPT_PERMIT, outcomes, 4));
    assert_true(reply_says_free(&outcomes[0], 0));
    assert_false(reply_says_free(&outcomes[0], 1));
    assert_int_equal(outcomes[1].fence, 0);
    assert_false(reply_says_free(&outcomes[1], 0));
    assert_true(reply_says_free(&outcomes[2], 3));
    assert_int_equal(outcomes[3].fence, 9);
    reply = reply_of(REPLY_STRING, "h5f1");
    assert_false(
        /* this script reports no free permits */
        reply_to_script(&reply, SCRIPT_TAKE, outcomes, 1));
}

static void test_answers_of_inspections(void **state) {
    (void)state;
    static const struct {
        const char *text;
        bool is_good;
        enum reply_view_kind kind;
        uint64_t ttl_ms, fence;
        uint32_t readers;
        const char *value;
    } rows[] = {
        {"f 0 0 0 0 0 ", true, REPLY_VIEW_FREE, 0, 0, 0, ""},
        {"f 0 12 0 0 0 ", true, REPLY_VIEW_FREE, 0, 12, 0, ""},
        {"h 900 12 0 0 0 a b", true, REPLY_VIEW_HELD, 900, 12, 0, "a b"},
        {"h 900 12 3 0 0 shared", true, REPLY_VIEW_HELD, 900, 12, 3, "shared"},
        {"p 0 0 0 0 0 x", true, REPLY_VIEW_NO_EXPIRY, 0, 0, 0, "x"},
        {"t 0 0 0 0 0 ", true, REPLY_VIEW_NO_STRING, 0, 0, 0, ""},
        {"c 900 0 0 0 0 a", true, REPLY_VIEW_NO_COUNTER, 900, 0, 0, "a"},
        {"h 9007199254740991 9007199254740991 4294967294 0 0 x", true, REPLY_VIEW_HELD,
         (UINT64_C(1) << 53) - 1, (UINT64_C(1) << 53) - 1, UINT32_MAX - 1, "x"},
        {"h 1 0 9007199254740991 0 0 x", true, REPLY_VIEW_HELD, 1, 0, UINT32_MAX, "x"},
        {"h 9007199254740992 0 0 0 0 x", false, REPLY_VIEW_HELD, 0, 0, 0, NULL},
        {"", false, REPLY_VIEW_HELD, 0, 0, 0, NULL},
        {"f", false, REPLY_VIEW_HELD, 0, 0, 0, NULL},
        {"f ", false, REPLY_VIEW_HELD, 0, 0, 0, NULL},
        {"f 0", false, REPLY_VIEW_HELD, 0, 0, 0, NULL},
        {"f 0 0", false, REPLY_VIEW_HELD, 0, 0, 0, NULL},
        {"f 0 0 ", false, REPLY_VIEW_HELD, 0, 0, 0, NULL},
        {"f 0 0 0", false, REPLY_VIEW_HELD, 0, 0, 0, NULL},
        {"f 0 0 0 ", false, REPLY_VIEW_HELD, 0, 0, 0, NULL},
        {"f 0 0 0 0", false, REPLY_VIEW_HELD, 0, 0, 0, NULL},
        {"f 0 0 0 0 0", false, REPLY_VIEW_HELD, 0, 0, 0, NULL},
        {"h 900 12 0 0 x", false, REPLY_VIEW_HELD, 0, 0, 0, NULL},
        {"h 900 12 0 a b c", false, REPLY_VIEW_HELD, 0, 0, 0, NULL},
        {"f  0 0 0 0 ", false, REPLY_VIEW_HELD, 0, 0, 0, NULL},
        {"f -1 0 0 0 0 ", false, REPLY_VIEW_HELD, 0, 0, 0, NULL},
        {"x 0 0 0 0 0 ", false, REPLY_VIEW_HELD, 0, 0, 0, NULL},
        {"ff0 0 0 0 0 ", false, REPLY_VIEW_HELD, 0, 0, 0, NULL},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct reply reply = reply_of(REPLY_STRING, rows[i].text);
        struct reply_view view;
        assert_int_equal(reply_to_inspect(&reply, &view), rows[i].is_good);
        if (rows[i].is_good) {
            assert_int_equal(view.kind, rows[i].kind);
            assert_int_equal(view.ttl_ms, rows[i].ttl_ms);
            assert_int_equal(view.fence, rows[i].fence);
            assert_int_equal(view.readers, rows[i].readers);
            assert_int_equal(view.length, strlen(rows[i].value));
            assert_memory_equal(view.value, rows[i].value, view.length);
        }
    }
    struct reply reply = reply_of(REPLY_STATUS, "f 0 0 0 0 0 ");
    struct reply_view view;
    assert_false(reply_to_inspect(&reply, &view));
}

#define LONGEST "0123456789012345678901234567890123456789/" LABEL
#define LABEL "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define EIGHT "1 a 2 b 3 c 4 d 5 e 6 f 7 g 8 h "

/* The queue's entries come before the value of the holder, which may contain anything. */
static void test_queues_of_inspections(void **state) {
    (void)state;
    static const struct {
        const char *text;
        bool is_good;
        uint32_t queue_length, named;
        uint64_t ticket; /* of the last waiter */
        const char *waiter, *value;
    } rows[] = {
        {"h 9 0 0 1 1 77 tok/me x y", true, 1, 1, 77, "tok/me", "x y"},
        {"f 0 0 0 3 2 5 a 9007199254740991 b ", true, 3, 2, (UINT64_C(1) << 53) - 1, "b", ""},
        {"f 0 0 0 9007199254740991 8 " EIGHT, true, UINT32_MAX, 8, 8, "h", ""},
        {"f 0 0 0 1 1 7 " LONGEST " ", true, 1, 1, 7, LONGEST, ""},
        {"f 0 0 0 1 1 7 " LONGEST "x ", false, 0, 0, 0, NULL, NULL},
        {"f 0 0 0 9 9 " EIGHT "9 i ", false, 0, 0, 0, NULL, NULL},
        {"f 0 0 0 1 2 5 a 6 b ", false, 0, 0, 0, NULL, NULL},
        {"f 0 0 0 2 2 5 a ", false, 0, 0, 0, NULL, NULL},
        {"f 0 0 0 1 1 ", false, 0, 0, 0, NULL, NULL},
        {"f 0 0 0 1 1 5", false, 0, 0, 0, NULL, NULL},
        {"f 0 0 0 1 1 5 ", false, 0, 0, 0, NULL, NULL},
        {"f 0 0 0 1 1 5 a", false, 0, 0, 0, NULL, NULL},
        {"f 0 0 0 1 1 5  x ", false, 0, 0, 0, NULL, NULL},
        {"f 0 0 0 1 1 -5 a ", false, 0, 0, 0, NULL, NULL},
        {"f 0 0 0 1 1 inf a ", false, 0, 0, 0, NULL, NULL},
        {"f 0 0 0 1 1 9007199254740992 a ", false, 0, 0, 0, NULL, NULL},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct reply reply = reply_of(REPLY_STRING, rows[i].text);
        struct reply_view view;
        assert_int_equal(reply_to_inspect(&reply, &view), rows[i].is_good);
        if (rows[i].is_good) {
            const struct reply_waiter *last = &view.waiters[view.named - 1];
            assert_int_equal(view.queue_length, rows[i].queue_length);
            assert_int_equal(view.named, rows[i].named);
            assert_int_equal(last->ticket, rows[i].ticket);
            assert_int_equal(last->length, strlen(rows[i].waiter));
            assert_memory_equal(last->value, rows[i].waiter, last->length);
            assert_int_equal(view.length, strlen(rows[i].value));
            assert_memory_equal(view.value, rows[i].value, view.length);
        }
    }
}

static void test_an_answer_ends_where_its_length_says(void **state) {
    (void)state;
    struct reply_outcome outcome;
    struct reply cut = {.type = REPLY_STRING, .text = "h1234", .length = 3};
    assert_true(reply_to_script(&cut, SCRIPT_RENEW, &outcome, 1));
    assert_int_equal(outcome.other_ttl_ms, 12);
    struct reply with_nul = {.type = REPLY_STRING, .text = "y\0", .length = 2};
    assert_false(reply_to_script(&with_nul, SCRIPT_RENEW, &outcome, 1));
}

static void test_answers_of_the_beat(void **state) {
    (void)state;
    struct reply_beat beat;
    struct reply good =
        reply_of(REPLY_STRING, "1700000000000000 123 9007199254740991 master 0123abcd");
    assert_true(reply_to_beat(&good, &beat));
    assert_int_equal(beat.time_us, UINT64_C(1700000000000000));
    assert_int_equal(beat.age_us, 123);
    assert_int_equal(beat.last_us, UINT64_C(9007199254740991));
    assert_string_equal(beat.role, "master");
    assert_string_equal(beat.id, "0123abcd");
    static const char *const bad[] = {
        "",
        "1",
        "1 2",
        "1 2 ",
        "1 2 3",
        "1 2 3 ",
        "1 2 3 master",
        "1 2 3 master ",
        "1 2 3  -",
        "1 2 3 4",
        " 1 2 3 - -",
        "1  2 3 - -",
        "1 2 x - -",
        "1 2 3x - -",
        "-1 2 3 - -",
        "1 2 -3 - -",
        "1,2,3,-,-",
        "1.0 2 3 - -",
        "1e3 2 3 - -",
        "0x1 2 3 - -",
        "9007199254740992 2 3 - -",
        "1 2 99999999999999999 - -",
        "1 2 3 a-long-role -",
        "1 2 3 - 01234567890123456789012345678901234567890",
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct reply reply = reply_of(REPLY_STRING, bad[i]);
        assert_false(reply_to_beat(&reply, &beat));
    }
    struct reply status = reply_of(REPLY_STATUS, "1 2 3 - -");
    assert_false(reply_to_beat(&status, &beat));
    struct reply cut = {.type = REPLY_STRING, .text = "1 2 34 - abc", .length = 10};
    assert_true(reply_to_beat(&cut, &beat));
    assert_int_equal(beat.last_us, 34);
    assert_string_equal(beat.id, "a");
    struct reply too_short = {.type = REPLY_STRING, .text = "1 2 3 - -", .length = 8};
    assert_false(reply_to_beat(&too_short, &beat));
}

static void test_fields_of_info(void **state) {
    (void)state;
    char value[8];
    struct reply info = reply_of(REPLY_STRING, "# Server\r\nredis_version:7.0.15\r\n"
                                               "run_id:0123456789\r\nempty:\r\n\r\nlast:x");
    assert_true(reply_info(&info, "redis_version", value, sizeof(value)));
    assert_string_equal(value, "7.0.15");
    assert_true(reply_info(&info, "run_id", value, sizeof(value)));
    assert_string_equal(value, "0123456"); /* truncated */
    assert_true(reply_info(&info, "empty", value, sizeof(value)));
    assert_string_equal(value, "");
    assert_true(reply_info(&info, "last", value, sizeof(value)));
    assert_string_equal(value, "x");
    assert_false(reply_info(&info, "version", value, sizeof(value)));
    assert_false(reply_info(&info, "redis", value, sizeof(value)));
    assert_false(reply_info(&info, "last:x", value, sizeof(value)));
    struct reply bare = reply_of(REPLY_STRING, "a:\nb:");
    assert_true(reply_info(&bare, "b", value, sizeof(value)));
    assert_string_equal(value, "");
    struct reply error = reply_of(REPLY_ERROR, "run_id:1");
    assert_false(reply_info(&error, "run_id", value, sizeof(value)));
}

static void test_classes_of_errors(void **state) {
    (void)state;
    static const struct {
        const char *text;
        enum reply_error meaning;
    } rows[] = {
        {"NOSCRIPT No matching script. Please use EVAL.", REPLY_ERROR_NO_SCRIPT},
        {"LOADING Redis is loading the dataset in memory", REPLY_ERROR_TRY_LATER},
        {"BUSY Redis is busy running a script.", REPLY_ERROR_TRY_LATER},
        {"MISCONF Redis is configured to save RDB snapshots", REPLY_ERROR_TRY_LATER},
        {"OOM command not allowed when used memory > 'maxmemory'.", REPLY_ERROR_TRY_LATER},
        {"MASTERDOWN Link with MASTER is down", REPLY_ERROR_TRY_LATER},
        {"CLUSTERDOWN Hash slot not served", REPLY_ERROR_TRY_LATER},
        {"TRYAGAIN Multiple keys request during rehashing", REPLY_ERROR_TRY_LATER},
        {"NOREPLICAS Not enough good replicas to write.", REPLY_ERROR_TRY_LATER},
        {"ERR max number of clients reached", REPLY_ERROR_TRY_LATER},
        {"NOAUTH Authentication required.", REPLY_ERROR_NO_ACCESS},
        {"WRONGPASS invalid username-password pair", REPLY_ERROR_NO_ACCESS},
        {"NOPERM this user has no permissions", REPLY_ERROR_NO_ACCESS},
        {"READONLY You can't write against a read only replica.", REPLY_ERROR_MISCONFIGURED},
        {"MOVED 3999 127.0.0.1:6381", REPLY_ERROR_MISCONFIGURED},
        {"ASK 3999 127.0.0.1:6381", REPLY_ERROR_MISCONFIGURED},
        {"CROSSSLOT Keys in request don't hash to the same slot", REPLY_ERROR_MISCONFIGURED},
        {"WRONGTYPE Operation against a key", REPLY_ERROR_MISCONFIGURED},
        {"DENIED Redis is running in protected mode", REPLY_ERROR_NO_ACCESS},
        {"ERR invalid password", REPLY_ERROR_NO_ACCESS},
        {"ERR AUTH <password> called without any password", REPLY_ERROR_NO_ACCESS},
        {"ERR Client sent AUTH, but no password is set", REPLY_ERROR_NO_ACCESS},
        {"ERR Protocol error: unauthenticated bulk length", REPLY_ERROR_NO_ACCESS},
        {"ERR DB index is out of range", REPLY_ERROR_NO_ACCESS},
        {"ERR SELECT is not allowed in cluster mode", REPLY_ERROR_NO_ACCESS},
        {"ERR unknown command", REPLY_ERROR_UNKNOWN},
        {"ERR", REPLY_ERROR_UNKNOWN},
        {"loading", REPLY_ERROR_UNKNOWN},
        {"NOSCRIP", REPLY_ERROR_UNKNOWN}, /* shorter than the word that it resembles */
        {"", REPLY_ERROR_UNKNOWN},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct reply reply = reply_of(REPLY_ERROR, rows[i].text);
        assert_int_equal(reply_classify(&reply), rows[i].meaning);
    }
}

static void test_refusals_for_want_of_a_right(void **state) {
    (void)state;
    static const struct {
        const char *text;
        bool is_forbidden;
    } rows[] = {
        {"NOPERM this user has no permissions to run the 'subscribe' command", true},
        {"ERR The user executing the script can't run this command or subcommand", true},
        {"ERR The user executing the script can't publish to the channel mentioned in the command",
         true},
        {"ERR ACL failure in script: User me has no permissions to run the 'publish' command",
         true},
        {"NOAUTH Authentication required.", false},
        {"ERR unknown command", false},
        {"BUSY Redis is busy running a script.", false},
        {"", false},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct reply reply = reply_of(REPLY_ERROR, rows[i].text);
        assert_int_equal(reply_lacks_right(&reply), rows[i].is_forbidden);
        reply.type = REPLY_STRING;
        assert_false(reply_lacks_right(&reply));
    }
}

#define WITH_BUFFERS(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_BUFFERS(test_words),
        WITH_BUFFERS(test_set),
        WITH_BUFFERS(test_set_of_a_binary_key),
        WITH_BUFFERS(test_numbers_are_written_in_full),
        WITH_BUFFERS(test_release_of_one_key),
        WITH_BUFFERS(test_renewal_of_three_keys),
        WITH_BUFFERS(test_a_look_at_a_key),
        WITH_BUFFERS(test_the_owner_stands_after_the_token),
        WITH_BUFFERS(test_wait),
        WITH_BUFFERS(test_fenced_locks),
        WITH_BUFFERS(test_several_keys),
        WITH_BUFFERS(test_keys_that_stay),
        WITH_BUFFERS(test_permits),
        WITH_BUFFERS(test_shared_locks),
        cmocka_unit_test(test_what_scripts_do),
        cmocka_unit_test(test_an_entry_in_queue_is_read),
        cmocka_unit_test(test_an_unfinished_item_is_read),
        cmocka_unit_test(test_pushes_are_read),
        cmocka_unit_test(test_pushes_of_several_keys_are_read),
        cmocka_unit_test(test_each_script_has_a_row),
        WITH_BUFFERS(test_a_script_the_server_lacks_is_sent_as_text),
        WITH_BUFFERS(test_a_command_without_memory_has_failed),
        cmocka_unit_test(test_the_written_sha_is_that_of_the_text),
        cmocka_unit_test(test_answers_to_set),
        cmocka_unit_test(test_answers_of_scripts),
        cmocka_unit_test(test_malformed_answers_of_scripts),
        cmocka_unit_test(test_answers_with_fences),
        cmocka_unit_test(test_counters_out_of_range),
        cmocka_unit_test(test_scripts_take_as_long_a_range_of_fences),
        cmocka_unit_test(test_fences_from_the_clock),
        cmocka_unit_test(test_answers_for_several_keys),
        cmocka_unit_test(test_answers_about_permits),
        cmocka_unit_test(test_answers_of_inspections),
        cmocka_unit_test(test_queues_of_inspections),
        cmocka_unit_test(test_an_answer_ends_where_its_length_says),
        cmocka_unit_test(test_answers_of_the_beat),
        cmocka_unit_test(test_tokens_are_packed),
        cmocka_unit_test(test_fields_of_info),
        cmocka_unit_test(test_classes_of_errors),
        cmocka_unit_test(test_refusals_for_want_of_a_right),
    };
    return cmocka_run_group_tests_name("wire", tests, NULL, NULL);
}
